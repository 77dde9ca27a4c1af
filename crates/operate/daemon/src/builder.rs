//! From a configuration to the builder of its controller.

use std::sync::Arc;

use bellrock::settings::{LimitsHandle, NamesHandle, TlsHandle};
use bellrock::{Controller, ControllerBuilder};
use bellrock_api::runtime::DynApp;
use bellrock_book::EntryStore;
use bellrock_cluster::SharedStores;
use bellrock_cluster::link::LinkTls;
use bellrock_config::apps::{AppChoice, PythonFile};
use bellrock_config::{Config, Control, HttpConfig};
use bellrock_northbound::tokens::{self, GivenTokens};
use bellrock_northbound::{Certificate, HttpSettings, StatisticsSettings};
use bellrock_tables::Budget;

use super::apps::{LiveApp, make};
use super::cluster;
use super::named_files::tls_files;
use super::not_run::NotRun;
use super::stores::{Keeping, SHARED_CONFIG_NAME};
use super::switch_tls;

/// The parts that take changes, as the builder has made them.
pub(super) struct Parts {
    pub(super) names: NamesHandle,
    /// The apps that take changes of their settings, by name.
    pub(super) apps: Vec<(String, Box<dyn LiveApp>)>,
    pub(super) certificate: Option<Certificate>,
    pub(super) tokens: GivenTokens,
    pub(super) switch_tls: Option<TlsHandle>,
    pub(super) node_tls: Option<LinkTls>,
    pub(super) limits: LimitsHandle,
    /// The store of what the nodes of a cluster share, and the name of this one.
    pub(super) shared_config: Option<(Arc<dyn EntryStore>, String)>,
}

/// Adds the apps of a file of Python to the end of the chain.
pub(super) type AddPython<'a> =
    dyn FnMut(ControllerBuilder, &PythonFile) -> Result<ControllerBuilder, NotRun> + 'a;

/// Makes an app in place of the configured one, whose tables have this budget. `None`: the
/// configured one runs.
pub(super) type Substitute<'a> = dyn Fn(&AppChoice, &Budget) -> Option<Box<dyn DynApp>> + 'a;

/// No app is replaced.
pub(super) fn as_configured(_: &AppChoice, _: &Budget) -> Option<Box<dyn DynApp>> {
    None
}

/// The controller of a configuration, and the parts of it that take changes.
pub(super) fn builder(
    config: &Config,
    substitute: &Substitute<'_>,
    add_python: &mut AddPython<'_>,
) -> Result<(ControllerBuilder, Parts), NotRun> {
    let tables = Budget::new(config.table_memory_bytes);
    let services = config.services.settings()?;
    let mut builder =
        Controller::builder().engine(config.engine()).services(services).tables(&tables);
    builder = builder.names(config.names.clone());
    builder = match &config.control {
        Control::None => builder,
        Control::Auto => builder.control_socket(),
        Control::Path(path) => builder.control_socket_at(path),
    };
    let certificate = tls_files(&config.http).map(|files| Certificate::read(&files)).transpose()?;
    let tokens = GivenTokens::default();
    tokens.replace(tokens::of_settings(&config.http.token_hashes).map_err(NotRun::Tokens)?);
    if let Some(settings) = http(&config.http, certificate.clone(), tokens.clone()) {
        builder = builder.http(settings);
    }
    let cluster = cluster::settings(&config.cluster);
    let cluster = cluster.map_err(|error| NotRun::Cluster(error.to_string()))?;
    let shared_stores = cluster.as_ref().map(SharedStores::start).transpose();
    let shared_stores = shared_stores.map_err(|error| NotRun::Cluster(error.to_string()))?;
    let node_tls = cluster.as_ref().and_then(|settings| settings.tls.clone());
    let node = cluster.as_ref().map(|settings| settings.node.clone());
    if let Some(settings) = cluster {
        builder = builder.cluster(settings);
    }
    if let Some(stores) = &shared_stores {
        builder = builder.shared_stores(stores);
    }
    if let Some(tls) = switch_tls::settings(&config.tls)? {
        builder = builder.tls(tls);
    }
    let mut parts = Parts {
        names: builder.names_handle(),
        limits: builder.limits_handle(),
        apps: Vec::new(),
        certificate,
        tokens,
        switch_tls: builder.tls_handle(),
        node_tls,
        shared_config: shared_stores.as_ref().zip(node.clone()).map(|(stores, node)| {
            let store: Arc<dyn EntryStore> = Arc::new(stores.open(SHARED_CONFIG_NAME));
            (store, node)
        }),
    };
    for choice in &config.apps {
        let tables = tables.share(config.table_memory_of(choice.name()));
        if choice.has_tables() {
            builder = builder.app_tables(choice.name(), &tables);
        }
        if let Some(app) = substitute(choice, &tables) {
            builder = builder.boxed_app(app);
            continue;
        }
        if let AppChoice::Python(file) = choice {
            builder = add_python(builder, file)?;
            continue;
        }
        let keeping = Keeping::of(config, choice, shared_stores.as_ref().zip(node.as_deref()));
        let made = make(config, choice, keeping, &tables)?;
        builder = builder.boxed_app(made.app);
        if let Some(orders) = &made.orders {
            builder = builder.orders(orders);
        }
        if let Some(entries) = &made.static_entries {
            builder = builder.static_entries(entries);
        }
        parts.apps.extend(made.live.map(|live| (choice.name().to_owned(), live)));
    }
    for (app, limits) in &config.allow {
        builder = builder.allow(app, limits.allowance.clone());
    }
    Ok((builder, parts))
}

/// The settings of the HTTP server, if there is to be one.
fn http(config: &HttpConfig, tls: Option<Certificate>, given: GivenTokens) -> Option<HttpSettings> {
    let HttpConfig { listen, ryu, tokens, poll_ports, poll_flows, .. } = config.clone();
    let statistics = StatisticsSettings { ports: poll_ports, flows: poll_flows };
    let is_served = !listen.is_empty() || !ryu.is_empty();
    let given_tokens = Some(given);
    let guests = if ryu.is_empty() { Vec::new() } else { vec![bellrock_ryu::interface(ryu)] };
    is_served.then_some(HttpSettings { listen, guests, tls, tokens, given_tokens, statistics })
}

#[cfg(test)]
mod tests {
    use bellrock_config::apps::KNOWN;

    use super::*;

    #[test]
    fn an_app_forwards_and_needs_what_the_check_of_its_settings_takes_for_granted() {
        assert!(KNOWN.iter().map(|known| known.name).eq(bellrock_apps::NAMES));
        let mut asked = bellrock_query::DECLARED.iter().filter_map(|declared| declared.app);
        assert!(asked.all(|app| bellrock_apps::NAMES.contains(&app)), "requests are for apps");
        for known in KNOWN {
            let choice = (known.choice)();
            let config = Config { apps: vec![choice.clone()], ..Config::default() };
            let (builder, _) =
                builder(&config, &as_configured, &mut |builder, _| Ok(builder)).unwrap();
            let [role] = &builder.chain_roles()[..] else { panic!("one app") };
            assert_eq!(role.name, known.name);
            assert_eq!((role.forwards, role.needs), (choice.forwards(), choice.needs()));
        }
    }
}
