//! Announcements: the LLDP frames (IEEE 802.1AB) that the controller sends out of each port.
//!
//! ```text
//!   0  destination 01:80:c2:00:00:0e, which bridges do not forward, or 03:42:52:00:00:02, which they do
//!   6  source: the port's address
//!  12  0x88cc
//!  14  chassis id, locally assigned: "dpid:" and 16 hexadecimal digits
//!  38  port id, locally assigned: 10 decimal digits
//!  51  time to live, in seconds
//!  55  of an organisation: 02-42-52, subtype 1
//!        61  instance: which start of which controller           8 bytes
//!        69  datapath id                                         8 bytes
//!        77  port                                                4 bytes
//!        81  when it was sent, in ns on the controller's clock   8 bytes
//!        89  nonce, counted up; its first bit names the destination 8 bytes
//!        97  HMAC-SHA256 over all that is before                32 bytes
//! 129  end
//! ```
//!
//! All announcements have this form and length. A frame that claims to be one but differs by a bit
//! is forged. The organisation's number has the local bit, so anyone may use it.

use std::time::Duration;

use bellrock_api::packet::{EthHeader, eth_type};
use bellrock_api::{Dpid, MacAddr, Port, SwitchPort};

use super::key::{DiscoveryKey, TAG_LEN};

/// Destination of announcements: only the other end of the link (802.1AB §7.1, nearest bridge).
pub(super) const DESTINATION: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0, 0, 0x0e]);

/// Destination of announcements that find segments: a group address that ordinary switches forward,
/// locally administered. Hosts ignore it.
pub(super) const FORWARDED_DESTINATION: MacAddr = MacAddr([0x03, b'B', b'R', 0, 0, 2]);

/// Source of the announcements of ports without an address of their own: ordinary switches drop
/// frames from 00:00:00:00:00:00.
const SOURCE: MacAddr = MacAddr([0x02, b'B', b'R', 0, 0, 2]);

/// Bit of the nonce of announcements to [`FORWARDED_DESTINATION`].
const FORWARDED: u64 = 1 << 63;

/// How far an announcement goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// To the other end of the cable.
    Cable,
    /// Through ordinary switches.
    Segment,
}

/// Whether the announcement with this nonce goes through ordinary switches.
pub(super) fn is_forwarded(nonce: u64) -> bool {
    nonce & FORWARDED != 0
}

/// Bytes of an announcement.
pub(super) const FRAME_LEN: usize = END_AT + 2;

/// Maximum time to live of an announcement, in seconds: the maximum of its 16-bit field.
const MAX_TTL_S: u64 = u16::MAX as u64;

const TLV_CHASSIS: u8 = 1;
const TLV_PORT: u8 = 2;
const TLV_TTL: u8 = 3;
const TLV_ORGANISATION: u8 = 127;
const LOCALLY_ASSIGNED: u8 = 7;
const OURS: [u8; 4] = [0x02, b'B', b'R', 1];
const CHASSIS_PREFIX: &[u8] = b"dpid:";

const CHASSIS_AT: usize = EthHeader::BYTES;
const CHASSIS_LEN: usize = 1 + CHASSIS_PREFIX.len() + 16;
const PORT_AT: usize = CHASSIS_AT + 2 + CHASSIS_LEN;
const PORT_LEN: usize = 1 + 10;
const TTL_AT: usize = PORT_AT + 2 + PORT_LEN;
const OURS_AT: usize = TTL_AT + 4;
const INSTANCE_AT: usize = OURS_AT + 2 + OURS.len();
const DPID_AT: usize = INSTANCE_AT + 8;
const PORT_NO_AT: usize = DPID_AT + 8;
const SENT_AT: usize = PORT_NO_AT + 4;
const NONCE_AT: usize = SENT_AT + 8;
const TAG_AT: usize = NONCE_AT + 8;
const END_AT: usize = TAG_AT + TAG_LEN;

/// A port's announcement, complete except for its time and nonce.
#[derive(Clone)]
pub(super) struct PreparedAnnouncement(Box<[u8; FRAME_LEN]>);

/// The contents of an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Announcement {
    /// The start of the controller that made it.
    pub(super) instance: u64,
    /// The port that sent it.
    pub(super) from: SwitchPort,
    /// When it was sent.
    pub(super) sent: Duration,
    pub(super) nonce: u64,
}

/// The kind of an LLDP frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LldpKind {
    /// An announcement signed with the key.
    Announcement(Announcement),
    /// Claims to be an announcement, but its signature is not valid.
    Forged,
    /// Sent by another device.
    Foreign,
}

impl PreparedAnnouncement {
    pub(super) fn new(instance: u64, from: SwitchPort, source: MacAddr, ttl: Duration) -> Self {
        let mut frame = Box::new([0; FRAME_LEN]);
        let mut put = |at: usize, bytes: &[u8]| {
            for (to, byte) in frame.iter_mut().skip(at).zip(bytes) {
                *to = *byte;
            }
        };
        let source = if source == MacAddr::ZERO { SOURCE } else { source };
        put(0, &DESTINATION.0);
        put(6, &source.0);
        put(12, &eth_type::LLDP.to_be_bytes());
        put(CHASSIS_AT, &tlv(TLV_CHASSIS, CHASSIS_LEN));
        put(CHASSIS_AT + 2, &[LOCALLY_ASSIGNED]);
        put(CHASSIS_AT + 3, format!("dpid:{}", from.dpid).as_bytes());
        put(PORT_AT, &tlv(TLV_PORT, PORT_LEN));
        put(PORT_AT + 2, &[LOCALLY_ASSIGNED]);
        put(PORT_AT + 3, format!("{:010}", from.port.0).as_bytes());
        put(TTL_AT, &tlv(TLV_TTL, 2));
        let seconds = ttl.as_secs().min(MAX_TTL_S) as u16;
        put(TTL_AT + 2, &seconds.to_be_bytes());
        put(OURS_AT, &tlv(TLV_ORGANISATION, END_AT - OURS_AT - 2));
        put(OURS_AT + 2, &OURS);
        put(INSTANCE_AT, &instance.to_be_bytes());
        put(DPID_AT, &from.dpid.0.to_be_bytes());
        put(PORT_NO_AT, &from.port.0.to_be_bytes());
        PreparedAnnouncement(frame)
    }

    /// Fills in destination, time and nonce, signs the announcement, and returns it.
    pub(super) fn sign(
        &mut self,
        key: &DiscoveryKey,
        reach: Reach,
        sent: Duration,
        nonce: u64,
    ) -> &[u8] {
        let frame = &mut self.0;
        let (destination, nonce) = match reach {
            Reach::Cable => (DESTINATION, nonce & !FORWARDED),
            Reach::Segment => (FORWARDED_DESTINATION, nonce | FORWARDED),
        };
        frame.iter_mut().zip(destination.0).for_each(|(to, byte)| *to = byte);
        let sent = (sent.as_nanos() as u64).to_be_bytes();
        if let Some(to) = frame.get_mut(SENT_AT..TAG_AT) {
            let values = sent.into_iter().chain(nonce.to_be_bytes());
            to.iter_mut().zip(values).for_each(|(to, byte)| *to = byte);
        }
        if let Some((text, rest)) = frame.split_at_mut_checked(TAG_AT) {
            let tag = key.sign(text);
            rest.iter_mut().zip(tag).for_each(|(to, byte)| *to = byte);
        }
        frame.as_slice()
    }
}

/// Returns the number of the start of the controller in a frame that has the form of an
/// announcement, whoever made it.
pub(super) fn stated_instance(frame: &[u8]) -> Option<u64> {
    let is_ours = frame.get(OURS_AT + 2..)?.first_chunk() == Some(&OURS);
    let number = frame.get(INSTANCE_AT..)?.first_chunk()?;
    is_ours.then(|| u64::from_be_bytes(*number))
}

impl LldpKind {
    /// Reads an LLDP frame, beginning with its Ethernet header. Bytes behind its end are padding.
    pub(super) fn read(frame: &[u8], key: &DiscoveryKey) -> Self {
        match Announcement::read(frame, key) {
            Some(announcement) => LldpKind::Announcement(announcement),
            None if claims_to_be_ours(frame) => LldpKind::Forged,
            None => LldpKind::Foreign,
        }
    }
}

impl Announcement {
    fn read(frame: &[u8], key: &DiscoveryKey) -> Option<Self> {
        let number = |at: usize| -> Option<u64> {
            Some(u64::from_be_bytes(*frame.get(at..)?.first_chunk()?))
        };
        if frame.get(OURS_AT + 2..)?.first_chunk() != Some(&OURS) {
            return None;
        }
        let (text, rest) = frame.split_at_checked(TAG_AT)?;
        if !key.verify(text, rest.first_chunk()?) {
            return None;
        }
        let port = u32::from_be_bytes(*frame.get(PORT_NO_AT..)?.first_chunk()?);
        Some(Announcement {
            instance: number(INSTANCE_AT)?,
            from: SwitchPort::new(Dpid(number(DPID_AT)?), Port(port)),
            sent: Duration::from_nanos(number(SENT_AT)?),
            nonce: number(NONCE_AT)?,
        })
    }
}

/// Whether an unsigned frame claims to be an announcement: it has the organisation's number, or a
/// chassis id in the form of an announcement.
fn claims_to_be_ours(frame: &[u8]) -> bool {
    let mut rest = frame.get(EthHeader::BYTES..).unwrap_or(&[]);
    // Each step takes at least two bytes.
    while let Some((head, body)) = rest.split_first_chunk::<2>() {
        let head = u16::from_be_bytes(*head);
        let (kind, len) = ((head >> 9) as u8, usize::from(head & 0x1ff));
        if kind == 0 {
            return false;
        }
        let value = body.get(..len.min(body.len())).unwrap_or(&[]);
        let is_ours = match kind {
            TLV_CHASSIS => value.get(1..).is_some_and(|id| id.starts_with(CHASSIS_PREFIX)),
            TLV_ORGANISATION => value.starts_with(&OURS),
            _ => false,
        };
        if is_ours {
            return true;
        }
        rest = body.get(len..).unwrap_or(&[]);
    }
    false
}

/// Returns the first two bytes of a TLV (802.1AB §8.4).
fn tlv(kind: u8, len: usize) -> [u8; 2] {
    (u16::from(kind) << 9 | (len as u16 & 0x1ff)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> DiscoveryKey {
        DiscoveryKey::new(&[7; 32]).unwrap()
    }

    fn announcement() -> (Announcement, Vec<u8>) {
        let from = SwitchPort::new(Dpid(0xa1), Port(48));
        let (sent, nonce, instance) = (Duration::from_nanos(1_234_567_890), 9, 77);
        let mut frame = PreparedAnnouncement::new(
            instance,
            from,
            MacAddr([2, 0, 0, 0, 0, 1]),
            Duration::from_secs(15),
        );
        let bytes = frame.sign(&key(), Reach::Cable, sent, nonce & !FORWARDED).to_vec();
        (Announcement { instance, from, sent, nonce }, bytes)
    }

    #[test]
    fn an_announcement_is_lldp_and_reads_as_it_was_written() {
        let (announcement, bytes) = announcement();
        assert_eq!(bytes.len(), FRAME_LEN);
        assert_eq!(bytes[..6], DESTINATION.0);
        assert_eq!(bytes[12..17], [0x88, 0xcc, 0x02, 22, 7]);
        assert_eq!(bytes[17..38], *b"dpid:00000000000000a1");
        assert_eq!(bytes[38..51], *b"\x04\x0b\x070000000048");
        assert_eq!(bytes[51..55], [0x06, 2, 0, 15]);
        assert_eq!(bytes[END_AT..], [0, 0]);
        assert_eq!(LldpKind::read(&bytes, &key()), LldpKind::Announcement(announcement));
        let padded = [&bytes[..], &[0; 9]].concat();
        assert_eq!(LldpKind::read(&padded, &key()), LldpKind::Announcement(announcement));
    }

    #[test]
    fn whatever_is_changed_makes_it_forged() {
        let (_, bytes) = announcement();
        for bit in EthHeader::BYTES * 8..END_AT * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(
                !matches!(LldpKind::read(&bytes, &key()), LldpKind::Announcement(_)),
                "bit {bit}"
            );
        }
        let other = DiscoveryKey::new(&[8; 32]).unwrap();
        assert_eq!(LldpKind::read(&bytes, &other), LldpKind::Forged);
        assert_eq!(LldpKind::read(&bytes[..END_AT - 1], &key()), LldpKind::Forged);
    }

    #[test]
    fn lldp_of_other_devices_is_foreign_and_an_imitation_is_forged() {
        let lldp =
            |tlvs: &[u8]| [&DESTINATION.0[..], &[2, 0, 0, 0, 0, 1, 0x88, 0xcc], tlvs].concat();
        let host =
            lldp(b"\x02\x07\x04\x02\x00\x00\x00\x00\x01\x04\x05\x05eth0\x06\x02\x00\x78\x00\x00");
        assert_eq!(LldpKind::read(&host, &key()), LldpKind::Foreign);
        let imitated =
            lldp(b"\x02\x16\x07dpid:00000000000000a1\x04\x02\x071\x06\x02\x00\x78\x00\x00");
        assert_eq!(LldpKind::read(&imitated, &key()), LldpKind::Forged);
        assert_eq!(LldpKind::read(&lldp(&[]), &key()), LldpKind::Foreign);
        assert_eq!(LldpKind::read(&[], &key()), LldpKind::Foreign);
    }

    proptest! {
        #[test]
        fn no_frame_is_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(!matches!(LldpKind::read(&bytes, &key()), LldpKind::Announcement(_)));
        }
    }
}
