//! Random conversations: flows with random matches and actions over four tables, and random frames.
//! Nothing is recorded; the two switches must agree.
//!
//! They avoid the differences that the manual lists: no fragments, no tag or label on top of
//! another, no next table after a tag was pushed or popped. Every table has a flow for all other
//! packets. No two flows of a table have the same priority, since then either may match.

use super::script::{Conversation, Step};

const FLOWS: usize = 40;
const FRAMES: usize = 40;
const TABLES: usize = 4;
const PORTS: usize = 4;

/// A conversation that repeats from its seed.
pub(crate) fn conversation(seed: u64) -> Conversation {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut conversation = Conversation::new(&format!("seed {seed}"));
    for table in 0..TABLES {
        conversation.add(send(format!("flow_mod ADD table={table}, priority=0 actions=output:4")));
    }
    for priority in 1..=FLOWS {
        let flow = flow(priority, &mut random);
        conversation.add(send(flow));
    }
    for _ in 0..FRAMES {
        let port = random.u32(1..=PORTS as u32);
        conversation.add(Step::Frame { port, times: 1, frame: frame(&mut random) });
    }
    conversation.add(send("flow_stats".to_owned()));
    conversation.add(send("table_stats".to_owned()));
    conversation
}

fn send(message: String) -> Step {
    Step::Send { controller: 0, message }
}

fn one<'t>(random: &mut fastrand::Rng, of: &[&'t str]) -> &'t str {
    of[random.usize(..of.len())]
}

/// Some of these words, in their order.
fn some(random: &mut fastrand::Rng, of: &[&str], most: usize) -> Vec<String> {
    let mut kept: Vec<usize> = (0..of.len()).collect();
    random.shuffle(&mut kept);
    kept.truncate(random.usize(0..=most.min(of.len())));
    kept.sort_unstable();
    kept.into_iter().map(|i| of[i].to_owned()).collect()
}

/// A kind of packet: its match, further fields to match, and fields to set.
struct Kind {
    needs: &'static str,
    fields: &'static [&'static [&'static str]],
    edits: &'static [&'static str],
}

const ETHERNET: &[&[&str]] = &[
    &["in_port=1", "in_port=2", "in_port=3"],
    &["eth_src=01", "eth_src=02", "eth_src=00/00:00:00:00:00:01"],
    &["eth_dst=01", "eth_dst=02", "eth_dst=02/00:00:00:00:00:02"],
    &["metadata=0x1/0x1", "metadata=0x0/0x2", "metadata=0x3/0xf"],
];
const IPV4_FIELDS: &[&[&str]] = &[
    &["ip_dscp=0", "ip_dscp=10"],
    &["ip_ecn=0", "ip_ecn=1"],
    &["ipv4_src=10.0.0.1", "ipv4_src=10.0.0.0/24", "ipv4_src=10.0.0.1/255.0.0.255"],
    &["ipv4_dst=10.0.1.2", "ipv4_dst=10.0.1.0/24", "ipv4_dst=0.0.0.2/0.0.0.2"],
];
const IPV6_FIELDS: &[&[&str]] = &[
    &["ip_dscp=0", "ip_dscp=10"],
    &["ipv6_src=fc00::1", "ipv6_src=fc00::/64", "ipv6_src=::1/::1"],
    &["ipv6_dst=fc00:0:0:1::2", "ipv6_dst=fc00:0:0:1::/64"],
    &["ipv6_flabel=0x5", "ipv6_flabel=0x4/0x4"],
];
const TCP_FIELDS: &[&[&str]] = &[&["tcp_src=1", "tcp_src=2"], &["tcp_dst=1", "tcp_dst=2"]];
const UDP_FIELDS: &[&[&str]] = &[&["udp_src=1", "udp_src=2"], &["udp_dst=1", "udp_dst=2"]];
const IPV4_EDITS: &[&str] = &[
    "set_field:10.0.0.2->ipv4_src",
    "set_field:10.0.1.1->ipv4_dst",
    "set_field:10->ip_dscp",
    "set_field:1->ip_ecn",
    "dec_nw_ttl",
    "set_nw_ttl:3",
];
const IPV6_EDITS: &[&str] = &[
    "set_field:fc00::2->ipv6_src",
    "set_field:fc00:0:0:1::1->ipv6_dst",
    "set_field:0x5->ipv6_flabel",
    "set_field:10->ip_dscp",
    "dec_nw_ttl",
];
const KINDS: &[Kind] = &[
    Kind { needs: "", fields: &[], edits: &[] },
    Kind {
        needs: "vlan_vid=0",
        fields: &[],
        edits: &["push_vlan:0x8100,set_field:0x1002->vlan_vid,set_field:2->vlan_pcp"],
    },
    Kind {
        needs: "vlan_vid=0x1000/0x1000",
        fields: &[&["vlan_pcp=0", "vlan_pcp=3"]],
        edits: &["set_field:0x1001->vlan_vid", "set_field:3->vlan_pcp", "pop_vlan"],
    },
    Kind { needs: "vlan_vid=0x1001", fields: &[], edits: &["set_field:0x1002->vlan_vid"] },
    Kind {
        needs: "arp",
        fields: &[&["arp_op=1", "arp_op=2"], &["arp_spa=10.0.0.1", "arp_tpa=10.0.1.0/24"]],
        edits: &["set_field:2->arp_op", "set_field:10.0.0.2->arp_spa", "set_field:09->arp_sha"],
    },
    Kind { needs: "ip", fields: IPV4_FIELDS, edits: IPV4_EDITS },
    Kind {
        needs: "tcp",
        fields: TCP_FIELDS,
        edits: &["set_field:1->tcp_src", "set_field:2->tcp_dst"],
    },
    Kind {
        needs: "udp",
        fields: UDP_FIELDS,
        edits: &["set_field:1->udp_src", "set_field:2->udp_dst"],
    },
    Kind {
        needs: "icmp",
        fields: &[&["icmpv4_type=8", "icmpv4_type=0"]],
        edits: &["set_field:0->icmpv4_type"],
    },
    Kind { needs: "ipv6", fields: IPV6_FIELDS, edits: IPV6_EDITS },
    Kind {
        needs: "tcp6",
        fields: TCP_FIELDS,
        edits: &["set_field:1->tcp_src", "set_field:2->tcp_dst"],
    },
    Kind {
        needs: "udp6",
        fields: UDP_FIELDS,
        edits: &["set_field:1->udp_src", "set_field:2->udp_dst"],
    },
];

fn flow(priority: usize, random: &mut fastrand::Rng) -> String {
    let table = random.usize(..TABLES);
    let kind = &KINDS[random.usize(..KINDS.len())];
    let mut words = vec![format!("table={table}"), format!("priority={priority}")];
    if !kind.needs.is_empty() {
        words.push(kind.needs.to_owned());
    }
    for values in ETHERNET.iter().chain(kind.fields) {
        if random.u8(..4) == 0 {
            words.push(one(random, values).to_owned());
        }
    }
    let mut edits: Vec<&str> = vec!["set_field:01->eth_src", "set_field:02->eth_dst"];
    edits.extend(kind.edits);
    let mut actions = some(random, &edits, 2);
    // Popping a tag must be the last edit.
    actions.sort_by_key(|action| action == "pop_vlan");
    actions.extend(some(random, &["output:1", "output:2", "output:3", "IN_PORT"], 2));
    if random.u8(..3) == 0 {
        let mut set = some(random, &["set_field:02->eth_src", "set_field:01->eth_dst"], 1);
        set.push(one(random, &["output:1", "output:2", "output:3"]).to_owned());
        actions.push(format!("write_actions({})", set.join(",")));
    }
    if random.u8(..6) == 0 {
        actions.push("clear_actions".to_owned());
    }
    if random.bool() {
        actions.push(format!("write_metadata:{:#x}/0x3", random.u8(..4)));
    }
    // After a pushed or popped tag the switches count different bytes.
    let retags = actions.iter().any(|action| action.contains("push_vlan") || action == "pop_vlan");
    if table + 1 < TABLES && !retags && random.u8(..3) != 0 {
        actions.push(format!("goto_table:{}", random.usize(table + 1..TABLES)));
    }
    format!("flow_mod ADD {} actions={}", words.join(", "), actions.join(","))
}

fn frame(random: &mut fastrand::Rng) -> String {
    let mut frame =
        format!("eth {}>{}", one(random, &["01", "02", "03"]), one(random, &["01", "02", "03"]));
    frame += one(random, &["", "", "", " vlan 1", " vlan 2 pcp=3", " vlan 1 pcp=3 vlan 2"]);
    let ipv4 = ["ipv4 10.0.0.1>10.0.1.1", "ipv4 10.0.0.2>10.0.1.2", "ipv4 10.9.0.1>10.0.2.2"];
    let ipv6 = ["ipv6 fc00::1>fc00:0:0:1::1", "ipv6 fc00::2>fc00:0:0:1::2", "ipv6 fc01::1>fc00::1"];
    let ip = match random.u8(..5) {
        0 => {
            let operation = one(random, &["request", "reply"]);
            let pair = one(random, &["10.0.0.1>10.0.1.1", "10.0.0.2>10.0.2.1"]);
            return format!("{frame} arp {operation} {pair}");
        }
        1 => {
            frame = format!("{frame} {}", one(random, &ipv6));
            frame += one(random, &["", "", " flabel=0x5", " flabel=0x4", " dscp=10"]);
            false
        }
        _ => {
            frame = format!("{frame} {}", one(random, &ipv4));
            frame += one(random, &["", "", " dscp=10", " ecn=1", " dscp=10 ecn=1"]);
            frame += one(random, &["", "", " df=1", " id=7"]);
            true
        }
    };
    frame += one(random, &["", "", " ttl=1", " ttl=2"]);
    let transport = match random.u8(..3) {
        0 => "tcp",
        1 => "udp",
        _ if ip => {
            return format!("{frame} icmp {} rest=0x10001", one(random, &["8/0", "0/0", "3/1"]));
        }
        _ => return format!("{frame} icmpv6 128/0 rest=0x10001"),
    };
    let (from, to) = (random.u8(1..4), random.u8(1..4));
    format!("{frame} {transport} {from}>{to} data {}", random.u8(..40))
}
