//! Streams: order, loss, limits, and random captures of a stream.

use proptest::prelude::*;

use super::*;

#[test]
fn segments_out_of_order_and_repeated_are_put_right() {
    let bytes = [message(1, 30), message(2, 0), message(3, 100)].concat();
    let at = |from: usize, to: usize| seg(100 + from as u32, &bytes[from..to]);
    let record = read_segments(&[
        syn(99),
        at(20, 40),
        at(0, 20),
        at(0, 20),
        at(60, 154),
        at(40, 70),
        syn(99),
        fin(254),
        at(40, 70),
    ]);
    assert_eq!(record.bytes().concat(), bytes);
    assert_eq!(record.problems, []);
}

#[test]
fn of_two_segments_that_disagree_the_first_wins() {
    let first = message(1, 40);
    let other = vec![0xee; first.len()];
    let record = read_segments(&[
        syn(0),
        seg(1 + 10, &first[10..20]),
        seg(1 + 30, &first[30..40]),
        seg(1 + 5, &[&first[5..10], &other[10..20], &first[20..30], &other[30..48]].concat()[..35]),
        seg(1, &[&first[..5], &other[5..40]].concat()),
        seg(1 + 40, &first[40..]),
    ]);
    assert_eq!(record.bytes(), [first]);
    assert_eq!(record.problems, []);
}

#[test]
fn sequence_numbers_wrap_around() {
    let bytes = [message(1, 500), message(2, 500)].concat();
    let start = u32::MAX - 300;
    let segments: Vec<_> = (0_u32..)
        .zip(bytes.chunks(100))
        .map(|(index, chunk)| seg(start.wrapping_add(1 + index * 100), chunk))
        .collect();
    let mut order = vec![syn(start)];
    order.extend(segments.chunks(2).flat_map(|pair| pair.iter().rev().cloned()));
    let record = read_segments(&order);
    assert_eq!(record.bytes().concat(), bytes);
    assert_eq!(record.problems, []);
}

#[test]
fn a_lost_segment_is_a_gap_and_the_next_header_is_found() {
    let messages: Vec<_> = (1..=4).map(|xid| message(xid, 92)).collect();
    let bytes = messages.concat();
    // Bytes 150 to 250 are lost. The next segments begin in the third and with the fourth message.
    let record = read_segments(&[
        syn(0),
        seg(1, &bytes[..150]),
        seg(251, &bytes[250..300]),
        seg(301, &bytes[300..]),
        fin(401),
    ]);
    assert_eq!(record.bytes(), [messages[0].clone(), messages[3].clone()]);
    let stream = stream();
    assert_eq!(
        record.problems,
        [
            CaptureProblem::Gap { stream, offset: 150, bytes: 100, cause: Gap::Lost },
            CaptureProblem::Skipped { stream, offset: 250, bytes: 50 },
        ]
    );
}

#[test]
fn a_segment_that_the_snap_length_cut_is_a_gap() {
    let messages: Vec<_> = (1..=4).map(|xid| message(xid, 92)).collect();
    let packets: Vec<_> = (0_u32..)
        .zip(&messages)
        .map(|(index, message)| {
            let mut packet = seg(1 + index * 100, message).ipv4();
            let length = packet.len();
            // The second packet keeps half of its payload, the third only its headers.
            packet.truncate(match index {
                1 => 40 + 50,
                2 => 40,
                _ => length,
            });
            (packet, length)
        })
        .collect();
    let (record, result) = read(&pcap_cut(RAW, &packets));
    assert!(result.is_ok());
    assert_eq!(record.bytes(), [messages[0].clone(), messages[3].clone()]);
    let gap = |offset, bytes| CaptureProblem::Gap {
        stream: stream(),
        offset,
        bytes,
        cause: Gap::SnapLength,
    };
    assert_eq!(record.problems, [gap(150, 50), gap(200, 100)]);
}

#[test]
fn a_capture_that_starts_inside_of_a_stream_finds_the_first_header() {
    let (first, second) = (message(200, 20), message(2, 20));
    let record = read_segments(&[seg(500, &first[7..]), seg(521, &second)]);
    assert_eq!(record.messages[0].2, 21);
    assert_eq!(record.bytes(), [second]);
    assert_eq!(
        record.problems,
        [CaptureProblem::Skipped { stream: stream(), offset: 0, bytes: 21 }]
    );
}

#[test]
fn only_the_start_of_a_segment_ends_the_search() {
    // The second segment repeats five bytes. Its new bytes look like a header by chance.
    let by_chance = [&[0xee; 5][..], &message(1, 0)].concat();
    let good = message(2, 0);
    let record = read_segments(&[seg(100, &[0xee; 10]), seg(105, &by_chance), seg(118, &good)]);
    assert_eq!(record.bytes(), [good]);
    assert_eq!(
        record.problems,
        [CaptureProblem::Skipped { stream: stream(), offset: 0, bytes: 18 }]
    );
}

#[test]
fn bytes_that_are_no_openflow_are_named_and_passed_over() {
    let good = message(2, 0);
    let record = read_segments(&[
        syn(0),
        seg(1, b"GET / HTTP/1.1\r\n"),
        seg(17, b"Host: x\r\n"),
        seg(26, &good),
        fin(34),
    ]);
    assert_eq!(record.bytes(), [good]);
    let (stream, header) = (stream(), *b"GET / HT");
    assert_eq!(
        record.problems,
        [
            CaptureProblem::NotOpenFlow { stream, offset: 0, header },
            CaptureProblem::Skipped { stream, offset: 16, bytes: 9 },
        ]
    );
}

#[test]
fn a_length_below_the_header_is_no_endless_loop() {
    let broken = [4, 0, 0, 0, 0, 0, 0, 1];
    // Once in one piece, and once split so that the header must be put together.
    let whole = read_segments(&[syn(0), seg(1, &broken), seg(9, &message(2, 0))]);
    let split = read_segments(&[
        syn(0),
        seg(1, &broken[..3]),
        seg(4, &broken[3..]),
        seg(9, &message(2, 0)),
    ]);
    for record in [whole, split] {
        assert_eq!(record.bytes(), [message(2, 0)]);
        let expected = CaptureProblem::NotOpenFlow { stream: stream(), offset: 0, header: broken };
        assert_eq!(record.problems, [expected]);
    }
}

#[test]
fn a_stream_that_ends_inside_of_a_message_says_so() {
    let bytes = message(1, 40);
    for ending in [vec![], vec![fin(21)], vec![rst(21)]] {
        let record = read_segments(&[vec![syn(0), seg(1, &bytes[..20])], ending].concat());
        assert_eq!(
            record.problems,
            [CaptureProblem::Unfinished { stream: stream(), offset: 0, have: 20 }]
        );
    }
}

#[test]
fn the_same_ports_again_are_another_stream() {
    let (first, second) = (message(1, 0), message(2, 0));
    let again = [syn(7_000), seg(7_001, &second)];
    for ending in [vec![fin(9)], vec![rst(9)], vec![]] {
        let begin = vec![syn(0), seg(1, &first)];
        let record = read_segments(&[begin, ending, again.to_vec()].concat());
        let offsets: Vec<_> = record.messages.iter().map(|&(_, _, offset, _)| offset).collect();
        assert_eq!((record.bytes(), offsets), (vec![first.clone(), second.clone()], vec![0, 0]));
        assert_eq!(record.problems, []);
    }
    // Without the second SYN, the distant sequence number shows a new connection.
    let record = read_segments(&[syn(0), seg(1, &first), seg(0x7000_0000, &second)]);
    assert_eq!((record.bytes(), record.problems), (vec![first, second], vec![]));
}

#[test]
fn segments_repeated_after_the_end_are_not_read_twice() {
    let bytes = message(1, 0);
    let last = Seg { fin: true, ..seg(1, &bytes) };
    let record = read_segments(&[syn(0), last.clone(), last, fin(9)]);
    assert_eq!((record.bytes(), record.problems), (vec![bytes], vec![]));
}

#[test]
fn waiting_bytes_are_bounded_for_each_stream() {
    let piece = message(9, 992);
    let count = tcp::MAX_WAITING_PER_STREAM_BYTES / piece.len() + 2;
    let mut segments = vec![syn(0), seg(1, &message(1, 0))];
    segments.extend((0..count).map(|index| seg(1 + 108 + (index * 1000) as u32, &piece)));
    let record = read_segments(&segments);
    assert_eq!(record.messages.len(), 1 + count);
    let gap = CaptureProblem::Gap { stream: stream(), offset: 8, bytes: 100, cause: Gap::Lost };
    assert_eq!(record.problems, [gap]);
}

#[test]
fn streams_and_their_waiting_bytes_are_bounded_in_total() {
    struct Count(usize, usize);
    impl Receiver for Count {
        fn bytes(&mut self, _: StreamId, _: Duration, _: u64, bytes: &[u8]) -> ReceiveStep {
            self.0 += bytes.len();
            ReceiveStep::Kept
        }
        fn gap(&mut self, _: StreamId, _: u64, _: u64, _: Gap) {}
        fn joined(&mut self, _: StreamId) {}
        fn skipped(&mut self, _: StreamId, _: u64, _: u64) {}
        fn end(&mut self, _: StreamId) {}
        fn forgotten(&mut self, _: StreamId) {
            self.1 += 1;
        }
    }
    let bytes = message(1, 60_000);
    let mut reassembler = tcp::Reassembler::default();
    let mut count = Count(0, 0);
    let streams = tcp::MAX_STREAMS + 1;
    let mut waiting = 0;
    for index in 0..streams {
        let mut stream = stream();
        stream.src.set_port((index % 40_000) as u16);
        stream.src.set_ip(Ipv4Addr::from(index as u32).into());
        let time = Duration::ZERO;
        let open = capture::CapturedSegment {
            stream,
            time,
            sequence: 0,
            syn: true,
            fin: false,
            rst: false,
            payload: &[],
            missing: 0,
        };
        reassembler.segment(&open, &mut count);
        let ahead = capture::CapturedSegment { sequence: 2, syn: false, payload: &bytes, ..open };
        reassembler.segment(&ahead, &mut count);
        waiting += bytes.len();
        let passed_on_or_kept = waiting - count.0;
        assert!(passed_on_or_kept <= tcp::MAX_WAITING_BYTES, "{passed_on_or_kept} bytes wait");
    }
    assert_eq!(count.1, tcp::MAX_STREAMS.div_ceil(4));
    reassembler.finish(&mut count);
    assert_eq!(count.0, waiting);
}

/// A stream of messages and its captured segments: cut anywhere, some of them twice with other
/// cuts, and shuffled with near ones.
fn shuffled() -> impl Strategy<Value = (Vec<u8>, u32, Vec<Seg>)> {
    let bodies = prop::collection::vec(0_usize..3000, 1..12);
    let cuts = || prop::collection::vec(any::<prop::sample::Index>(), 0..20);
    (bodies, any::<u32>(), cuts(), cuts(), prop::collection::vec(0_usize..16, 64)).prop_map(
        |(bodies, start, cuts, again, moves)| {
            let bytes =
                (0_u32..).zip(bodies).map(|(xid, body)| message(xid, body)).collect::<Vec<_>>();
            let bytes = bytes.concat();
            let pieces = |cuts: Vec<prop::sample::Index>| {
                let mut at: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
                at.extend([0, bytes.len()]);
                at.sort_unstable();
                at.windows(2)
                    .map(|pair| {
                        let sequence = start.wrapping_add(1).wrapping_add(pair[0] as u32);
                        seg(sequence, &bytes[pair[0]..pair[1]])
                    })
                    .collect::<Vec<_>>()
            };
            let mut segments = pieces(cuts);
            segments.extend(pieces(again));
            for (index, distance) in moves.into_iter().enumerate() {
                let count = segments.len();
                segments.swap(index % count, (index + distance) % count);
            }
            segments.insert(0, syn(start));
            segments.push(fin(start.wrapping_add(1).wrapping_add(bytes.len() as u32)));
            (bytes, start, segments)
        },
    )
}

proptest! {
    #[test]
    fn any_order_and_any_cut_of_a_stream_give_the_same_bytes((bytes, _, segments) in shuffled()) {
        let record = read_segments(&segments);
        prop_assert_eq!(record.bytes().concat(), bytes);
        prop_assert_eq!(record.problems, []);
    }

    #[test]
    fn any_loss_is_told_and_what_is_read_is_right(
        (bytes, start, mut segments) in shuffled(),
        lost in any::<prop::sample::Index>(),
    ) {
        segments.remove(1 + lost.index(segments.len() - 2));
        let mut there = vec![false; bytes.len()];
        for segment in &segments[1..] {
            let from = segment.sequence.wrapping_sub(start.wrapping_add(1)) as usize;
            there[from..from + segment.payload.len()].fill(true);
        }
        let record = read_segments(&segments);
        for (_, _, offset, message) in &record.messages {
            let from = *offset as usize;
            prop_assert_eq!(&bytes[from..from + message.len()], &message[..]);
        }
        let lost = there.iter().filter(|&&there| !there).count() as u64;
        let told = record.problems.iter().map(|problem| match problem {
            CaptureProblem::Gap { bytes, .. } => *bytes,
            _ => 0,
        });
        prop_assert_eq!(told.sum::<u64>(), lost);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..400), ng in any::<bool>()) {
        let head = if ng { section(false, 101) } else { pcap(RAW, []) };
        bytes.splice(0..0, head);
        let _ = read(&bytes);
    }
}
