//! `bellrock demo` as a process: with lines, on a terminal, and how it ends.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::running::{Running, bellrock, output};
use crate::terminal::Pty;

/// Enters and leaves the alternate screen of the terminal.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";
const SHOW_CURSOR: &str = "\x1b[?25h";

#[test]
fn without_a_terminal_it_prints_lines_and_a_summary() {
    for version in ["1.0", "1.3"] {
        let arguments = ["demo", "--app", "learning", "--for", "3s", "--version", version];
        let (status, text, error) = output(&mut bellrock(&arguments));
        assert_eq!((status, error.as_str()), (0, ""), "{text}");
        assert!(text.contains("switches 4/4"), "{text}");
        let summary = "4 switches and 9 hosts (tree:2,3) under the app learning";
        assert!(text.contains(summary), "{text}");
        assert!(!text.contains('\x1b'), "plain lines: {text:?}");
        let pings = text.lines().find(|line| line.contains(" of them lost")).expect("a summary");
        assert!(pings.contains(" pings, 0 of them lost"), "{text}");
        assert!(!pings.contains("; 0 pings") && !pings.starts_with("0 "), "hosts talk: {text}");
    }
}

/// Links are cut, the network heals, and the output counts both.
#[test]
fn a_ring_heals_when_its_links_are_cut() {
    let mut command = bellrock(&["demo", "--plain", "--for", "60s"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut demo = Running(command.spawn().unwrap());
    let mut lines = BufReader::new(demo.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    for part in [" is cut", "  healed ", " is mended", " is cut", "  healed "] {
        lines.by_ref().find(|line| line.contains(part)).expect(part);
    }
    demo.signal("INT");
    assert_eq!(demo.ended().code(), Some(0));
    let rest: Vec<String> = lines.collect();
    let summary = "6 switches and 6 hosts (ring:6) under the app routing";
    assert!(rest.iter().any(|line| line.contains(summary)), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains(" cuts, healed in ")), "{rest:?}");
}

#[test]
fn a_signal_ends_it_with_the_summary() {
    for signal in ["INT", "TERM"] {
        let mut command = bellrock(&["demo"]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut demo = Running(command.spawn().unwrap());
        let mut lines = BufReader::new(demo.0.stdout.take().unwrap()).lines();
        let up = lines.by_ref().map(Result::unwrap).find(|line| line.contains("switches 6/6"));
        assert!(up.is_some(), "the switches connect");
        demo.signal(signal);
        assert_eq!(demo.ended().code(), Some(0), "SIG{signal}");
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        assert!(rest.iter().any(|line| line.contains("6 hosts (ring:6)")), "{rest:?}");
    }
}

#[test]
fn on_a_terminal_it_shows_the_network_and_gives_the_terminal_back() {
    // Ends by Ctrl-C, by the key `q`, by its time limit, and by a signal.
    for end in ["\x03", "q", "--for", "TERM"] {
        let mut pty = Pty::open(100, 30);
        let before = pty.modes();
        let mut command = bellrock(&["demo"]);
        if end == "--for" {
            command.args(["--for", "2s"]);
        }
        let mut demo = pty.start(command);
        pty.read_until(ENTER);
        // Single words, because the cursor moves between them.
        for part in ["Bellrock", "switches", "hosts", "10.0.0.6", "packet-ins:"] {
            pty.read_until(part);
        }
        assert_ne!(pty.modes(), before, "keys come at once");
        if end == "q" {
            // A cut by hand or an automatic one, whichever comes first.
            pty.read_until("begin");
            pty.type_text("l");
            pty.read_until("cut");
        }
        match end {
            "--for" => {}
            "TERM" => demo.signal(end),
            key => pty.type_text(key),
        }
        assert_eq!(demo.ended().code(), Some(0), "{end:?}");
        assert_eq!(pty.modes(), before, "{end:?}");
        let text = pty.read();
        let left = text.rfind(LEAVE).expect("the other screen is left");
        let shown = text.rfind(SHOW_CURSOR).expect("the cursor is shown");
        let summary = text.rfind("6 switches and 6 hosts").expect("a summary");
        assert!(left < summary && shown < summary, "{end:?}");
    }
}

#[test]
fn wrong_arguments_are_refused_with_the_reason() {
    for (arguments, reason) in [
        (&["--app", "learning", "--topology", "ring:4"][..], "closes the cycle"),
        (&["--app", "hub"], "routing, learning"),
        (&["--topology", "single:1"], "give a larger network, such as ring:6"),
        (&["--topology", "circle:4"][..], "no topology \"circle:4\""),
        (&["--for", "soon"], "give a time from 1 s to"),
    ] {
        let (status, _, error) = output(bellrock(&["demo"]).args(arguments));
        assert_eq!(status, 2, "{arguments:?}: {error}");
        assert!(error.contains(reason), "{arguments:?}: {error}");
    }
}
