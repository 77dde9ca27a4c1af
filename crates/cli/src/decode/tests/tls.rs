//! Captures of TLS, made with `dumpcap` of this controller and of OpenSSL as a switch, which sends
//! packet-ins with numbers.

use std::path::PathBuf;

use super::command::run;

const CAPTURES: [(&str, &[u8]); 3] = [
    ("1.3", include_bytes!("captures/1.3.pcap")),
    ("1.2", include_bytes!("captures/1.2.pcap")),
    ("1.2 with ChaCha20-Poly1305", include_bytes!("captures/1.2-chacha20.pcap")),
];

/// Lengths of the header of a pcap file, and of that of a packet.
const FILE_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;

fn keys() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/decode/tests/captures/keys.txt");
    path.to_str().unwrap().to_owned()
}

fn count(printed: &str, what: &str) -> usize {
    printed.lines().filter(|line| line.contains(what)).count()
}

/// Where each packet of a file lies, with its header.
fn packets(file: &[u8]) -> Vec<std::ops::Range<usize>> {
    let (mut at, mut all) = (FILE_HEADER, Vec::new());
    while at < file.len() {
        let length = file[at + 8..at + 12].try_into().unwrap();
        let end = at + PACKET_HEADER + u32::from_le_bytes(length) as usize;
        all.push(at..end);
        at = end;
    }
    all
}

#[test]
fn connections_by_tls_are_decrypted_with_their_keys() {
    for (name, capture) in CAPTURES {
        let (printed, outcome) = run(&["--keys", &keys()], capture);
        assert_eq!(outcome.faults, 0, "{name}: {printed}");
        assert_eq!(count(&printed, "OFPT_HELLO (OF1.3)"), 2, "{name}: {printed}");
        assert_eq!(count(&printed, "dpid=0000000000000001"), 1, "{name}: {printed}");
        // At least one before the switch was up, and three after that, each with its answer.
        let packet_ins = count(&printed, "OFPT_PACKET_IN");
        assert!(packet_ins >= 4, "{name}: {printed}");
        assert_eq!(count(&printed, "OFPT_PACKET_OUT"), packet_ins, "{name}: {printed}");
        let messages = printed.lines().filter(|line| !line.starts_with(" ")).count();
        assert_eq!(outcome.messages as usize, messages, "{name}: {printed}");
    }
}

#[test]
fn without_their_keys_it_says_what_is_missing() {
    for (name, capture) in CAPTURES {
        let (printed, outcome) = run(&[], capture);
        assert!(outcome.faults > 0 && printed.contains("with --keys"), "{name}: {printed}");
        let others = std::env::temp_dir().join(format!("bellrock-keys-{}", std::process::id()));
        let line = format!("CLIENT_RANDOM {} 00\n", "00".repeat(32));
        std::fs::write(&others, line).unwrap();
        let (printed, outcome) = run(&["--keys", others.to_str().unwrap()], capture);
        std::fs::remove_file(&others).unwrap();
        assert_eq!((outcome.messages, outcome.faults), (0, 1), "{name}: {printed}");
        assert!(printed.contains("the key log has no keys of this session"), "{name}: {printed}");
    }
}

#[test]
fn a_changed_record_and_a_lost_one_end_what_can_be_decrypted_and_nothing_is_made_up() {
    for (name, capture) in CAPTURES {
        let (whole, _) = run(&["--keys", &keys()], capture);
        // From the middle on, so that the handshake is over. Packets of TCP alone are short.
        let packets = packets(capture);
        let is_data = |at: &&std::ops::Range<usize>| at.len() > PACKET_HEADER + 90;
        let victim = packets.iter().skip(packets.len() / 2).find(is_data).unwrap().clone();
        let mut changed = capture.to_vec();
        changed[victim.end - 20] ^= 1;
        let lost = [&capture[..victim.start], &capture[victim.end..]].concat();
        for (how, file, text) in [
            ("changed", changed, "a record does not fit the keys"),
            ("lost", lost, "stays encrypted"),
        ] {
            let (printed, outcome) = run(&["--keys", &keys()], &file);
            assert!(printed.contains(text), "{name}, {how}: {printed}");
            assert!(outcome.messages > 0, "{name}, {how}: {printed}");
            let messages = printed.lines().filter(|line| line.contains(": OFPT_"));
            for line in messages {
                assert!(whole.contains(line), "{name}, {how}: {line}");
            }
        }
    }
}

#[test]
fn every_end_of_a_capture_and_every_changed_byte_is_survived() {
    for (_, capture) in CAPTURES {
        for end in (FILE_HEADER..capture.len()).step_by(97) {
            let cli_end = &capture[..end];
            let _ = super::command::attempt(&["--keys", &keys()], cli_end);
            let mut changed = capture.to_vec();
            changed[end] ^= 0x55;
            let _ = super::command::attempt(&["--keys", &keys()], &changed);
        }
    }
}
