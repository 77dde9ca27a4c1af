//! Builds a controller's chain of services and apps, and checks whether its order can work.

use std::fmt;

use bellrock_api::runtime::Chain;
use bellrock_api::runtime::DynApp;
use bellrock_api::{Forwards, MAX_SEEN, Match, Needs, Publisher};

use crate::discovery::{Discovery, DiscoverySettings, NoRandomness};
use crate::hosts::{HostTracking, HostTrackingSettings};
use crate::paths::PathService;

/// Settings of services, and which services run even if no app needs them.
#[derive(Clone, Debug, Default)]
pub struct ServiceSettings {
    /// Services that always run.
    pub always: Needs,
    /// Settings of discovery.
    pub discovery: DiscoverySettings,
    /// Settings of host tracking.
    pub hosts: HostTrackingSettings,
}

/// Returns the chain of these apps: first the services that any app needs, in order of their
/// dependencies, then the apps in their order. Only discovery and host tracking can publish the
/// topology and the hosts: no app gets their publishers.
///
/// # Errors
/// [`NoRandomness`].
pub fn chain(
    apps: Vec<Box<dyn DynApp>>,
    settings: &ServiceSettings,
) -> Result<Chain, NoRandomness> {
    let needs = apps.iter().fold(settings.always, |needs, app| needs | app.needs());
    let (topology, hosts) = (Publisher::default(), Publisher::default());
    let mut chain = Chain {
        apps: Vec::new(),
        topology: topology.watch().clone(),
        hosts: hosts.watch().clone(),
    };
    if !needs.is_empty() {
        // All other services build on discovery.
        chain.apps.push(Box::new(Discovery::new(settings.discovery.clone(), topology)?));
    }
    if needs.contains(Needs::HOSTS) {
        // Without an app that relies on the places of hosts, host tracking only observes.
        let guards = apps.iter().any(|app| app.needs().contains(Needs::HOSTS));
        chain.apps.push(Box::new(HostTracking::new(settings.hosts, guards, hosts)?));
    }
    if needs.contains(Needs::PATHS) {
        chain.apps.push(Box::new(PathService));
    }
    chain.apps.extend(apps);
    Ok(chain)
}

/// The properties of an app that [`check`] looks at.
#[derive(Clone, Debug)]
pub struct AppRole<'n> {
    /// The app's name.
    pub name: &'n str,
    /// Which packets the app forwards.
    pub forwards: Forwards,
    /// Whether the app wants packet_ins.
    pub wants_packet_ins: bool,
    /// The packets that the app must see. `None`: it has not said.
    pub sees: Option<Vec<Match>>,
    /// The services that the app needs.
    pub needs: Needs,
}

impl<'n> AppRole<'n> {
    /// Returns the role of an app.
    #[must_use]
    pub fn of(app: &'n dyn DynApp) -> Self {
        AppRole {
            name: app.name(),
            forwards: app.forwards(),
            wants_packet_ins: app.wants_packet_ins(),
            sees: app.sees(),
            needs: app.needs(),
        }
    }
}

/// An order of apps that cannot work, or is hardly wanted. It prints as a sentence with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainProblem {
    /// Index of the app in the chain. `None` if the problem concerns the whole chain.
    pub place: Option<usize>,
    /// Whether an app could do nothing at all. Otherwise the problem is a warning.
    pub is_error: bool,
    text: String,
}

impl fmt::Display for ChainProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Checks whether each app of a chain can work in its place, and whether any app forwards packets.
///
/// A chain that forwards nothing is a warning: other programs may install the flows, or the network
/// carries selected packets only. An app that gets no packets, or whose flows never match, is an
/// error. If it is unknown what the app forwards, it is a warning: it may work without packets.
///
/// An app that passes packets on and has not said which it must see is a warning if an app behind
/// could take them away. Two apps of one name, and an app that sees what no flow can match, are
/// errors.
#[must_use]
pub fn check(apps: &[AppRole<'_>]) -> Vec<ChainProblem> {
    let places = 0..apps.len();
    let misplaced = places.clone().filter_map(|place| check_place(apps, place));
    let named = places.clone().filter_map(|place| check_name(apps, place));
    let sights = places.filter_map(|place| check_sight(apps, place));
    named.chain(misplaced).chain(sights).chain(check_forwarding(apps)).collect()
}

/// Checks that no app before has the same name: their flows would have the same cookies.
fn check_name(apps: &[AppRole<'_>], place: usize) -> Option<ChainProblem> {
    let name = apps.get(place)?.name;
    apps.iter().take(place).find(|other| other.name == name)?;
    let text = format!("two apps are called {name}; each app of a chain needs a name of its own");
    Some(ChainProblem { place: Some(place), is_error: true, text })
}

/// Checks what an app says that it sees.
fn check_sight(apps: &[AppRole<'_>], place: usize) -> Option<ChainProblem> {
    let (app, behind) = apps.get(place..)?.split_first()?;
    let name = app.name;
    let problem = |is_error, text| Some(ChainProblem { place: Some(place), is_error, text });
    if let Some(sees) = &app.sees {
        if sees.len() > MAX_SEEN {
            let text =
                format!("the app {name:?} sees {} matches; {MAX_SEEN} are the maximum", sees.len());
            return problem(true, text);
        }
        let wrong = sees.iter().find_map(|seen| Some((seen, seen.check().err()?)));
        let (seen, error) = wrong?;
        return problem(
            true,
            format!("the app {name:?} sees {seen}, which no flow can match: {error}"),
        );
    }
    let passes = matches!(app.forwards, Forwards::Unknown | Forwards::Nothing);
    let other = behind.iter().find(|other| other.forwards == Forwards::All)?.name;
    (passes && app.wants_packet_ins).then_some(())?;
    let text = format!(
        "the app {name:?} gets no packet that a flow of {other:?} matches, also of those that it would drop: let \
         its `sees` list what it must see, or be empty if that is meant"
    );
    problem(false, text)
}

/// Checks the place of an app: it decides which packets the app gets, and whose flows match first.
fn check_place(apps: &[AppRole<'_>], place: usize) -> Option<ChainProblem> {
    let (before, from) = apps.split_at_checked(place)?;
    let app = from.first()?;
    let name = app.name;
    let takes_all = before.iter().rev().find(|other| other.forwards == Forwards::All);
    let (is_error, text) = match app.forwards {
        Forwards::Nothing => {
            let other = before.last()?.name;
            let why = "whose flows match first; put it first";
            (true, format!("the app {name:?} stands behind {other:?}, {why}"))
        }
        Forwards::Selected => {
            let other = takes_all?.name;
            let why = "which forwards all packets, so its flows would match none";
            let text =
                format!("the app {name:?} stands behind {other:?}, {why}; put it before {other:?}");
            (true, text)
        }
        Forwards::All => {
            let other = takes_all?.name;
            let why = "which forwards all packets, so it would get none";
            let text = format!(
                "the app {name:?} stands behind {other:?}, {why}; leave one of the two out"
            );
            (true, text)
        }
        Forwards::Unknown => {
            let other = takes_all.filter(|_| app.wants_packet_ins)?.name;
            let why = "which forwards all packets, so it gets no packet_in";
            let text = format!(
                "the app {name:?} stands behind {other:?}, {why}; put it before {other:?}, or let its \
                 `wants_packet_ins` return false"
            );
            (false, text)
        }
    };
    Some(ChainProblem { place: Some(place), is_error, text })
}

fn check_forwarding(apps: &[AppRole<'_>]) -> Option<ChainProblem> {
    let has = |forwards| apps.iter().any(|app| app.forwards == forwards);
    if has(Forwards::All) || has(Forwards::Unknown) {
        return None;
    }
    let text = if apps.is_empty() {
        "there is no app, so switches connect and forward nothing; add an app".to_owned()
    } else if has(Forwards::Selected) {
        let names: Vec<_> = apps.iter().filter(|app| app.forwards == Forwards::Selected).collect();
        let names: Vec<_> = names.iter().map(|app| format!("{:?}", app.name)).collect();
        format!(
            "only packets selected by {} are forwarded, all others are dropped, ARP too; add \"routing\" \
             as the last app if that is not meant",
            names.join(" and ")
        )
    } else {
        "no app forwards packets, so hosts reach each other only by flows of other programs; add \
         \"routing\" or \"learning\" as the last app"
            .to_owned()
    };
    Some(ChainProblem { place: None, is_error: false, text })
}

#[cfg(test)]
mod tests {
    use bellrock_api::{App, Handler, Network, SwitchInfo};

    use super::*;

    struct Test(&'static str, Needs);
    struct Nothing;
    impl Handler for Nothing {}
    impl App for Test {
        type Handler = Nothing;
        fn name(&self) -> &'static str {
            self.0
        }
        fn needs(&self) -> Needs {
            self.1
        }
        fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Nothing {
            Nothing
        }
    }

    fn names(needs: &[Needs], always: Needs) -> Vec<&'static str> {
        let apps = needs.iter().zip(["a", "b", "c"]);
        let apps = apps.map(|(needs, name)| Box::new(Test(name, *needs)) as Box<dyn DynApp>);
        let settings = ServiceSettings { always, ..ServiceSettings::default() };
        chain(apps.collect(), &settings).unwrap().apps.iter().map(|app| app.name()).collect()
    }

    fn checked(apps: &[(&'static str, Forwards)]) -> Vec<(Option<usize>, bool, String)> {
        let role = |&(name, forwards)| AppRole {
            name,
            forwards,
            wants_packet_ins: true,
            sees: Some(Vec::new()),
            needs: Needs::empty(),
        };
        let apps: Vec<_> = apps.iter().map(role).collect();
        let problems = check(&apps);
        problems.iter().map(|it| (it.place, it.is_error, it.to_string())).collect()
    }

    #[test]
    fn chains_that_work_have_no_problem() {
        use Forwards::{All, Nothing, Selected, Unknown};
        for apps in [
            &[("learning", All)][..],
            &[("mine", Unknown)],
            &[("mine", Unknown), ("learning", All)],
            &[("guard", Nothing), ("lines", Selected), ("routing", All)],
            &[("guard", Nothing), ("mine", Unknown)],
        ] {
            assert_eq!(checked(apps), [], "{apps:?}");
        }
    }

    #[test]
    fn an_app_that_could_do_nothing_is_an_error_with_its_place_and_the_remedy() {
        use Forwards::{All, Nothing, Selected};
        for (apps, place, remedy) in [
            (&[("hub", All), ("learning", All)][..], 1, "leave one of the two out"),
            (&[("hub", All), ("lines", Selected)], 1, "put it before \"hub\""),
            (&[("lines", Selected), ("q", Nothing), ("hub", All)], 1, "put it first"),
        ] {
            let problems = checked(apps);
            let [(Some(at), true, text)] = &problems[..] else { panic!("{problems:?}") };
            assert!(*at == place && text.contains("stands behind") && text.contains(remedy));
        }
    }

    #[test]
    fn chains_that_hardly_are_meant_are_warnings() {
        use Forwards::{All, Nothing, Selected, Unknown};
        for (apps, place, text) in [
            (&[][..], None, "there is no app"),
            (&[("guard", Nothing)], None, "no app forwards packets"),
            (&[("q", Nothing), ("lines", Selected)], None, "selected by \"lines\" are"),
            (&[("hub", All), ("mine", Unknown)], Some(1), "so it gets no packet_in"),
        ] {
            let problems = checked(apps);
            let [(at, false, said)] = &problems[..] else { panic!("{problems:?}") };
            assert!(*at == place && said.contains(text), "{said}");
        }
        let silent = AppRole {
            name: "mine",
            forwards: Unknown,
            wants_packet_ins: false,
            sees: None,
            needs: Needs::empty(),
        };
        let hub = AppRole {
            name: "hub",
            forwards: All,
            wants_packet_ins: true,
            sees: None,
            needs: Needs::empty(),
        };
        assert_eq!(check(&[hub, silent]), []);
    }

    #[test]
    fn an_app_whose_packets_an_app_behind_takes_away_is_a_warning_until_it_says_what_it_sees() {
        use Forwards::{All, Nothing, Unknown};
        let app = |name, forwards, sees: Option<Vec<Match>>| AppRole {
            name,
            forwards,
            wants_packet_ins: true,
            sees,
            needs: Needs::empty(),
        };
        let web = Match::any().eth_type(0x0800).ip_proto(6).tcp_dst(80);
        let learning = || app("learning", All, None);
        for forwards in [Unknown, Nothing] {
            let problems = check(&[app("firewall", forwards, None), learning()]);
            let [problem] = &problems[..] else { panic!("{problems:?}") };
            assert!(!problem.is_error && problem.to_string().contains("`sees`"), "{problem}");
            for said in [vec![], vec![web.clone()]] {
                assert_eq!(check(&[app("firewall", forwards, Some(said)), learning()]), []);
            }
        }
        assert_eq!(check(&[app("a", Unknown, None), app("b", Unknown, None)]), []);
        let silent = AppRole { wants_packet_ins: false, ..app("monitor", Unknown, None) };
        assert_eq!(check(&[silent, learning()]), []);
        for (sees, why) in [
            (vec![Match::any().tcp_dst(80)], "which no flow can match: "),
            (vec![web; MAX_SEEN + 1], "64 are the maximum"),
        ] {
            let problems = check(&[app("firewall", Nothing, Some(sees)), learning()]);
            let [problem] = &problems[..] else { panic!("{problems:?}") };
            assert!(problem.is_error && problem.to_string().contains(why), "{problem}");
        }
    }

    #[test]
    fn two_apps_of_one_name_are_an_error() {
        let problems = checked(&[("a", Forwards::Unknown), ("b", Forwards::Unknown)]);
        assert_eq!(problems, []);
        let problems = checked(&[("a", Forwards::Unknown), ("a", Forwards::Unknown)]);
        let [(Some(1), true, text)] = &problems[..] else { panic!("{problems:?}") };
        assert_eq!(text, "two apps are called a; each app of a chain needs a name of its own");
    }

    #[test]
    fn services_stand_before_the_apps_that_need_them() {
        let (none, hosts) = (Needs::empty(), Needs::HOSTS);
        assert_eq!(names(&[none, none], none), ["a", "b"]);
        assert_eq!(names(&[none, hosts], none), ["discovery", "hosts", "a", "b"]);
        assert_eq!(names(&[Needs::TOPOLOGY], none), ["discovery", "a"]);
        assert_eq!(names(&[none], hosts), ["discovery", "hosts", "a"]);
        assert_eq!(names(&[Needs::PATHS], hosts), ["discovery", "hosts", "paths", "a"]);
    }
}
