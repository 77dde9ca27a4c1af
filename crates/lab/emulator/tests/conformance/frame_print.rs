//! Prints a frame header by header; [`super::frame`] describes the text.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::frame::{
    ARP, EXTENSIONS, ICMP, ICMPV6, IPV4, IPV6, MPLS, MPLS_MULTICAST, PBB, SCTP, SVLAN, TCP,
    TCP_FLAGS, TCP_WINDOW, TTL, UDP, VLAN, hex_of_bytes,
};

/// The text of the known headers; `None` if a header is truncated.
///
/// The first attempt omits lengths and checksums as right. If its text builds other bytes, the
/// second attempt includes the checksums, and the third is an Ethernet header with data.
pub(super) fn frame(frame: &[u8]) -> Option<String> {
    let as_it_is = |text: &String| super::frame::build(text).as_deref() == Ok(frame);
    [text(frame, false), text(frame, true), ethernet_only(frame)]
        .into_iter()
        .flatten()
        .find(as_it_is)
}

fn ethernet_only(frame: &[u8]) -> Option<String> {
    let mut printer = Printer { rest: frame, text: String::new(), sums: false };
    let head = printer.take(14)?;
    let eth_type = number16(&head[12..]);
    printer.put(format_args!("eth {}>{} type={eth_type:#06x}", Mac(&head[6..12]), Mac(&head[..6])));
    printer.data()?;
    Some(printer.text)
}

fn text(frame: &[u8], sums: bool) -> Option<String> {
    let mut printer = Printer { rest: frame, text: String::new(), sums };
    printer.ethernet("eth")?;
    Some(printer.text)
}

struct Printer<'f> {
    rest: &'f [u8],
    text: String,
    /// Whether to print checksums.
    sums: bool,
}

impl<'f> Printer<'f> {
    fn take(&mut self, n: usize) -> Option<&'f [u8]> {
        let (head, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(head)
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = self.text.write_fmt(text);
    }

    /// Prints ` name=value`, unless it is the default.
    fn option<T: PartialEq + std::fmt::Display>(&mut self, name: &str, value: T, usual: T) {
        if value != usual {
            self.put(format_args!(" {name}={value}"));
        }
    }

    fn sum(&mut self, bytes: &[u8]) {
        if self.sums {
            self.put(format_args!(" checksum=0x{}", hex_of_bytes(bytes)));
        }
    }

    fn ethernet(&mut self, name: &str) -> Option<()> {
        let head = self.take(14)?;
        self.put(format_args!("{name} {}>{}", Mac(&head[6..12]), Mac(&head[..6])));
        self.typed(number16(&head[12..]))
    }

    /// Prints the header with this Ethernet type.
    fn typed(&mut self, eth_type: u16) -> Option<()> {
        match eth_type {
            VLAN | SVLAN => {
                let head = self.take(4)?;
                let tag = number16(head);
                let name = if eth_type == VLAN { "vlan" } else { "svlan" };
                self.put(format_args!(" {name} {}", tag & 0xfff));
                self.option("pcp", tag >> 13, 0);
                self.option("dei", tag >> 12 & 1, 0);
                self.typed(number16(&head[2..]))
            }
            MPLS | MPLS_MULTICAST => self.mpls(if eth_type == MPLS { "mpls" } else { "mplsm" }),
            PBB => {
                let tag = number32(self.take(4)?);
                self.put(format_args!(" pbb {}", tag & 0x00ff_ffff));
                let flags = [("pcp", tag >> 29), ("dei", tag >> 28 & 1), ("uca", tag >> 27 & 1)];
                let mut text = String::new();
                for (name, value) in flags.iter().filter(|(_, value)| *value != 0) {
                    let _ = write!(text, " {name}={value}");
                }
                let head = self.take(14)?;
                self.put(format_args!(" {}>{}{text}", Mac(&head[6..12]), Mac(&head[..6])));
                self.typed(number16(&head[12..]))
            }
            ARP => self.arp(),
            IPV4 => self.ipv4(),
            IPV6 => self.ipv6(),
            other => {
                self.put(format_args!(" type={other:#06x}"));
                self.data()
            }
        }
    }

    /// After the last label the first digit gives the type.
    fn mpls(&mut self, name: &str) -> Option<()> {
        let word = number32(self.take(4)?);
        self.put(format_args!(" {name} {}", word >> 12));
        self.option("tc", word >> 9 & 7, 0);
        self.option("ttl", word & 0xff, TTL.into());
        match (word >> 8 & 1, self.rest.first().map(|byte| byte >> 4)) {
            (0, _) => self.mpls(name),
            (_, Some(4)) => self.ipv4(),
            (_, Some(6)) => self.ipv6(),
            _ => self.data(),
        }
    }

    fn arp(&mut self) -> Option<()> {
        let head = self.take(28)?;
        let operation = match number16(&head[6..]) {
            1 => "request".to_owned(),
            2 => "reply".to_owned(),
            other => other.to_string(),
        };
        self.put(format_args!(" arp {operation} {}>{}", v4(&head[14..]), v4(&head[24..])));
        for (name, mac) in [("sha", &head[8..14]), ("tha", &head[18..24])] {
            if mac != [0; 6] {
                self.put(format_args!(" {name}={}", Mac(mac)));
            }
        }
        self.pad(self.rest.len());
        Some(())
    }

    fn ipv4(&mut self) -> Option<()> {
        let head = self.take(20)?;
        self.put(format_args!(" ipv4 {}>{}", v4(&head[12..]), v4(&head[16..])));
        self.option("dscp", head[1] >> 2, 0);
        self.option("ecn", head[1] & 3, 0);
        self.option("id", number16(&head[4..]), 0);
        let fragment = number16(&head[6..]);
        self.option("df", fragment >> 14 & 1, 0);
        self.option("more", fragment >> 13 & 1, 0);
        self.option("at", (fragment & 0x1fff) * 8, 0);
        self.option("ttl", head[8], TTL);
        let options = self.take((usize::from(head[0] & 15) * 4).checked_sub(20)?)?;
        if !options.is_empty() {
            self.put(format_args!(" options={}", hex_of_bytes(options)));
        }
        self.sum(&head[10..12]);
        let length = usize::from(number16(&head[2..])).checked_sub(20 + options.len())?;
        let pad = self.rest.len().checked_sub(length)?;
        self.content(head[9], fragment & 0x1fff != 0, pad)
    }

    fn ipv6(&mut self) -> Option<()> {
        let head = self.take(40)?;
        let word = number32(head);
        self.put(format_args!(" ipv6 {}>{}", v6(&head[8..]), v6(&head[24..])));
        self.option("dscp", word >> 22 & 0x3f, 0);
        self.option("ecn", word >> 20 & 3, 0);
        if word & 0xf_ffff != 0 {
            self.put(format_args!(" flabel={:#x}", word & 0xf_ffff));
        }
        self.option("ttl", head[7], TTL);
        let pad = self.rest.len().checked_sub(usize::from(number16(&head[4..])))?;
        self.content(head[6], false, pad)
    }

    /// Prints the header with this IP protocol, then `pad` bytes of padding. A later fragment has
    /// no such header.
    fn content(&mut self, protocol: u8, later: bool, pad: usize) -> Option<()> {
        let behind = self.rest.len().checked_sub(pad)?;
        let (content, padding) = self.rest.split_at(behind);
        self.rest = content;
        let extension = EXTENSIONS.iter().find(|(_, number)| *number == protocol);
        match protocol {
            _ if later => {
                self.put(format_args!(" proto={protocol}"));
                self.data()?;
            }
            ICMP | ICMPV6 => self.icmp(protocol)?,
            TCP | UDP | SCTP => self.transport(protocol)?,
            44 => {
                let head = self.take(8)?;
                let place = number16(&head[2..]);
                self.put(format_args!(" fragment"));
                self.option("more", place & 1, 0);
                self.option("at", place & 0xfff8, 0);
                self.option("id", number32(&head[4..]), 0);
                self.content(head[0], place & 0xfff8 != 0, 0)?;
            }
            _ if extension.is_some() => {
                let head = self.take(8)?;
                self.put(format_args!(" {}", extension?.0));
                self.content(head[0], false, 0)?;
            }
            other => {
                self.put(format_args!(" proto={other}"));
                self.data()?;
            }
        }
        self.rest = padding;
        self.pad(pad);
        Some(())
    }

    fn transport(&mut self, protocol: u8) -> Option<()> {
        let length = match protocol {
            TCP => 20,
            UDP => 8,
            _ => 12,
        };
        let head = self.take(length)?;
        let name = match protocol {
            TCP => "tcp",
            UDP => "udp",
            _ => "sctp",
        };
        self.put(format_args!(" {name} {}>{}", number16(head), number16(&head[2..])));
        match protocol {
            TCP => {
                self.option("seq", number32(&head[4..]), 0);
                self.option("ack", number32(&head[8..]), 0);
                let flags = number16(&head[12..]) & 0xfff;
                if flags != TCP_FLAGS {
                    self.put(format_args!(" flags={flags:#x}"));
                }
                self.option("window", number16(&head[14..]), TCP_WINDOW);
                self.sum(&head[16..18]);
            }
            UDP => {
                self.option("length", usize::from(number16(&head[4..])), 8 + self.rest.len());
                self.sum(&head[6..8]);
            }
            _ => {
                self.option("tag", number32(&head[4..]), 0);
                self.sum(&head[8..12]);
            }
        }
        self.data()
    }

    fn icmp(&mut self, protocol: u8) -> Option<()> {
        let head = self.take(8)?;
        let (kind, code) = (head[0], head[1]);
        let discovery = protocol == ICMPV6 && (kind == 135 || kind == 136) && code == 0;
        if discovery && self.rest.len() >= 16 {
            let target = v6(self.take(16)?);
            self.put(format_args!(" {} {target}", if kind == 135 { "ns" } else { "na" }));
            for (name, number) in [("sll", 1), ("tll", 2)] {
                if self.rest.len() >= 8 && self.rest[..2] == [number, 1] {
                    let option = self.take(8)?;
                    self.put(format_args!(" {name}={}", Mac(&option[2..])));
                }
            }
        } else {
            let name = if protocol == ICMP { "icmp" } else { "icmpv6" };
            self.put(format_args!(" {name} {kind}/{code}"));
        }
        if number32(&head[4..]) != 0 {
            self.put(format_args!(" rest={:#x}", number32(&head[4..])));
        }
        self.sum(&head[2..4]);
        self.data()
    }

    fn data(&mut self) -> Option<()> {
        let rest = self.rest;
        if rest.iter().enumerate().all(|(i, byte)| *byte == i as u8) {
            if !rest.is_empty() {
                self.put(format_args!(" data {}", rest.len()));
            }
        } else {
            self.put(format_args!(" data 0x{}", hex_of_bytes(rest)));
        }
        self.rest = &[];
        Some(())
    }

    fn pad(&mut self, length: usize) {
        if length > 0 {
            self.put(format_args!(" pad {length}"));
        }
    }
}

/// An Ethernet address; only its last byte if the other bytes are zero.
struct Mac<'a>(&'a [u8]);

impl std::fmt::Display for Mac<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0[..5] == [0; 5] {
            return write!(f, "{:02x}", self.0[5]);
        }
        let bytes: Vec<String> = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        f.write_str(&bytes.join(":"))
    }
}

fn number16(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

fn number32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn v4(bytes: &[u8]) -> Ipv4Addr {
    Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])
}

fn v6(bytes: &[u8]) -> Ipv6Addr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&bytes[..16]);
    octets.into()
}
