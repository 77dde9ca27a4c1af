//! Frames as text: the frames that conversations send into ports, and the frames that leave.
//!
//! A frame is its headers from the outside in. Each is a word with its addresses, then the options
//! that are not the default:
//!
//! ```text
//! eth 01>02 vlan 10 pcp=3 ipv4 10.0.0.1>10.0.0.2 ttl=9 udp 1000>2000 data 8
//! eth 01>ff:ff:ff:ff:ff:ff arp request 10.0.0.1>10.0.0.2 sha=01 tha=00
//! ```
//!
//! `01` is 00:00:00:00:00:01. Types, lengths and checksums are right unless they are given. `data
//! 8` is the eight bytes 0 to 7. Printing is exact: a text always builds the bytes that it was
//! printed from. So frames with the same text are equal to the last bit. A frame without such a
//! text prints as `hex`.
//!
//! No code here comes from the emulator: the emulator is tested against it.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::frame_print;

pub(crate) type Result<T> = std::result::Result<T, String>;

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const ARP: u16 = 0x0806;
pub(crate) const VLAN: u16 = 0x8100;
pub(crate) const SVLAN: u16 = 0x88a8;
pub(crate) const IPV6: u16 = 0x86dd;
pub(crate) const MPLS: u16 = 0x8847;
pub(crate) const MPLS_MULTICAST: u16 = 0x8848;
pub(crate) const PBB: u16 = 0x88e7;

pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMPV6: u8 = 58;
pub(crate) const SCTP: u8 = 132;

/// The IPv6 extension headers that have a word, with their numbers.
pub(crate) const EXTENSIONS: [(&str, u8); 3] = [("hop-by-hop", 0), ("routing", 43), ("dest", 60)];

/// Default values of headers.
pub(crate) const TTL: u8 = 64;
pub(crate) const TCP_FLAGS: u16 = 0x10;
pub(crate) const TCP_WINDOW: u16 = 0xffff;

/// Builds the frame of a text.
pub(crate) fn build(text: &str) -> Result<Vec<u8>> {
    if let Some(hex) = text.trim().strip_prefix("hex ") {
        return bytes_of_hex(hex);
    }
    let layers = layers(text)?;
    Ok(encode(&layers, None)?.bytes)
}

/// The text of a frame: it builds the same bytes.
pub(crate) fn print(frame: &[u8]) -> String {
    let text = frame_print::frame(frame);
    match text {
        Some(text) if build(&text).as_deref() == Ok(frame) => text,
        _ => format!("hex {}", hex_of_bytes(frame)),
    }
}

/// A header in the text.
struct Layer<'t> {
    kind: &'t str,
    /// The words after it that are no options.
    words: Vec<&'t str>,
    options: Vec<(&'t str, &'t str)>,
}

const KINDS: &[&str] = &[
    "eth",
    "vlan",
    "svlan",
    "mpls",
    "mplsm",
    "pbb",
    "arp",
    "ipv4",
    "ipv6",
    "hop-by-hop",
    "routing",
    "dest",
    "fragment",
    "tcp",
    "udp",
    "sctp",
    "icmp",
    "icmpv6",
    "ns",
    "na",
    "data",
    "pad",
];

fn layers(text: &str) -> Result<Vec<Layer<'_>>> {
    let mut layers: Vec<Layer<'_>> = Vec::new();
    for word in text.split_whitespace() {
        match (word.split_once('='), layers.last_mut()) {
            (None, _) if KINDS.contains(&word) => {
                layers.push(Layer { kind: word, words: Vec::new(), options: Vec::new() });
            }
            (Some(option), Some(layer)) => layer.options.push(option),
            (None, Some(layer)) => layer.words.push(word),
            (_, None) => return Err(format!("a frame begins with a header, not with `{word}`")),
        }
    }
    Ok(layers)
}

impl<'t> Layer<'t> {
    fn word(&self, what: &str) -> Result<&'t str> {
        self.words.first().copied().ok_or_else(|| format!("`{}` without its {what}", self.kind))
    }

    /// Both sides of the `>` of one of its words.
    fn pair(&self, word: usize) -> Result<(&'t str, &'t str)> {
        let word = self.words.get(word).copied().unwrap_or_default();
        word.split_once('>').ok_or_else(|| format!("`{}` needs `from>to`, not `{word}`", self.kind))
    }

    fn option(&self, name: &str) -> Option<&'t str> {
        self.options.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    fn number(&self, name: &str, usual: u64) -> Result<u64> {
        self.option(name).map_or(Ok(usual), number)
    }

    fn mac(&self, name: &str) -> Result<[u8; 6]> {
        self.option(name).map_or(Ok([0; 6]), mac)
    }

    fn check(&self, known: &[&str]) -> Result<()> {
        match self.options.iter().find(|(key, _)| !known.contains(key)) {
            Some((key, _)) => Err(format!("`{}` has no `{key}`; it has {known:?}", self.kind)),
            None => Ok(()),
        }
    }
}

/// The addresses of the header around, for checksums.
#[derive(Clone, Copy)]
enum Around {
    V4(Ipv4Addr, Ipv4Addr),
    V6(Ipv6Addr, Ipv6Addr),
}

/// A header with its content, and the types that announce it in the header around.
struct Encoded {
    bytes: Vec<u8>,
    /// Bytes after the frame's content, which no length includes.
    pad: usize,
    eth_type: Option<u16>,
    protocol: Option<u8>,
}

fn encode(layers: &[Layer<'_>], around: Option<Around>) -> Result<Encoded> {
    let Some((layer, inner)) = layers.split_first() else {
        return Ok(Encoded { bytes: Vec::new(), pad: 0, eth_type: None, protocol: None });
    };
    let around = match layer.kind {
        "ipv4" => {
            let (from, to) = layer.pair(0)?;
            Some(Around::V4(address(from)?, address(to)?))
        }
        "ipv6" => {
            let (from, to) = layer.pair(0)?;
            Some(Around::V6(address(from)?, address(to)?))
        }
        _ => around,
    };
    let inner = encode(inner, around)?;
    let mut out = Encoded { bytes: Vec::new(), pad: inner.pad, eth_type: None, protocol: None };
    match layer.kind {
        "eth" => ethernet(layer, &inner, &mut out)?,
        "vlan" | "svlan" => vlan(layer, &inner, &mut out)?,
        "mpls" | "mplsm" => mpls(layer, &inner, &mut out)?,
        "pbb" => pbb(layer, &inner, &mut out)?,
        "arp" => arp(layer, &inner, &mut out)?,
        "ipv4" => ipv4(layer, &inner, around, &mut out)?,
        "ipv6" => ipv6(layer, &inner, around, &mut out)?,
        "hop-by-hop" | "routing" | "dest" => extension(layer, &inner, &mut out)?,
        "fragment" => fragment(layer, &inner, &mut out)?,
        "tcp" | "udp" | "sctp" => transport(layer, &inner, around, &mut out)?,
        "icmp" | "icmpv6" | "ns" | "na" => icmp(layer, &inner, around, &mut out)?,
        "data" => {
            out.bytes = match layer.word("length")? {
                hex if hex.starts_with("0x") => bytes_of_hex(&hex[2..])?,
                length => (0..number(length)?).map(|i| i as u8).collect(),
            };
            out.bytes.extend_from_slice(&inner.bytes);
        }
        _ => {
            let length = number(layer.word("length")?)? as usize;
            out.pad = length;
            out.bytes = vec![0; length];
        }
    }
    Ok(out)
}

/// The type in front of the inner header: the given one, or the header's own.
fn inner_type(layer: &Layer<'_>, inner: &Encoded) -> Result<u16> {
    match (layer.option("type"), inner.eth_type) {
        (Some(given), _) => Ok(number(given)? as u16),
        (None, Some(eth_type)) => Ok(eth_type),
        (None, None) => Err(format!("`{}` needs `type=`: nothing inside tells it", layer.kind)),
    }
}

fn inner_protocol(layer: &Layer<'_>, inner: &Encoded) -> Result<u8> {
    match (layer.option("proto"), inner.protocol) {
        (Some(given), _) => Ok(number(given)? as u8),
        (None, Some(protocol)) => Ok(protocol),
        (None, None) => Err(format!("`{}` needs `proto=`: nothing inside tells it", layer.kind)),
    }
}

fn ethernet(layer: &Layer<'_>, inner: &Encoded, out: &mut Encoded) -> Result<()> {
    layer.check(&["type"])?;
    let (from, to) = layer.pair(0)?;
    out.bytes.extend(mac(to)?);
    out.bytes.extend(mac(from)?);
    out.bytes.extend(inner_type(layer, inner)?.to_be_bytes());
    out.bytes.extend(&inner.bytes);
    Ok(())
}

fn vlan(layer: &Layer<'_>, inner: &Encoded, out: &mut Encoded) -> Result<()> {
    layer.check(&["pcp", "dei", "type"])?;
    let tag =
        number(layer.word("id")?)? | layer.number("pcp", 0)? << 13 | layer.number("dei", 0)? << 12;
    out.bytes.extend((tag as u16).to_be_bytes());
    out.bytes.extend(inner_type(layer, inner)?.to_be_bytes());
    out.bytes.extend(&inner.bytes);
    out.eth_type = Some(if layer.kind == "vlan" { VLAN } else { SVLAN });
    Ok(())
}

/// A label that no other label follows is the bottom of the stack.
fn mpls(layer: &Layer<'_>, inner: &Encoded, out: &mut Encoded) -> Result<()> {
    layer.check(&["tc", "ttl", "bos"])?;
    let follows = matches!(inner.eth_type, Some(MPLS | MPLS_MULTICAST));
    let (tc, bos) = (layer.number("tc", 0)?, layer.number("bos", u64::from(!follows))?);
    let ttl = layer.number("ttl", TTL.into())?;
    let word = number(layer.word("label")?)? << 12 | tc << 9 | bos << 8 | ttl;
    out.bytes.extend((word as u32).to_be_bytes());
    out.bytes.extend(&inner.bytes);
    out.eth_type = Some(if layer.kind == "mpls" { MPLS } else { MPLS_MULTICAST });
    Ok(())
}

/// A service tag, which has the frame's own addresses after it: `pbb ISID FROM>TO`.
fn pbb(layer: &Layer<'_>, inner: &Encoded, out: &mut Encoded) -> Result<()> {
    layer.check(&["pcp", "dei", "uca", "type"])?;
    let flags = layer.number("pcp", 0)? << 29
        | layer.number("dei", 0)? << 28
        | layer.number("uca", 0)? << 27;
    let (from, to) = layer.pair(1)?;
    out.bytes.extend(((number(layer.word("service")?)? | flags) as u32).to_be_bytes());
    out.bytes.extend(mac(to)?);
    out.bytes.extend(mac(from)?);
    out.bytes.extend(inner_type(layer, inner)?.to_be_bytes());
    out.bytes.extend(&inner.bytes);
    out.eth_type = Some(PBB);
    Ok(())
}

fn arp(layer: &Layer<'_>, inner: &Encoded, out: &mut Encoded) -> Result<()> {
    layer.check(&["sha", "tha"])?;
    let operation = match layer.word("operation")? {
        "request" => 1,
        "reply" => 2,
        other => number(other)? as u16,
    };
    let (from, to) = layer.pair(1)?;
    out.bytes.extend([0, 1, 8, 0, 6, 4]);
    out.bytes.extend(operation.to_be_bytes());
    out.bytes.extend(layer.mac("sha")?);
    out.bytes.extend(address::<Ipv4Addr>(from)?.octets());
    out.bytes.extend(layer.mac("tha")?);
    out.bytes.extend(address::<Ipv4Addr>(to)?.octets());
    out.bytes.extend(&inner.bytes);
    out.eth_type = Some(ARP);
    Ok(())
}

fn ipv4(
    layer: &Layer<'_>,
    inner: &Encoded,
    around: Option<Around>,
    out: &mut Encoded,
) -> Result<()> {
    layer.check(&[
        "dscp", "ecn", "id", "df", "more", "at", "ttl", "proto", "options", "checksum", "length",
    ])?;
    let Some(Around::V4(from, to)) = around else { return Err("ipv4 without addresses".into()) };
    let options = layer.option("options").map_or(Ok(Vec::new()), bytes_of_hex)?;
    let length = 20 + options.len() + inner.bytes.len() - inner.pad;
    let fragment = layer.number("df", 0)? << 14
        | layer.number("more", 0)? << 13
        | (layer.number("at", 0)? / 8);
    let mut head = vec![0x40 | (5 + options.len() / 4) as u8];
    head.push((layer.number("dscp", 0)? << 2 | layer.number("ecn", 0)?) as u8);
    head.extend((layer.number("length", length as u64)? as u16).to_be_bytes());
    head.extend((layer.number("id", 0)? as u16).to_be_bytes());
    head.extend((fragment as u16).to_be_bytes());
    head.push(layer.number("ttl", TTL.into())? as u8);
    head.push(inner_protocol(layer, inner)?);
    head.extend([0, 0]);
    head.extend(from.octets());
    head.extend(to.octets());
    head.extend(options);
    put_checksum(layer, &mut head, 10, &[])?;
    out.bytes = head;
    out.bytes.extend(&inner.bytes);
    out.eth_type = Some(IPV4);
    Ok(())
}

fn ipv6(
    layer: &Layer<'_>,
    inner: &Encoded,
    around: Option<Around>,
    out: &mut Encoded,
) -> Result<()> {
    layer.check(&["dscp", "ecn", "flabel", "ttl", "proto", "length"])?;
    let Some(Around::V6(from, to)) = around else { return Err("ipv6 without addresses".into()) };
    let class = layer.number("dscp", 0)? << 2 | layer.number("ecn", 0)?;
    let word = 6 << 28 | class << 20 | layer.number("flabel", 0)?;
    let length = (inner.bytes.len() - inner.pad) as u64;
    out.bytes.extend((word as u32).to_be_bytes());
    out.bytes.extend((layer.number("length", length)? as u16).to_be_bytes());
    out.bytes.push(inner_protocol(layer, inner)?);
    out.bytes.push(layer.number("ttl", TTL.into())? as u8);
    out.bytes.extend(from.octets());
    out.bytes.extend(to.octets());
    out.bytes.extend(&inner.bytes);
    out.eth_type = Some(IPV6);
    Ok(())
}

/// Eight bytes, padded with one PadN option (a routing header with no segments left).
fn extension(layer: &Layer<'_>, inner: &Encoded, out: &mut Encoded) -> Result<()> {
    layer.check(&["proto"])?;
    out.bytes.extend([inner_protocol(layer, inner)?, 0]);
    out.bytes.extend(if layer.kind == "routing" { [0; 6] } else { [1, 4, 0, 0, 0, 0] });
    out.bytes.extend(&inner.bytes);
    out.protocol =
        EXTENSIONS.iter().find(|(name, _)| *name == layer.kind).map(|(_, number)| *number);
    Ok(())
}

fn fragment(layer: &Layer<'_>, inner: &Encoded, out: &mut Encoded) -> Result<()> {
    layer.check(&["proto", "more", "at", "id"])?;
    let place = layer.number("at", 0)? | layer.number("more", 0)?;
    out.bytes.extend([inner_protocol(layer, inner)?, 0]);
    out.bytes.extend((place as u16).to_be_bytes());
    out.bytes.extend((layer.number("id", 0)? as u32).to_be_bytes());
    out.bytes.extend(&inner.bytes);
    out.protocol = Some(44);
    Ok(())
}

fn transport(
    layer: &Layer<'_>,
    inner: &Encoded,
    around: Option<Around>,
    out: &mut Encoded,
) -> Result<()> {
    layer.check(&["checksum", "length", "flags", "seq", "ack", "window", "tag"])?;
    let (from, to) = layer.pair(0)?;
    let mut bytes = Vec::new();
    bytes.extend((number(from)? as u16).to_be_bytes());
    bytes.extend((number(to)? as u16).to_be_bytes());
    let content = &inner.bytes[..inner.bytes.len() - inner.pad];
    let (protocol, checksum_at) = match layer.kind {
        "tcp" => {
            let flags = 5 << 12 | layer.number("flags", TCP_FLAGS.into())?;
            bytes.extend((layer.number("seq", 0)? as u32).to_be_bytes());
            bytes.extend((layer.number("ack", 0)? as u32).to_be_bytes());
            bytes.extend((flags as u16).to_be_bytes());
            bytes.extend((layer.number("window", TCP_WINDOW.into())? as u16).to_be_bytes());
            bytes.extend([0; 4]);
            (TCP, 16)
        }
        "udp" => {
            let length = 8 + content.len();
            bytes.extend((layer.number("length", length as u64)? as u16).to_be_bytes());
            bytes.extend([0; 2]);
            (UDP, 6)
        }
        _ => {
            bytes.extend((layer.number("tag", 0)? as u32).to_be_bytes());
            bytes.extend([0; 4]);
            (SCTP, 8)
        }
    };
    bytes.extend_from_slice(content);
    if protocol == SCTP {
        let sum = layer.number("checksum", crc32c(&bytes).swap_bytes().into())? as u32;
        bytes[checksum_at..checksum_at + 4].copy_from_slice(&sum.to_be_bytes());
    } else {
        let pseudo = pseudo_header(around, protocol, bytes.len());
        put_checksum(layer, &mut bytes, checksum_at, &pseudo)?;
        // In UDP a sum of zero would mean "no checksum".
        if protocol == UDP && layer.option("checksum").is_none() && bytes[6..8] == [0, 0] {
            bytes[6..8].fill(0xff);
        }
    }
    bytes.extend(vec![0; inner.pad]);
    out.bytes = bytes;
    out.protocol = Some(protocol);
    Ok(())
}

/// `icmp TYPE/CODE`; `ns TARGET sll=` and `na TARGET tll=` are neighbour discovery.
fn icmp(
    layer: &Layer<'_>,
    inner: &Encoded,
    around: Option<Around>,
    out: &mut Encoded,
) -> Result<()> {
    layer.check(&["rest", "checksum", "sll", "tll"])?;
    let mut bytes = Vec::new();
    match layer.kind {
        "ns" | "na" => {
            bytes.extend([if layer.kind == "ns" { 135 } else { 136 }, 0, 0, 0]);
            bytes.extend((layer.number("rest", 0)? as u32).to_be_bytes());
            bytes.extend(address::<Ipv6Addr>(layer.word("target")?)?.octets());
            for (option, number) in [("sll", 1), ("tll", 2)] {
                if let Some(value) = layer.option(option) {
                    bytes.extend([number, 1]);
                    bytes.extend(mac(value)?);
                }
            }
        }
        _ => {
            let (kind, code) =
                layer.word("type/code")?.split_once('/').ok_or("icmp needs TYPE/CODE")?;
            bytes.extend([number(kind)? as u8, number(code)? as u8, 0, 0]);
            bytes.extend((layer.number("rest", 0)? as u32).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&inner.bytes[..inner.bytes.len() - inner.pad]);
    let protocol = if layer.kind == "icmp" { ICMP } else { ICMPV6 };
    let pseudo = if layer.kind == "icmp" {
        Vec::new()
    } else {
        pseudo_header(around, protocol, bytes.len())
    };
    put_checksum(layer, &mut bytes, 2, &pseudo)?;
    bytes.extend(vec![0; inner.pad]);
    out.bytes = bytes;
    out.protocol = Some(protocol);
    Ok(())
}

fn pseudo_header(around: Option<Around>, protocol: u8, length: usize) -> Vec<u8> {
    let mut pseudo = Vec::new();
    match around {
        Some(Around::V4(from, to)) => {
            pseudo.extend(from.octets());
            pseudo.extend(to.octets());
        }
        Some(Around::V6(from, to)) => {
            pseudo.extend(from.octets());
            pseudo.extend(to.octets());
        }
        None => {}
    }
    pseudo.extend((length as u32).to_be_bytes());
    pseudo.extend([0, 0, 0, protocol]);
    pseudo
}

/// Writes the Internet checksum (or the given one) at its position, which is zero before.
fn put_checksum(layer: &Layer<'_>, bytes: &mut [u8], at: usize, pseudo: &[u8]) -> Result<()> {
    let sum = match layer.option("checksum") {
        Some(given) => number(given)? as u16,
        None => checksum(&[pseudo, bytes]),
    };
    bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    Ok(())
}

/// The Internet checksum (RFC 1071). Every part but the last has an even length.
pub(crate) fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let mut sum: u64 = words
        .map(|word| u64::from(word[0]) << 8 | u64::from(word.get(1).copied().unwrap_or(0)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// CRC-32C (RFC 9260, appendix A), bit by bit as in its definition.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0x82f6_3b78 };
        }
    }
    !crc
}

/// A number, in decimal or with `0x`.
pub(crate) fn number(text: &str) -> Result<u64> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("`{text}` is no number"))
}

/// An Ethernet address: six bytes with colons, or only its last byte.
pub(crate) fn mac(text: &str) -> Result<[u8; 6]> {
    let mut address = [0; 6];
    let bytes: Vec<&str> = text.split(':').collect();
    if bytes.len() != 1 && bytes.len() != 6 {
        return Err(format!("`{text}` is no Ethernet address"));
    }
    for (to, byte) in address.iter_mut().rev().zip(bytes.iter().rev()) {
        *to =
            u8::from_str_radix(byte, 16).map_err(|_| format!("`{text}` is no Ethernet address"))?;
    }
    Ok(address)
}

fn address<A: std::str::FromStr>(text: &str) -> Result<A> {
    text.parse().map_err(|_| format!("`{text}` is no address"))
}

pub(crate) fn bytes_of_hex(text: &str) -> Result<Vec<u8>> {
    let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    if !digits.len().is_multiple_of(2) {
        return Err(format!("`{text}` has half a byte"));
    }
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16);
    let bytes: std::result::Result<_, _> = digits.chunks(2).map(byte).collect();
    bytes.map_err(|_| format!("`{text}` is not hexadecimal"))
}

pub(crate) fn hex_of_bytes(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
