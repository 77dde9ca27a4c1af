//! The emulated switch and Open vSwitch in the same conversations.
//!
//! `conversations/*.txt` hold them, with the outcome of each step; [`script`] describes the format.
//! `BLESS=1` writes the outcomes, and the table of differences in the manual: read both before
//! committing. `ONLY=groups` runs those whose file or title contains this word.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail so, and say so"
)]

mod actions;
mod answer;
mod differences;
mod emulated;
mod frame;
mod frame_print;
mod message;
mod openvswitch;
mod random;
mod run;
mod script;
mod subject;
mod words;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use emulated::Emulated;
use openvswitch::OpenVSwitch;
use script::{Conversation, Outcome, Script};

/// Minimum number of conversations.
const MIN_CONVERSATIONS: usize = 200;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/conversations")
}

fn scripts() -> Vec<Script> {
    let files = std::fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|end| end == "txt")).collect();
    paths.sort();
    paths.iter().map(|path| Script::read(path).unwrap_or_else(|error| panic!("{error}"))).collect()
}

/// Starts Open vSwitch if it is installed. Otherwise prints a note; under CI it fails.
fn open_vswitch() -> Option<OpenVSwitch> {
    if !openvswitch::installed() {
        let missing = "Open vSwitch is not installed (Debian: openvswitch-switch)";
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing}");
        say(&format!("NOT COMPARED: {missing}; the emulated switch is held to what is recorded"));
        return None;
    }
    let ovs = OpenVSwitch::start().unwrap();
    say(&format!("compared with {}", ovs.version().unwrap()));
    Some(ovs)
}

/// Prints to the terminal also from a test that passes: `eprintln` is captured then.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// The outcomes of a conversation: of the emulated switch, and of Open vSwitch if it runs.
fn hold(
    conversation: &Conversation,
    ovs: Option<&mut OpenVSwitch>,
) -> Result<Vec<Outcome>, String> {
    // A panic is reported like a wrong answer.
    let held = std::panic::catch_unwind(|| run::hold(conversation, &mut Emulated::default()));
    let emulated = held.map_err(|_| "the emulated switch panicked, see above".to_owned())??;
    let ovs = match ovs {
        Some(ovs) => run::hold(conversation, ovs)?,
        None => conversation.recorded.iter().map(|recorded| recorded.ovs.clone()).collect(),
    };
    Ok(emulated.into_iter().zip(ovs).map(|(emulated, ovs)| Outcome { emulated, ovs }).collect())
}

/// The first step whose outcome differs from the recorded one, with both outcomes.
fn changed(conversation: &Conversation, outcomes: &[Outcome]) -> Option<String> {
    let steps = conversation.steps.iter().zip(&conversation.recorded).zip(outcomes);
    let (((line, _), recorded), outcome) =
        steps.into_iter().find(|((_, recorded), outcome)| recorded != outcome)?;
    let text = |outcome: &Outcome| {
        let mut text = String::new();
        outcome.write(&mut text);
        text
    };
    Some(format!("line {line}, recorded:\n{}came:\n{}", text(recorded), text(outcome)))
}

#[test]
fn both_switches_do_what_is_recorded() {
    let mut ovs = open_vswitch();
    let bless = std::env::var_os("BLESS").is_some();
    assert!(!bless || ovs.is_some(), "BLESS=1 needs Open vSwitch");
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut wrong = Vec::new();
    for script in scripts() {
        let file = script.path.file_stem().unwrap().to_string_lossy().into_owned();
        let mut all = Vec::new();
        for conversation in &script.conversations {
            let wanted = file.contains(&only) || conversation.title.contains(&only);
            let place = format!("{file}.txt: {}", conversation.title);
            match wanted.then(|| hold(conversation, ovs.as_mut())) {
                None => all.push(conversation.recorded.clone()),
                Some(Err(error)) => {
                    wrong.push(format!("{place}: {error}"));
                    all.push(conversation.recorded.clone());
                }
                Some(Ok(outcomes)) => {
                    let changed = changed(conversation, &outcomes).filter(|_| !bless);
                    wrong.extend(changed.map(|change| format!("{place}: {change}")));
                    all.push(outcomes);
                }
            }
        }
        if bless {
            script.write(&all).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{}\n{} of the conversations", wrong.join("\n"), wrong.len());
}

/// Number of random conversations in each run.
const RANDOM_CONVERSATIONS: u64 = 20;

#[test]
fn both_switches_forward_alike_through_random_flows() {
    let Some(mut ovs) = open_vswitch() else { return };
    let own = std::env::var("SEED").ok().map(|seed| seed.parse().expect("SEED is a number"));
    let seeds = own.map_or(0..RANDOM_CONVERSATIONS, |seed: u64| seed..seed + 1);
    for seed in seeds {
        let conversation = random::conversation(seed);
        let outcomes = hold(&conversation, Some(&mut ovs))
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let differs = |outcome: &Outcome| outcome.emulated != outcome.ovs;
        let Some(at) = outcomes.iter().position(differs) else { continue };
        let mut text = String::new();
        outcomes[at].write(&mut text);
        let steps: Vec<String> =
            conversation.steps[..=at].iter().map(|(_, step)| format!("{step:?}")).collect();
        panic!("SEED={seed} repeats it:\n{}\n{text}", steps.join("\n"));
    }
}

#[test]
fn every_difference_has_its_reason_and_every_reason_its_difference() {
    let reasons = differences::read(&directory().join("differences")).unwrap();
    let mut used = BTreeSet::new();
    for conversation in scripts().iter().flat_map(|script| &script.conversations) {
        let differ = conversation.recorded.iter().any(|outcome| outcome.emulated != outcome.ovs);
        let title = &conversation.title;
        assert_eq!(
            differ,
            !conversation.differs.is_empty(),
            "`{title}`: do the switches differ, and why?"
        );
        for name in &conversation.differs {
            assert!(
                reasons.contains_key(name),
                "`{title}`: there is no reason `{name}` in `differences`"
            );
            used.insert(name.clone());
        }
    }
    let unused: Vec<_> = reasons.keys().filter(|name| !used.contains(*name)).collect();
    assert!(unused.is_empty(), "no conversation shows {unused:?}");
}

#[test]
fn the_manual_lists_the_differences() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../docs/book/src/reference/conformance.md");
    let scripts = scripts();
    let conversations: usize = scripts.iter().map(|script| script.conversations.len()).sum();
    assert!(conversations >= MIN_CONVERSATIONS, "{conversations} conversations");
    let reasons = differences::read(&directory().join("differences")).unwrap();
    let text = std::fs::read_to_string(&page).unwrap();
    let wanted = differences::write(&text, &reasons, &scripts).unwrap();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&page, wanted).unwrap();
    } else {
        assert!(
            text == wanted,
            "{} is not what the conversations say; BLESS=1 writes it",
            page.display()
        );
    }
}

#[test]
fn titles_are_told_apart() {
    let mut seen = BTreeSet::new();
    for conversation in scripts().into_iter().flat_map(|script| script.conversations) {
        assert!(
            seen.insert(conversation.title.clone()),
            "two conversations are `{}`",
            conversation.title
        );
        assert!(!conversation.steps.is_empty(), "`{}` has no steps", conversation.title);
    }
}

#[test]
fn frames_print_as_they_are_written() {
    for text in [
        "eth 01>02 ipv4 10.0.0.1>10.0.0.2 udp 1000>2000 data 8",
        "eth 01>ff:ff:ff:ff:ff:ff arp request 10.0.0.1>10.0.0.2 sha=01",
        "eth 01>02 svlan 5 vlan 10 pcp=3 dei=1 ipv4 10.0.0.1>10.0.0.2 dscp=10 ecn=1 ttl=9 tcp 1>2 seq=7 flags=0x2",
        "eth 01>02 mpls 16 tc=3 ttl=5 mpls 17 ipv4 10.0.0.1>10.0.0.2 icmp 8/0 rest=0x10002 data 3",
        "eth 01>02 ipv4 10.0.0.1>10.0.0.2 id=7 more=1 udp 1>2 data 16",
        "eth 01>02 ipv4 10.0.0.1>10.0.0.2 id=7 at=24 proto=17 data 9",
        "eth 01>02 ipv4 10.0.0.1>10.0.0.2 options=01010101 sctp 1>2 tag=9 data 4 pad 2",
        "eth 01>02 ipv4 10.0.0.1>10.0.0.2 checksum=0x1234 udp 1>2 checksum=0x0000",
        "eth 01>02 ipv6 fe80::1>fe80::2 dscp=8 flabel=0x12345 ttl=255 ns fe80::2 sll=01",
        "eth 01>02 ipv6 fe80::1>fe80::2 hop-by-hop dest fragment more=1 id=5 udp 1>2",
        "eth 01>02 pbb 500 03>04 pcp=2 vlan 7 type=0x88b5 data 0xffee",
        "eth 01>02 type=0x88cc data 0xff",
        "hex 0102",
    ] {
        let frame = frame::build(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(frame::print(&frame), text);
    }
}
