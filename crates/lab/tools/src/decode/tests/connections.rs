//! Which connections count as OpenFlow on unusual ports.

use super::*;

/// A port that is unusual for OpenFlow.
const ODD_PORT: u16 = 7777;

fn hello(version: u8) -> Vec<u8> {
    vec![version, 0, 0, 8, 0, 0, 0, 1]
}

/// A segment from the server back to the client.
fn back(port: u16, segment: Seg) -> Vec<u8> {
    let ip = PacketBuilder::ipv4([10, 0, 0, 2], [10, 0, 0, 1], 64);
    segment.between(ip, port, SWITCH)
}

/// A segment from the client to a server at this port, without Ethernet.
fn to(port: u16, segment: Seg) -> Vec<u8> {
    segment.between(PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64), SWITCH, port)
}

/// Reads these packets without a list of ports.
fn look(packets: impl IntoIterator<Item = Vec<u8>>) -> Record {
    let mut record = Record::default();
    read_capture(&pcap(RAW, packets)[..], &[], &mut record).unwrap();
    record
}

#[test]
fn hellos_both_ways_are_openflow_on_any_port() {
    let more = message(2, 40);
    let record = look([
        to(ODD_PORT, syn(9)),
        back(ODD_PORT, syn(99)),
        back(ODD_PORT, seg(100, &hello(4))),
        to(ODD_PORT, seg(10, &hello(6))),
        to(ODD_PORT, seg(18, &more)),
    ]);
    assert_eq!(record.bytes(), [hello(4), hello(6), more]);
    assert_eq!(record.problems, []);
}

#[test]
fn a_hello_in_pieces_and_in_the_wrong_order_is_one() {
    let bytes = hello(4);
    let record = look([
        to(ODD_PORT, syn(9)),
        back(ODD_PORT, syn(99)),
        to(ODD_PORT, seg(13, &bytes[3..])),
        to(ODD_PORT, seg(10, &bytes[..3])),
        back(ODD_PORT, seg(100, &bytes)),
    ]);
    assert_eq!(record.bytes(), [bytes.clone(), bytes]);
}

#[test]
fn other_protocols_are_left_out() {
    let diameter = [&[1, 0, 0, 20, 0x80, 0, 1, 1][..], &[0; 12]].concat();
    for (client, server) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], &b"HTTP/1.1 200 OK\r\n\r\n"[..]),
        (b"SSH-2.0-x\r\n", b"SSH-2.0-y\r\n"),
        (&diameter, &diameter),
        // A hello one way is not enough.
        (&hello(4), b"{\"method\":\"echo\"}"),
    ] {
        let record = look([
            to(ODD_PORT, syn(9)),
            back(ODD_PORT, syn(99)),
            to(ODD_PORT, seg(10, client)),
            back(ODD_PORT, seg(100, server)),
            to(ODD_PORT, seg(10 + client.len() as u32, &message(3, 0))),
        ]);
        assert_eq!((record.messages.len(), record.problems.len()), (0, 0), "{client:?}");
    }
}

#[test]
fn a_capture_of_one_direction_is_enough() {
    let record = look([to(ODD_PORT, syn(9)), to(ODD_PORT, seg(10, &hello(4)))]);
    assert_eq!(record.bytes(), [hello(4)]);
}

#[test]
fn connections_from_before_the_capture_show_by_their_messages() {
    let (request, reply) = (message(1, 0), message(1, 4));
    let record = look([to(ODD_PORT, seg(10, &request)), back(ODD_PORT, seg(77, &reply))]);
    assert_eq!(record.bytes(), [request.clone(), reply.clone()]);
    assert_eq!(record.joined, 2);
    // The capture begins inside a message: that is reported.
    let record = look([
        to(ODD_PORT, seg(5, &[0xee; 5])),
        to(ODD_PORT, seg(10, &request)),
        back(ODD_PORT, seg(77, &reply)),
    ]);
    assert_eq!(record.bytes(), [request, reply]);
    let [problem] = &record.problems[..] else { panic!("{:?}", record.problems) };
    assert!(
        problem.to_string().contains("5 bytes skipped: the capture begins inside"),
        "{problem}"
    );
}

#[test]
fn held_segments_are_bounded_and_other_connections_do_not_wait() {
    let noise = seg(10, &[0xee; 100]);
    let many = (0..2 * find::MAX_HELD_SEGMENTS as u32)
        .map(|index| to(ODD_PORT, Seg { sequence: index * 100, ..noise.clone() }));
    let other = [to(6653, syn(9)), to(6653, seg(10, &hello(4)))];
    let record = look(many.chain(other));
    assert_eq!(record.bytes(), [hello(4)]);
}

#[test]
fn ports_that_are_used_again_are_looked_at_again() {
    let record = look([
        to(ODD_PORT, syn(9)),
        to(ODD_PORT, seg(10, b"GET / HTTP/1.1\r\n")),
        to(ODD_PORT, syn(1000)),
        to(ODD_PORT, seg(1001, &hello(1))),
    ]);
    assert_eq!(record.bytes(), [hello(1)]);
}
