//! The chain of a controller: the services that its apps need, and then the apps.

use bellrock_api::{DynApp, Needs};

use crate::discovery::{Discovery, DiscoverySettings, NoRandomness};
use crate::hosts::{HostSettings, HostTracking};
use crate::paths::PathService;

/// How services are set, and which run though no app needs them.
#[derive(Clone, Debug, Default)]
pub struct ServiceSettings {
    /// Services that run whatever the apps need.
    pub always: Needs,
    /// How links are discovered.
    pub discovery: DiscoverySettings,
    /// How hosts are tracked.
    pub hosts: HostSettings,
}

/// The chain of these apps: the services that any of them needs, in the order in which they build upon
/// each other, and then the apps in their order.
///
/// # Errors
/// [`NoRandomness`].
pub fn chain(
    apps: Vec<Box<dyn DynApp>>,
    settings: &ServiceSettings,
) -> Result<Vec<Box<dyn DynApp>>, NoRandomness> {
    let needs = apps.iter().fold(settings.always, |needs, app| needs | app.needs());
    let mut chain: Vec<Box<dyn DynApp>> = Vec::new();
    if !needs.is_empty() {
        // All others build upon it.
        chain.push(Box::new(Discovery::new(settings.discovery.clone())?));
    }
    if needs.contains(Needs::HOSTS) {
        chain.push(Box::new(HostTracking::new(settings.hosts)?));
    }
    if needs.contains(Needs::PATHS) {
        chain.push(Box::new(PathService));
    }
    chain.extend(apps);
    Ok(chain)
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
        chain(apps.collect(), &settings).unwrap().iter().map(|app| app.name()).collect()
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
