//! File formats, link types, parts that are left out, and broken files.

use etherparse::{EtherType, IpFragOffset, VlanId};

use super::*;

#[test]
fn a_message_comes_with_its_stream_time_and_offset() {
    let (first, second) = (message(1, 4), message(2, 0));
    let file =
        pcap(ETHERNET, [syn(9), seg(10, &first), seg(22, &second)].iter().map(Seg::ethernet));
    let (record, result) = read(&file);
    let time = |second: u64| Duration::from_millis(second * 1000 + 250);
    assert_eq!(record.messages, [(stream(), time(2), 0, first), (stream(), time(3), 12, second)]);
    assert_eq!(record.problems, []);
    let ports = vec![(CONTROLLER, 3)];
    assert_eq!(result.unwrap(), CaptureSummary { packets: 3, segments: 3, messages: 2, ports });
    assert_eq!(stream().to_string(), "10.0.0.1:40000 -> 10.0.0.2:6653");
}

#[test]
fn every_link_type_is_read() {
    let hello = message(1, 0);
    let ip = seg(1, &hello).ipv4();
    let with = |head: &[u8]| [head, &ip].concat();
    assert_one(&pcap(RAW, [ip.clone()]), &hello);
    assert_one(&pcap(228, [ip.clone()]), &hello);
    assert_one(&pcap(ETHERNET, [seg(1, &hello).ethernet()]), &hello);
    assert_one(&pcap(0, [with(&[2, 0, 0, 0])]), &hello);
    assert_one(&pcap(108, [with(&[0, 0, 0, 2])]), &hello);
    assert_one(&pcap(113, [with(&[0, 0, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0, 8, 0])]), &hello);
    let cooked = [8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0];
    assert_one(&pcap(276, [with(&cooked)]), &hello);
}

#[test]
fn vlan_tags_and_ipv6_extension_headers_are_looked_through() {
    let hello = message(1, 0);
    let segment = seg(1, &hello);
    let tags = PacketBuilder::ethernet2([2; 6], [4; 6])
        .double_vlan(VlanId::try_new(7).unwrap(), VlanId::try_new(42).unwrap())
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
    assert_one(&pcap(ETHERNET, [segment.on(tags)]), &hello);

    // IPv6 with a destination options header of 8 bytes between it and TCP.
    let plain = segment.on(PacketBuilder::ipv6([1; 16], [2; 16], 64));
    assert_one(&pcap(229, [plain.clone()]), &hello);
    let mut extended = plain.clone();
    extended[6] = 60;
    let length = u16::try_from(plain.len() - 40 + 8).unwrap();
    extended[4..6].copy_from_slice(&length.to_be_bytes());
    extended.splice(40..40, [6, 0, 1, 4, 0, 0, 0, 0]);
    assert_one(&pcap(229, [extended]), &hello);
}

#[test]
fn bytes_after_the_ip_packet_are_not_read() {
    let hello = message(1, 0);
    let mut frame = seg(1, &hello).ethernet();
    frame.extend([0; 6]);
    assert_one(&pcap(ETHERNET, [frame]), &hello);
}

#[test]
fn pcapng_is_read_in_both_byte_orders_and_over_several_sections() {
    let (first, second) = (message(1, 0), message(2, 0));
    for big in [false, true] {
        let file = [
            section(big, 101),
            enhanced(big, 3_000_000_007, &seg(1, &first).ipv4()),
            block(big, 5, &words(big, &[0, 0, 0])),
            section(!big, 1),
            enhanced(!big, 5, &seg(9, &second).ethernet()),
        ]
        .concat();
        let (record, result) = read(&file);
        let times = [Duration::new(3, 7), Duration::from_nanos(5)];
        assert_eq!(record.bytes(), [first.clone(), second.clone()]);
        assert_eq!([record.messages[0].1, record.messages[1].1], times);
        assert_eq!((record.problems, result.unwrap().packets), (vec![], 2));
    }
}

#[test]
fn simple_packets_of_pcapng_are_read() {
    let hello = message(1, 3);
    let packet = seg(1, &hello).ipv4();
    let body = [words(false, &[packet.len() as u32]), packet].concat();
    assert_one(&[section(false, 101), block(false, 3, &body)].concat(), &hello);
}

#[test]
fn nanosecond_and_big_endian_pcap_files_are_read() {
    let hello = message(1, 0);
    let packet = seg(1, &hello).ipv4();
    let mut file = [words(true, &[0xa1b2_3c4d]), vec![0, 2, 0, 4]].concat();
    file.extend(words(true, &[0, 0, 65_535, RAW]));
    file.extend(words(true, &[7, 999_999_999, packet.len() as u32, packet.len() as u32]));
    file.extend(packet);
    let (record, result) = read(&file);
    assert!(result.is_ok());
    assert_eq!(record.messages, [(stream(), Duration::new(7, 999_999_999), 0, hello)]);
}

#[test]
fn other_ports_and_protocols_are_left_out() {
    let hello = message(1, 0);
    let mut udp = Vec::new();
    let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
    builder.udp(CONTROLLER, CONTROLLER).write(&mut udp, &hello).unwrap();
    let mut web = Vec::new();
    let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
    builder.tcp(80, SWITCH, 1, 1000).write(&mut web, &hello).unwrap();
    let (record, result) = read(&pcap(RAW, [udp, web]));
    assert_eq!(
        result.unwrap(),
        CaptureSummary { packets: 2, ports: vec![(80, 1)], ..CaptureSummary::default() }
    );
    assert_eq!((record.messages.len(), record.problems.len()), (0, 0));
}

#[test]
fn fragments_unknown_links_and_broken_headers_are_counted() {
    let mut headers =
        etherparse::Ipv4Header::new(16, 64, etherparse::IpNumber::TCP, [1; 4], [2; 4]).unwrap();
    headers.fragment_offset = IpFragOffset::try_new(100).unwrap();
    let mut fragment = Vec::new();
    headers.write(&mut fragment).unwrap();
    fragment.extend([0; 16]);
    let whole = seg(1, &message(1, 0)).ipv4();
    let (record, _) = read(&pcap(RAW, [fragment.clone(), fragment, whole[..30].to_vec()]));
    let expected =
        [CaptureProblem::Fragments { packets: 2 }, CaptureProblem::Unreadable { packets: 1 }];
    assert_eq!(record.problems, expected);
    let (record, _) = read(&pcap(105, [whole]));
    assert_eq!(record.problems, [CaptureProblem::LinkType { link_type: 105, packets: 1 }]);
}

#[test]
fn a_frame_that_is_not_ip_is_no_problem() {
    let mut arp = [vec![0xff; 6], vec![2; 6], EtherType::ARP.0.to_be_bytes().to_vec()].concat();
    arp.extend([0, 1, 8, 0, 6, 4, 0, 1]);
    arp.extend([0; 20]);
    let lldp = [vec![1; 6], vec![2; 6], vec![0x88, 0xcc], vec![0; 46]].concat();
    let (record, result) = read(&pcap(ETHERNET, [arp, lldp]));
    assert_eq!((record.problems, result.unwrap().packets), (vec![], 2));
}

#[test]
fn a_file_that_is_no_capture_is_an_error() {
    assert!(matches!(read(b"").1, Err(CaptureError::Empty)));
    assert!(matches!(read(b"not a capture, but text").1, Err(CaptureError::NotACapture)));
    assert!(matches!(read(&[0; 5000]).1, Err(CaptureError::NotACapture)));
}

#[test]
fn a_file_cut_off_anywhere_gives_what_it_has_and_says_so() {
    let file = pcap(RAW, [seg(1, &message(1, 0)).ipv4(), seg(9, &message(2, 0)).ipv4()]);
    let (second, first) = (file.len(), (file.len() + 24) / 2);
    for length in 24..=second {
        let (record, result) = read(&file[..length]);
        assert!(result.is_ok(), "{length}");
        assert_eq!(
            record.messages.len(),
            usize::from(length >= first) + usize::from(length == second)
        );
        let whole = [24, first, second].contains(&length);
        assert_eq!(record.problems.is_empty(), whole, "{length}: {:?}", record.problems);
    }
}

#[test]
fn a_block_longer_than_the_bound_is_an_error_with_its_place() {
    let mut file = pcap(RAW, [seg(1, &message(1, 0)).ipv4()]);
    let place = file.len();
    file.extend(words(false, &[1, 1, 0x7fff_ffff, 0x7fff_ffff]));
    file.resize(place + capture::MAX_BLOCK_BYTES + 1000, 0);
    let (record, result) = read(&file);
    assert_eq!(record.messages.len(), 1);
    assert!(matches!(result, Err(CaptureError::BlockTooLong { offset }) if offset == place));
}

#[test]
fn a_packet_larger_than_the_first_buffer_is_read() {
    let hello = message(1, 0);
    let large = [seg(1, &[]).ipv4(), vec![0; 300_000]].concat();
    assert_one(&pcap(RAW, [large, seg(1, &hello).ipv4()]), &hello);
}

#[test]
fn an_input_that_gives_a_byte_at_a_time_is_read() {
    struct Dribble<'a>(&'a [u8]);
    impl Read for Dribble<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = buffer.len().min(1);
            self.0.read(&mut buffer[..length])
        }
    }
    let hello = message(1, 0);
    for file in [
        pcap(RAW, [seg(1, &hello).ipv4()]),
        [section(false, 101), enhanced(false, 1, &seg(1, &hello).ipv4())].concat(),
    ] {
        let mut record = Record::default();
        assert!(read_capture(Dribble(&file), &[CONTROLLER], &mut record).is_ok());
        assert_eq!(record.bytes(), std::slice::from_ref(&hello));
    }
}

#[test]
fn an_input_that_fails_is_an_error_with_its_cause() {
    struct Failing(usize);
    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let file = pcap(RAW, []);
            match self.0.checked_sub(1) {
                None => Err(std::io::ErrorKind::ConnectionReset.into()),
                Some(left) => {
                    self.0 = left;
                    buffer[0] = file[file.len() - 1 - left];
                    Ok(1)
                }
            }
        }
    }
    let mut record = Record::default();
    let result = read_capture(Failing(24), &[CONTROLLER], &mut record);
    let Err(CaptureError::Io(error)) = result else { panic!("{result:?}") };
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}
