//! `bellrock emulate` as a process: with a running controller, from the command line, from a pipe
//! and at a terminal, and its errors.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::process::Stdio;

use crate::running::{Controller, Place, Running, bellrock, free_address, output, told};
use crate::terminal::Pty;

/// Runs `bellrock emulate` with these arguments and commands on its standard input.
fn piped(arguments: &[&str], commands: &str) -> (i32, String, String) {
    let mut command = bellrock(&["emulate"]);
    command.args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
    told(child.wait_with_output().unwrap())
}

#[test]
fn a_ping_as_an_argument_ends_with_status_0() {
    let place = Place::new("emulate-ping");
    let controller = Controller::start(&place, &[]);
    let at = controller.address.to_string();
    for version in ["1.0", "1.3"] {
        let arguments = ["--controller", &at, "--version", version, "ping", "h1", "h9"];
        let mut command = bellrock(&["emulate", "--topology", "tree:2,3"]);
        let (status, text, error) = output(command.args(arguments));
        assert_eq!(status, 0, "{version}: {text}{error}");
        assert!(text.contains("h1 -> h9: 3 sent, 3 received, 0 lost"), "{text}");
    }
}

#[test]
fn every_host_of_a_tree_reaches_every_other() {
    let place = Place::new("emulate-pingall");
    let controller = Controller::start(&place, &[]);
    let at = controller.address.to_string();
    let mut command = bellrock(&["emulate", "--topology", "tree:2,3", "--controller", &at]);
    let (status, text, error) = output(command.args(["pingall"]));
    assert_eq!(status, 0, "{text}{error}");
    assert!(text.contains("72 of 72 pairs answered, 0 lost"), "{text}");
}

#[test]
fn a_lost_ping_ends_with_status_1() {
    let place = Place::new("emulate-lost");
    let controller = Controller::start(&place, &[]);
    let at = controller.address.to_string();
    let commands = "link down s1 s2\nping h1 h4 1\nping h1 h2 1\n";
    let (status, text, error) = piped(&["--topology", "tree:2,3", "--controller", &at], commands);
    assert_eq!(status, 1, "{text}{error}");
    assert!(text.contains("h1 -> h4: 1 sent, 0 received, 1 lost"), "{text}");
    assert!(text.contains("h1 -> h2: 1 sent, 1 received, 0 lost"), "{text}");
}

#[test]
fn commands_of_a_pipe_are_done_in_turn_and_wrong_ones_are_told() {
    let place = Place::new("emulate-pipe");
    let controller = Controller::start(&place, &[]);
    let at = controller.address.to_string();
    let commands = "# a script\n\nping h1 h9\ndump-flows s1\nlink down s1 s2\nlinks\nlink up s1 s2\n\
                    switches\nhosts\nping h1 h10\nhelp\n";
    let (status, text, error) = piped(&["--topology", "tree:2,3", "--controller", &at], commands);
    assert_eq!(status, 1, "one of the commands is wrong: {text}{error}");
    assert!(error.contains("no host \"h10\""), "{error}");
    for part in [
        "h1 -> h9: 3 sent, 3 received",
        "priority=61540",
        "s1:1",
        "down",
        "up, 1.3",
        "10.0.0.9",
        "ping HOST HOST [COUNT]",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn a_stream_and_a_move_and_a_restart_are_done() {
    let place = Place::new("emulate-changes");
    let controller = Controller::start(&place, &[]);
    let at = controller.address.to_string();
    let commands = "iperf h1 h9 500ms\nmove h1 s4\nping h1 h2\nrestart s2 empty\nping h2 h9\n";
    let (status, text, error) = piped(&["--topology", "tree:2,3", "--controller", &at], commands);
    assert_eq!(status, 0, "{text}{error}");
    assert!(text.contains("b/s"), "{text}");
    assert!(text.contains("h1 is at s4:5"), "{text}");
    assert!(text.contains("h2 -> h9: 3 sent, 3 received"), "{text}");
}

#[test]
fn a_topology_file_that_is_wrong_is_refused_with_line_and_reason() {
    let place = Place::new("emulate-topology");
    for (text, reason) in [
        ("switch s1\nhost h1\nlink s1 h1\nlink s1 s9\n", "line 4: unknown switch or host \"s9\""),
        (
            "switch s1\nhost h1\nhost h2\nlink s1:1 h1\nlink s1:1 h2\n",
            "line 5: port 1 of s1 has a link already (line 4)",
        ),
    ] {
        let file = place.write("wrong.topo", text);
        let (status, _, error) = output(&mut bellrock(&["emulate", "--topology", &file]));
        assert_eq!(status, 2, "{error}");
        assert!(error.contains(&format!("{file}: {reason}")), "{error}");
    }
}

#[test]
fn a_cycle_is_refused_where_it_must_not_be() {
    let place = Place::new("emulate-cycle");
    let ring = "switch s1\nswitch s2\nswitch s3\nlink s1 s2\nlink s2 s3\nlink s3 s1\n";
    let file = place.write("ring.topo", ring);
    let reason = format!("{file}: line 6: the link s3:2 s1:2 closes the cycle");
    let emulate = ["emulate", "--topology", &file, "--loop-free"];
    // A learning switch cannot work with a cycle.
    for command in [&emulate[..], &["demo", "--app", "learning", "--topology", &file]] {
        let (status, _, error) = output(&mut bellrock(command));
        assert_eq!(status, 2, "{error}");
        assert!(error.contains(&reason), "{error}");
    }
}

#[test]
fn wrong_topologies_and_commands_are_refused_before_the_start() {
    for (arguments, reason) in [
        (&["--topology", "tree"][..], "no topology \"tree\""),
        (&["--topology", "no/such.topo"], "no/such.topo"),
        (&["--controller", "127.0.0.1:port"], "127.0.0.1:port"),
        (&["--", "pong", "h1", "h2"], "no command \"pong\""),
        (&["--", "ping", "h1", "h77"], "no host \"h77\""),
        (&["ping", "h1", "h2", "--seed", "1"], "--seed stands behind the command"),
        (&["pong", "h1", "h2"], "no command \"pong\""),
        (&["h1", "ping", "h77"], "no host \"h77\""),
    ] {
        let (status, _, error) = output(bellrock(&["emulate"]).args(arguments));
        assert_eq!(status, 2, "{arguments:?}: {error}");
        assert!(error.contains(reason), "{arguments:?}: {error}");
    }
}

#[test]
fn that_nobody_listens_is_said() {
    let at = free_address().to_string();
    let mut command =
        bellrock(&["emulate", "--controller", &at, "--wait", "1s", "--retry", "200ms"]);
    let (status, text, error) = output(command.args(["--", "pingall"]));
    assert_eq!((status, text.as_str()), (1, ""), "{error}");
    assert!(error.contains(&format!("0 of 4 switches are connected to {at}")), "{error}");
    assert!(error.contains("Connection refused"), "{error}");
    assert!(error.contains("bellrock run"), "{error}");
}

#[test]
fn that_something_else_listens_is_said() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let mut command = bellrock(&["emulate", "--controller", &at, "--wait", "1s"]);
    let (status, _, error) = output(command.args(["--", "pingall"]));
    assert_eq!(status, 1, "{error}");
    assert!(error.contains("0 of 4 switches are connected"), "{error}");
}

#[test]
fn a_signal_ends_it_in_peace() {
    let place = Place::new("emulate-signal");
    let controller = Controller::start(&place, &[]);
    let at = controller.address.to_string();
    for signal in ["INT", "TERM"] {
        let mut command = bellrock(&["emulate", "--controller", &at]);
        // A pipe without input.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut emulator = Running(command.spawn().unwrap());
        crate::running::until("four switches", || {
            controller.ask("switches").as_array().unwrap().len() == 4
        });
        emulator.signal(signal);
        assert_eq!(emulator.ended().code(), Some(0), "SIG{signal}");
        crate::running::until("no switches", || {
            controller.ask("switches").as_array().unwrap().is_empty()
        });
    }
}

#[test]
fn at_a_terminal_there_is_a_prompt_and_the_terminal_is_given_back() {
    let place = Place::new("emulate-terminal");
    let controller = Controller::start(&place, &[]);
    let at = controller.address.to_string();
    let mut pty = Pty::open(100, 30);
    let before = pty.modes();
    let start = |pty: &Pty| {
        let mut command = bellrock(&["emulate", "--controller", &at]);
        command.env("XDG_STATE_HOME", place.file("state"));
        pty.start(command)
    };
    let mut emulator = start(&pty);
    pty.read_until("bellrock> ");
    assert_ne!(pty.modes(), before, "the line is edited");
    pty.type_text("ping h1 h9 1\r");
    pty.read_until("h1 -> h9: 1 sent, 1 received");
    pty.read_until("bellrock> ");
    pty.type_text("quit\r");
    assert_eq!(emulator.ended().code(), Some(0));
    assert_eq!(pty.modes(), before, "after quit");

    let mut emulator = start(&pty);
    pty.read_until("bellrock> ");
    emulator.signal("TERM");
    assert_eq!(emulator.ended().code(), Some(0));
    assert_eq!(pty.modes(), before, "after a signal in the middle of a line");
}

#[test]
fn a_ping_of_a_host_works_as_in_mininet() {
    let place = Place::new("emulate-mininet");
    let controller = Controller::start(&place, &[]);
    let at = controller.address.to_string();
    let mut command =
        bellrock(&["emulate", "--controller", &at, "h1", "ping", "-c", "2", "10.0.0.9"]);
    let (status, text, error) = output(&mut command);
    assert_eq!(status, 0, "{text}{error}");
    for part in [
        "PING 10.0.0.9 (10.0.0.9)",
        "from 10.0.0.9: icmp_seq=1 time=",
        "from 10.0.0.9: icmp_seq=2 time=",
        "h1 -> h9: 2 sent, 2 received, 0 lost",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn at_a_terminal_ctrl_c_ends_the_command_and_not_the_network() {
    let place = Place::new("emulate-interrupt");
    let controller = Controller::start(&place, &[]);
    let at = controller.address.to_string();
    let mut pty = Pty::open(100, 30);
    let mut command = bellrock(&["emulate", "--controller", &at]);
    command.env("XDG_STATE_HOME", place.file("state"));
    let mut emulator = pty.start_session(command);
    pty.read_until("bellrock> ");
    // While a line is typed, Ctrl-C discards the line.
    pty.type_text("nonsense\x03");
    pty.read_until("bellrock> ");
    for (line, begun, end) in [
        ("h1 ping h9", "icmp_seq=1 time=", "0 lost"),
        ("wait 600", "wait 600", ""),
        ("iperf h1 h9 600", "iperf", "cut off before its end"),
    ] {
        pty.type_text(&format!("{line}\r"));
        pty.read_until(begun);
        pty.until_cooked();
        pty.type_text("\x03");
        pty.read_until(end);
        pty.read_until("bellrock> ");
    }
    pty.type_text("ping h1 h9 1\r");
    pty.read_until("h1 -> h9: 1 sent, 1 received");
    pty.read_until("bellrock> ");
    pty.type_text("\x04");
    assert_eq!(emulator.ended().code(), Some(1), "the stream was cut off");
}

#[test]
fn at_a_terminal_all_lines_run_that_are_typed_ahead_or_pasted() {
    let place = Place::new("emulate-ahead");
    let controller = Controller::start(&place, &[]);
    let at = controller.address.to_string();
    let mut pty = Pty::open(100, 30);
    let mut command = bellrock(&["emulate", "--controller", &at]);
    command.env("XDG_STATE_HOME", place.file("state"));
    let mut emulator = pty.start(command);
    pty.read_until("bellrock> ");
    pty.type_text("ping h1 h2 1\rping h1 h3 1\rping h1 h4 1\r");
    for host in ["h2", "h3", "h4"] {
        pty.read_until(&format!("h1 -> {host}: 1 sent, 1 received"));
    }
    pty.read_until("bellrock> ");
    // Bracketed paste, as most terminals send it.
    pty.type_text("\x1b[200~ping h1 h5 1\nping h1 h6 1\x1b[201~\r");
    for host in ["h5", "h6"] {
        pty.read_until(&format!("h1 -> {host}: 1 sent, 1 received"));
    }
    pty.read_until("bellrock> ");
    pty.type_text("quit\r");
    assert_eq!(emulator.ended().code(), Some(0));
    let history = std::fs::read_to_string(place.file("state/bellrock/emulate-history"));
    let history = history.unwrap_or_default();
    assert!(history.contains("\nping h1 h5 1\nping h1 h6 1\n"), "{history}");
}

#[test]
fn at_a_terminal_tab_completes_and_lines_are_kept_for_the_next_session() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new("emulate-history");
    let controller = Controller::start(&place, &[]);
    let at = controller.address.to_string();
    let mut pty = Pty::open(100, 30);
    let start = |pty: &Pty| {
        let mut command = bellrock(&["emulate", "--controller", &at]);
        command.env("XDG_STATE_HOME", place.file("state"));
        pty.start(command)
    };
    let mut emulator = start(&pty);
    pty.read_until("bellrock> ");
    pty.type_text("dump-p\ts3\t\r");
    pty.read_until("s3:4");
    pty.read_until("bellrock> ");
    pty.type_text("link down s1 \t\t");
    pty.read_until("s2  s3  s4");
    // The common part of the completions is typed already.
    pty.type_text("3\r");
    pty.read_until("s1:2 - s3:4: down");
    pty.read_until("bellrock> ");
    pty.type_text("quit\r");
    assert_eq!(emulator.ended().code(), Some(0));

    let file = place.file("state/bellrock/emulate-history");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let mut emulator = start(&pty);
    pty.read_until("bellrock> ");
    // Two lines up: before `quit` is the link.
    pty.type_text("\x1b[A\x1b[A\r");
    pty.read_until("s1:2 - s3:4: down");
    pty.read_until("bellrock> ");
    pty.type_text("quit\r");
    assert_eq!(emulator.ended().code(), Some(0));
}
