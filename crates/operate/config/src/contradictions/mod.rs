//! Contradictions between settings, chains that cannot work, and settings without effect.

use std::net::SocketAddr;

use bellrock_api::{Needs, Version};
use bellrock_engine::Pinning;
use bellrock_engine::session::SessionSettings;
use bellrock_services::chain::{self, AppRole};
use bellrock_services::hosts::HostTrackingSettings;

use super::apps::{self, AppChoice};
use super::form::Setting;
use super::read::Places;
use super::settings;
use super::{Config, Control, HttpConfig, TlsConfig};

/// A contradiction. An error prevents the start; with a warning the controller runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction {
    /// Keys of the settings in the contradiction: `pin`, `apps.routing`, `apps.routing.mode`.
    about: Vec<String>,
    pub(crate) is_error: bool,
    /// What is wrong, and what would be right.
    pub(crate) text: String,
}

impl Contradiction {
    /// Formats `FILE:LINE:COLUMN: ` and the text; without a place if it is not in the file.
    pub(crate) fn located(&self, file: &str, places: &Places) -> String {
        let kind = if self.is_error { "" } else { "warning: " };
        match places.last_of(&self.about) {
            Some(place) => format!("{file}:{}:{}: {kind}{}", place.line, place.column, self.text),
            None => format!("{file}: {kind}{}", self.text),
        }
    }
}

pub(crate) fn error(about: &[&str], text: String) -> Contradiction {
    Contradiction { about: about.iter().map(ToString::to_string).collect(), is_error: true, text }
}

pub(crate) fn warning(about: &[&str], text: String) -> Contradiction {
    Contradiction { is_error: false, ..error(about, text) }
}

/// Whether a program that listens on one address prevents another one on the other.
pub(crate) fn overlap(one: &SocketAddr, other: &SocketAddr) -> bool {
    let same = one.ip() == other.ip() || one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() == other.port() && one.port() != 0 && one.is_ipv4() == other.is_ipv4() && same
}

impl Config {
    /// Lists all contradictions, errors first.
    pub(crate) fn contradictions(&self) -> Vec<Contradiction> {
        let mut all: Vec<Contradiction> = self
            .of_chain()
            .chain(self.of_allow())
            .chain(self.of_listen())
            .chain(self.of_tls())
            .chain(self.of_cores())
            .chain(self.of_control())
            .chain(self.of_http())
            .chain(self.of_cluster())
            .chain(self.of_versions())
            .chain(self.of_services())
            .chain(self.of_apps())
            .collect();
        all.sort_by_key(|one| !one.is_error);
        all
    }

    fn of_chain(&self) -> impl Iterator<Item = Contradiction> {
        let roles: Vec<_> = self.apps.iter().map(AppChoice::role).collect();
        let problems = chain::check(&roles);
        problems.into_iter().map(move |problem| {
            let app = problem.place.and_then(|place| roles.get(place));
            let about = app.map_or_else(|| "apps".to_owned(), |app| format!("apps.{}", app.name));
            let text = problem.to_string();
            Contradiction { about: vec![about], is_error: problem.is_error, text }
        })
    }

    fn of_allow(&self) -> impl Iterator<Item = Contradiction> {
        let has_python = self.python_files().next().is_some();
        self.allow.iter().filter_map(move |(app, limits)| {
            let Some(choice) = self.apps.iter().find(|choice| choice.name() == app) else {
                if has_python {
                    // The names of its apps are known at the start.
                    return None;
                }
                if let Err(right) = apps::known(app) {
                    let text = format!("there is no app {app:?}; give {right}");
                    return Some(error(&["allow", &format!("allow.{app}")], text));
                }
                let text =
                    format!("`allow` has the app {app:?}, which is not in `apps`; leave it out");
                return Some(error(&["allow", &format!("allow.{app}")], text));
            };
            let is_idle = limits.table_memory_bytes.is_some() && !choice.has_tables();
            is_idle.then(|| {
                let text = format!(
                    "`table_memory_bytes` of {app:?} in `allow` has no effect, since that app has no tables; leave it \
                     out"
                );
                warning(&[&format!("allow.{app}.table_memory_bytes")], text)
            })
        })
    }

    fn of_listen(&self) -> impl Iterator<Item = Contradiction> {
        let of = |name: &'static str, addresses: &'_ [SocketAddr]| {
            addresses.iter().map(|address| (name, *address)).collect::<Vec<_>>()
        };
        let cluster = [self.cluster.listen];
        let all = [
            of("listen", &self.listen),
            of("listen", &self.tls.listen),
            of("http.listen", &self.http.listen),
            of("http.ryu", &self.http.ryu),
            of("cluster.listen", if self.cluster.is_on() { &cluster } else { &[] }),
        ]
        .concat();
        let pairs = (0..all.len()).filter_map(move |place| {
            let (name, address) = *all.get(place)?;
            let (other_name, other) =
                all.iter().take(place).find(|(_, other)| overlap(other, &address))?;
            let text = format!(
                "`{other_name}` has {other}, and `{name}` {address}: the same port of the same address; leave one out"
            );
            Some(error(&[name, *other_name], text))
        });
        pairs.take(1)
    }

    fn of_tls(&self) -> impl Iterator<Item = Contradiction> {
        let tls = &self.tls;
        let files = [("certificate", &tls.certificate), ("key", &tls.key), ("ca", &tls.ca)];
        let missing = files.into_iter().filter(|(_, file)| file.is_none());
        let missing: Vec<_> = missing.map(|(name, _)| format!("`tls.{name}`")).collect();
        let lacks = (tls.listen.first().filter(|_| !missing.is_empty())).map(|address| {
            let text = format!(
                "`listen` tls:{address} needs a certificate, its key, and the authorities of switches; set {} \
                 (`bellrock pki` makes them)",
                missing.join(", ")
            );
            error(&["listen"], text)
        });
        let is_idle = tls.listen.is_empty() && *tls != TlsConfig::default();
        let idle = is_idle.then(|| {
            let text =
                "the settings of `tls` have no effect without an address with tls: in `listen`";
            let keys = ["certificate", "key", "ca", "crl", "identity", "identities", "pins"];
            let keys: Vec<_> = keys.iter().map(|key| format!("tls.{key}")).collect();
            warning(&keys.iter().map(String::as_str).collect::<Vec<_>>(), text.to_owned())
        });
        lacks.into_iter().chain(idle)
    }

    fn of_cores(&self) -> impl Iterator<Item = Contradiction> {
        let Pinning::Cores(cores) = &self.pin else { return None.into_iter().chain(None) };
        let (n, workers) = (cores.len(), self.workers);
        let number = workers.filter(|workers| *workers != n).map(|workers| {
            let text = format!(
                "`pin` names {n} cores for {workers} workers; name one for each worker, or leave `workers` at auto"
            );
            error(&["pin", "workers"], text)
        });
        let mut before = cores.iter().enumerate();
        let twice =
            before.find(|(place, core)| cores.iter().take(*place).any(|other| other == *core));
        let twice = twice.map(|(_, core)| {
            let text = format!(
                "`pin` names core {core} twice, so two workers share it; name another core for one"
            );
            warning(&["pin"], text)
        });
        number.into_iter().chain(twice)
    }

    fn of_control(&self) -> impl Iterator<Item = Contradiction> {
        let asked_only =
            self.apps.iter().filter_map(|app| Some((app.name(), (app.known()?.idle)(app)?)));
        let has_none = self.control == Control::None && self.http.listen.is_empty();
        asked_only.filter(move |_| has_none).map(|(name, why)| {
            let text = format!("the app {name:?} can do nothing: without a control socket {why}; leave `control` at auto");
            warning(&["control", &format!("apps.{name}")], text)
        })
    }

    fn of_http(&self) -> impl Iterator<Item = Contradiction> {
        let http = &self.http;
        let half = match (&http.certificate, &http.key) {
            (Some(_), None) => {
                Some(("http.certificate", "`http.certificate` has no key; set `http.key`"))
            }
            (None, Some(_)) => {
                Some(("http.key", "`http.key` has no certificate; set `http.certificate`"))
            }
            _ => None,
        };
        let half = half.map(|(about, text)| error(&[about], text.to_owned()));
        // Those of a cluster come from etcd.
        let has_tokens =
            http.tokens.is_some() || !http.token_hashes.is_empty() || self.cluster.name.is_some();
        let is_protected = http.certificate.is_some() && has_tokens;
        let open = http.listen.iter().find(|address| !address.ip().is_loopback());
        let open = open.filter(|_| !is_protected).map(|address| {
            let text = format!(
                "`http.listen` {address} can be reached by other machines, which needs a certificate and tokens; set \
                 `http.certificate`, `http.key` and `http.tokens`, or listen on 127.0.0.1"
            );
            error(&["http.listen"], text)
        });
        let ryu = http.ryu.iter().find(|address| !address.ip().is_loopback()).map(|address| {
            let text = format!(
                "`http.ryu` {address} can be reached by other machines, and the interface of Ryu has no tokens; give an \
                 address of the loopback, such as 127.0.0.1:8081"
            );
            error(&["http.ryu"], text)
        });
        // A cluster shares its tokens with nodes that have no server, too.
        let others =
            HttpConfig { ryu: Vec::new(), token_hashes: Default::default(), ..http.clone() };
        let is_idle = http.listen.is_empty() && others != HttpConfig::default();
        let idle = is_idle.then(|| {
            let text = "the settings of `http` have no effect without `http.listen`";
            warning(
                &[
                    "http.certificate",
                    "http.key",
                    "http.tokens",
                    "http.poll_ports",
                    "http.poll_flows",
                ],
                text.to_owned(),
            )
        });
        half.into_iter().chain(open).chain(ryu).chain(idle)
    }

    fn of_versions(&self) -> Option<Contradiction> {
        let versions = self.session.versions;
        let default = SessionSettings::default().miss_send_len;
        let is_idle = versions.iter().all(Version::has_table_miss_entries)
            && self.session.miss_send_len != default;
        is_idle.then(|| {
            let text = format!(
                "`miss_send_len` has no effect, since in OpenFlow {versions} table-miss flows set the length; remove the line"
            );
            warning(&["miss_send_len"], text)
        })
    }

    fn of_services(&self) -> impl Iterator<Item = Contradiction> {
        let needs = self.apps.iter().fold(self.services.always, |needs, app| needs | app.needs());
        let default = Config::default();
        let has_python = self.python_files().next().is_some();
        let is_changed =
            move |setting: &&Setting<Config>| setting.show(self) != setting.show(&default);
        let idle = settings::all().filter(is_changed).filter_map(move |setting| {
            let (service, needed) = match setting.key {
                "discovery_interval" | "discovery_key_file" | "discovery_slow_links" => {
                    ("topology", Needs::TOPOLOGY)
                }
                "host_max_age" | "max_hosts" | "max_hosts_per_port" => ("hosts", Needs::HOSTS),
                _ => return None,
            };
            // Every app that needs hosts or paths runs discovery too. What apps in Python need is
            // not known yet.
            let runs = has_python ||  if needed == Needs::TOPOLOGY { !needs.is_empty() } else { needs.contains(needed) };
            (!runs).then(|| {
                let key = setting.key;
                let text = format!(
                    "`{key}` has no effect, since no app needs that service; set `services: {service}`, or leave \
                     `{key}` out"
                );
                warning(&[key], text)
            })
        });
        let (hosts, usual) = (&self.services.hosts, HostTrackingSettings::default());
        let per_port = hosts.max_hosts_per_port;
        let never = per_port != usual.max_hosts_per_port && per_port > hosts.max_hosts;
        let never = never.then(|| {
            let text = format!(
                "`max_hosts_per_port` {per_port} is more than `max_hosts` {}, so it is never reached; raise `max_hosts`",
                hosts.max_hosts
            );
            warning(&["max_hosts", "max_hosts_per_port"], text)
        });
        idle.chain(never)
    }

    fn of_apps(&self) -> impl Iterator<Item = Contradiction> {
        let known = self.apps.iter().filter_map(|app| Some((app, app.known()?)));
        known.flat_map(|(app, known)| (known.contradictions)(app, self))
    }
}

impl AppChoice {
    fn role(&self) -> AppRole<'_> {
        AppRole {
            name: self.name(),
            forwards: self.forwards(),
            // Whether an app in Python gets packets is known at the start.
            wants_packet_ins: !matches!(self, AppChoice::Python(_)),
            // Those of Bellrock's own need no packets that a flow of an app behind takes.
            sees: Some(Vec::new()),
            needs: self.needs(),
        }
    }
}

#[cfg(test)]
mod tests;
