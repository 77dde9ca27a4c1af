//! Changes of the configuration while the controller runs.
//!
//! A reload reads the file again, below the same flags and variables. It changes nothing unless
//! everything is right and can change now: first all that can fail is prepared, then all of it is
//! put in force. What has not changed is not touched.
//!
//! At a node of a cluster, what the nodes share is a layer above the file, and a change of it is a
//! reload.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use bellrock::settings::{LimitsHandle, NamesHandle, TlsHandle};
use bellrock_cluster::link::LinkTls;
use bellrock_config::{Change, Checked, Config, Difference, SettingChange, Sources};
use bellrock_engine::TlsServer;
use bellrock_northbound::tokens::{self, GivenTokens, TokenEntry};
use bellrock_northbound::{Certificate, LoadedCertificate};
use bellrock_query::{
    ErrorKind, QueryError, Reload, ReloadAnswer, RenewedFileRow, SettingChangeRow,
};
use tracing::{info, warn};

use super::apps::{LiveApp, PutInForce};
use super::builder::Parts;
use super::cluster;
use super::log::LogLevel;
use super::named_files::{self, Store, tls_files};
use super::renewed::{NamedFiles, digest};
use super::switch_tls;

/// Time between two looks whether the file has changed. It has to stay the same for that time,
/// since half a file may be right too.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Handles of the parts whose settings can change.
pub(super) struct Reloader {
    sources: Sources,
    log_level: LogLevel,
    names: NamesHandle,
    apps: Vec<(String, Box<dyn LiveApp>)>,
    certificate: Option<Certificate>,
    tokens: GivenTokens,
    switch_tls: Option<TlsHandle>,
    node_tls: Option<LinkTls>,
    limits: LimitsHandle,
    running: Mutex<Running>,
}

/// What is in force.
struct Running {
    config: Config,
    /// The text of its file.
    text: Option<String>,
    shared: SharedText,
    /// The content of the files that it names.
    files: NamedFiles,
    /// Digests of the files with apps in Python, as they were at the start; none if Python follows
    /// them itself.
    python: Vec<(PathBuf, Option<Vec<u8>>)>,
}

/// What the nodes of a cluster share, as far as this one knows.
#[derive(Default)]
struct SharedText {
    /// The newest text. `None`: it is not known yet, or this controller is alone.
    newest: Option<String>,
    /// Why it is not in force.
    refused: Option<String>,
}

impl Running {
    /// Warns of apps in Python that have changed: what Python has loaded stays.
    fn changed_apps(&self) -> impl Iterator<Item = String> {
        let changed = self.python.iter().filter(|(path, before)| digest(path).ok() != *before);
        changed.map(|(path, _)| {
            format!(
                "{} has changed since the start; a restart loads it, or `bellrock run --reload` at once",
                path.display()
            )
        })
    }
}

/// What a reload needs, made before anything changes.
struct Prepared {
    certificate: Option<LoadedCertificate>,
    switch_tls: Option<TlsServer>,
    node_tls: Option<LinkTls>,
    tokens: Vec<TokenEntry>,
    /// The apps whose settings have changed.
    apps: Vec<PutInForce>,
}

impl Reloader {
    pub(super) fn new(
        (sources, reload_apps): (Sources, bool),
        config: Config,
        log_level: LogLevel,
        parts: Parts,
    ) -> Arc<Self> {
        let Parts {
            names,
            apps,
            certificate,
            tokens,
            switch_tls,
            node_tls,
            limits,
            shared_config: _,
        } = parts;
        log_level.show_names(names.watch());
        let files = NamedFiles::read(&config);
        let followed = config.python_files().filter(|_| !reload_apps);
        let python = followed.map(|file| file.path().to_owned());
        let python = python.map(|path| (path.clone(), digest(&path).ok())).collect();
        let (text, shared) =
            (sources.clone().read_text().ok().and_then(|it| it.text), SharedText::default());
        let running = Mutex::new(Running { config, text, shared, files, python });
        Arc::new(Reloader {
            sources,
            log_level,
            names,
            apps,
            certificate,
            tokens,
            switch_tls,
            node_tls,
            limits,
            running,
        })
    }

    /// Reads the configuration again, and applies what has changed.
    ///
    /// # Errors
    /// What is wrong, or needs a restart. Then nothing has changed.
    pub(super) fn reload(&self, order: &Reload) -> Result<ReloadAnswer, QueryError> {
        if self.sources.file.is_none() {
            let why = "the controller was started without a file; start it with --config FILE";
            return Err(QueryError::new(ErrorKind::Refused, why));
        }
        let mut running = self.running();
        let sources =
            self.sources.clone().read_text().map_err(|error| invalid(error.to_string()))?;
        let sources = Sources { shared: running.shared.newest.clone(), ..sources };
        self.read_again(&mut running, sources, order.dry_run)
    }

    /// Applies what the nodes of a cluster share, above the file as it was read last. Without a dry
    /// run, later reloads have it too, also if it is wrong now.
    ///
    /// # Errors
    /// As [`reload`](Self::reload).
    pub(super) fn share(&self, text: &str, dry_run: bool) -> Result<ReloadAnswer, QueryError> {
        let mut running = self.running();
        if !dry_run {
            running.shared.newest = Some(text.to_owned());
        }
        let (file, shared) = (running.text.clone(), Some(text.to_owned()));
        let sources = Sources { text: file, shared, ..self.sources.clone() };
        self.read_again(&mut running, sources, dry_run)
    }

    /// Why what the nodes share is not in force here.
    pub(super) fn shared_trouble(&self) -> Option<String> {
        self.running().shared.refused.clone()
    }

    /// One reload after another. A panic leaves what was in force before it.
    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_again(
        &self,
        running: &mut Running,
        sources: Sources,
        dry_run: bool,
    ) -> Result<ReloadAnswer, QueryError> {
        let answer = self.change_to(running, &sources, dry_run);
        if answer.is_ok() && !dry_run {
            running.text = sources.text;
        }
        if sources.shared.is_some() && !dry_run {
            running.shared.refused = answer.as_ref().err().map(|error| error.message.clone());
            if answer.is_ok() {
                self.apps.iter().for_each(|(_, app)| app.shared_is_known());
            }
        }
        answer
    }

    fn change_to(
        &self,
        running: &mut Running,
        sources: &Sources,
        dry_run: bool,
    ) -> Result<ReloadAnswer, QueryError> {
        let read = named_files::check(sources, Store::InUse);
        let Checked { config, errors, mut warnings } =
            read.map_err(|error| invalid(error.to_string()))?;
        if !errors.is_empty() {
            return Err(invalid(errors.join("\n")));
        }
        // Before they are used: a file that changes in between is named again by the next reload.
        let files = NamedFiles::read(&config);
        let prepared = self.prepare(&running.config, &config)?;
        let difference = difference(&running.config, &config);
        let changes = difference.changes.iter().map(row).collect();
        let renewed = files.renewed(&running.files);
        warnings.extend(running.changed_apps());
        let restart: Vec<_> = difference.at(Change::Restart).map(ToString::to_string).collect();
        let left_behind = restart.iter().filter_map(|change| left_behind(change));
        if dry_run {
            warnings.extend(left_behind);
            return Ok(ReloadAnswer { applied: false, changes, renewed, warnings, notice: None });
        }
        if !restart.is_empty() {
            let lines: Vec<String> = restart.iter().cloned().chain(left_behind).collect();
            let why =
                format!("nothing has changed, because this needs a restart:\n{}", lines.join("\n"));
            return Err(QueryError::new(ErrorKind::Refused, why));
        }
        self.apply(running, config, prepared)?;
        running.files = files;
        for change in &difference.changes {
            info!("configuration: {change}");
        }
        for RenewedFileRow { setting, path } in &renewed {
            info!("configuration: {setting}: {path} is renewed");
        }
        Ok(ReloadAnswer { applied: true, changes, renewed, warnings, notice: None })
    }

    /// The same, reported in the log.
    pub(super) fn reload_and_log(&self) {
        match self.reload(&Reload::default()) {
            Ok(answer) => {
                answer
                    .warnings
                    .iter()
                    .for_each(|it| warn!("{}", it.replacen(": warning: ", ": ", 1)));
                let (changes, renewed) = (answer.changes.len(), answer.renewed.len());
                info!(
                    "the configuration is read again; changes: {changes}, renewed files: {renewed}"
                );
            }
            Err(error) => {
                error.message.lines().for_each(|line| warn!("not reloaded: {line}"));
            }
        }
    }

    /// Makes everything that can be made without a change. A dry run ends after it, so what it does
    /// not report is no error of a reload either, unless the system fails.
    fn prepare(&self, before: &Config, after: &Config) -> Result<Prepared, QueryError> {
        let certificate = self.read_certificate(after)?;
        let switch_tls = self.read_switch_tls(after)?;
        let node_tls = self.read_node_tls(after)?;
        let tokens = tokens::of_settings(&after.http.token_hashes)
            .map_err(|why| invalid(format!("http.token_hashes: {why}")))?;
        let mut apps = Vec::new();
        for (name, app) in &self.apps {
            let settings =
                |config: &'_ Config| config.apps.iter().find(|it| it.name() == name).cloned();
            match settings(after) {
                Some(new) if settings(before).as_ref() != Some(&new) => {
                    apps.push(app.prepare(&new).map_err(invalid)?);
                }
                _ => {}
            }
        }
        Ok(Prepared { certificate, switch_tls, node_tls, tokens, apps })
    }

    fn apply(
        &self,
        running: &mut Running,
        config: Config,
        prepared: Prepared,
    ) -> Result<(), QueryError> {
        let Prepared { certificate, switch_tls, node_tls, tokens, apps } = prepared;
        // Only this can fail, and then it changes nothing itself.
        self.change_rate(&running.config, &config)?;
        apps.into_iter().for_each(|put_in_force| put_in_force());
        if let (Some(handle), Some(certificate)) = (&self.certificate, certificate) {
            handle.replace(certificate);
        }
        if let (Some(handle), Some(server)) = (&self.switch_tls, switch_tls) {
            let (unnamed, map) = (config.tls.identity, config.tls.identities.clone());
            match handle.replace(server, unnamed, map) {
                0 => {}
                closed => warn!("connections of revoked certificates are closed: {closed}"),
            }
        }
        if let (Some(handle), Some(read)) = (&self.node_tls, node_tls) {
            handle.replace(&read);
        }
        self.tokens.replace(tokens);
        self.tokens.reread_file();
        if config.names != running.config.names {
            self.names.set(config.names.clone());
        }
        if config.log_level != running.config.log_level {
            self.log_level.set(config.log_level);
        }
        running.config = config;
        Ok(())
    }

    fn change_rate(&self, before: &Config, after: &Config) -> Result<(), QueryError> {
        let rate = |config: &Config| config.limits.packet_ins_per_second;
        if rate(before) == rate(after) || self.limits.set_packet_ins_per_second(rate(after)) {
            return Ok(());
        }
        // Those that have heard of it get the earlier one again.
        let _ = self.limits.set_packet_ins_per_second(rate(before));
        let why = "nothing has changed, because a worker is too busy to take another packet_ins_per_second; try again";
        Err(QueryError::new(ErrorKind::Busy, why))
    }

    /// The certificate is read again even if its files have the same names: a renewed one replaces
    /// the earlier one in place.
    fn read_certificate(&self, config: &Config) -> Result<Option<LoadedCertificate>, QueryError> {
        let files = self.certificate.as_ref().and(tls_files(&config.http));
        files
            .map(|files| LoadedCertificate::read(&files))
            .transpose()
            .map_err(|error| invalid(error.to_string()))
    }

    /// The same for the files of TLS towards switches.
    fn read_switch_tls(&self, config: &Config) -> Result<Option<TlsServer>, QueryError> {
        let files = self.switch_tls.as_ref().and(switch_tls::files(&config.tls));
        let server = files.map(|files| TlsServer::read(&files)).transpose();
        server.map_err(|error| invalid(format!("TLS towards switches: {error}")))
    }

    /// The same for the files of TLS between the nodes of a cluster.
    fn read_node_tls(&self, config: &Config) -> Result<Option<LinkTls>, QueryError> {
        if self.node_tls.is_none() {
            return Ok(None);
        }
        cluster::tls(&config.cluster)
            .map_err(|error| invalid(format!("TLS between nodes: {error}")))
    }

    /// Reloads whenever the file changes, in a thread that ends with the process.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(super) fn watch_file(self: &Arc<Self>) -> std::io::Result<()> {
        let Some(path) = self.sources.file.clone() else { return Ok(()) };
        let reloader = Arc::downgrade(self);
        let watch = move || {
            let (mut loaded, mut seen) = (identity(&path), identity(&path));
            loop {
                thread::sleep(LOOK_EVERY);
                let Some(reloader) = reloader.upgrade() else { return };
                let now = identity(&path);
                if now == seen && now != loaded && now.is_some() {
                    loaded = now;
                    reloader.reload_and_log();
                }
                seen = now;
            }
        };
        thread::Builder::new().name("configuration".into()).spawn(watch).map(|_| ())
    }
}

/// Identifies one state of a file: its inode, the time of its last change, which nobody can set,
/// and its size.
fn identity(path: &Path) -> Option<(u64, i64, i64, u64)> {
    let found = fs::metadata(path).ok()?;
    Some((found.ino(), found.ctime(), found.ctime_nsec(), found.len()))
}

/// Compares two configurations. Certificates are live, but neither a server nor a node of a cluster
/// begins or ends to speak TLS.
#[must_use]
pub fn difference(before: &Config, after: &Config) -> Difference {
    let mut difference = Difference::between(before, after);
    let mut need_restart = |settings: &[&str]| {
        let is_one = |it: &&mut SettingChange| settings.contains(&it.path.as_str());
        difference.changes.iter_mut().filter(is_one).for_each(|it| it.change = Change::Restart);
    };
    if tls_files(&before.http).is_some() != tls_files(&after.http).is_some() {
        need_restart(&["http.certificate", "http.key"]);
    }
    let has_node_tls = |config: &Config| config.cluster.tls.certificate.is_some();
    if has_node_tls(before) != has_node_tls(after) {
        need_restart(&["cluster.tls.certificate", "cluster.tls.key", "cluster.tls.ca"]);
    }
    difference
}

fn row(change: &SettingChange) -> SettingChangeRow {
    SettingChangeRow {
        setting: change.path.clone(),
        before: change.before.clone(),
        after: change.after.clone(),
        needs_restart: change.change == Change::Restart,
    }
}

/// What is lost by a change that needs a restart: an app with another store begins with what is
/// there.
fn left_behind(change: &str) -> Option<String> {
    let (setting, _) = change.split_once(": ")?;
    let is_store = setting.starts_with("apps.") && setting.ends_with(".store");
    is_store.then(|| {
        format!(
            "{setting}: what is kept now does not move to the new store; copy the file of the old one, or order it \
             again (`bellrock static list --json > FILE` now, `bellrock static apply FILE` after the restart)"
        )
    })
}

fn invalid(why: String) -> QueryError {
    QueryError::new(ErrorKind::Invalid, why)
}
