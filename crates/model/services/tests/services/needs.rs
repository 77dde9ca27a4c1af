//! What an app reads of the network without needing it: an error that names the need.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bellrock_api::{App, Needs, Network, SwitchInfo, Version};
use bellrock_services::paths::paths;

use crate::lab::{Reads, builder};

/// An app that reads something when it starts.
struct Asks {
    needs: Needs,
    read: fn(&Network),
}

impl App for Asks {
    type Handler = ();

    fn name(&self) -> &'static str {
        "asks"
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn start(&self, network: &Network) {
        (self.read)(network);
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
}

const TOPOLOGY: fn(&Network) = |network| _ = network.topology();
const HOSTS: fn(&Network) = |network| _ = network.hosts();
const PATHS: fn(&Network) = |network| _ = paths(network);

/// Starts the app, behind one that needs everything. Returns what it panics with.
fn start(needs: Needs, read: fn(&Network)) -> Option<String> {
    let lab = builder(Version::V1_3).app(Reads(Needs::all()));
    let result = catch_unwind(AssertUnwindSafe(|| lab.run(Asks { needs, read })));
    result.err().map(|panic| *panic.downcast::<String>().unwrap())
}

#[test]
fn an_app_that_reads_what_it_does_not_need_is_told_what_to_need() {
    let none = Needs::empty();
    for (needs, read, text) in [
        (
            none,
            TOPOLOGY,
            "reads topology, and does not need it: let its `App::needs` return `Needs::TOPOLOGY`",
        ),
        (
            none,
            HOSTS,
            "reads hosts, and does not need it: let its `App::needs` return `Needs::HOSTS`",
        ),
        (Needs::HOSTS, PATHS, "let its `App::needs` return `Needs::HOSTS | Needs::PATHS`"),
    ] {
        let panic = start(needs, read).unwrap();
        assert!(panic.starts_with("the app \"asks\" reads ") && panic.ends_with(text), "{panic}");
    }
}

#[test]
fn an_app_reads_what_it_needs_and_what_that_is_made_of() {
    for (needs, read) in [
        (Needs::TOPOLOGY, TOPOLOGY),
        (Needs::HOSTS, TOPOLOGY),
        (Needs::HOSTS, HOSTS),
        (Needs::PATHS, TOPOLOGY),
        (Needs::PATHS, PATHS),
    ] {
        assert_eq!(start(needs, read), None, "{needs:?}");
    }
}
