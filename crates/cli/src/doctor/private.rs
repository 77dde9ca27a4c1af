//! Files that others must not read or write, and the place of what outlasts a restart.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bellrock_config::Config;
use bellrock_config::apps::AppChoice;
use bellrock_daemon::store_path;

use super::Finding;

const TOPIC: &str = "permissions";

/// Permissions of a file that make it no secret: others than its owner and group can read or write
/// it, or its group can write it.
const OPEN_TO_OTHERS: u32 = 0o026;

/// The same for a file that anybody may read.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Whether others can read keys or passwords, or write tokens. Files that cannot be read are errors
/// of the configuration already.
pub(super) fn files(config: &Config) -> Vec<Finding> {
    let cluster = &config.cluster;
    let secret = [
        &config.http.key,
        &config.tls.key,
        &config.services.key_file,
        &cluster.tls.key,
        &cluster.etcd.key,
    ];
    let secret = secret.into_iter().flatten().filter_map(|path| {
        file(path, OPEN_TO_OTHERS, "others can read or write this key", "chmod 600")
    });
    let password = cluster.etcd.password_file.iter().filter_map(|path| {
        file(path, OPEN_TO_OTHERS, "others can read or write this password", "chmod 600")
    });
    // It has hashes only. But who writes it makes tokens.
    let tokens = config.http.tokens.iter().filter_map(|path| {
        file(path, WRITABLE_BY_OTHERS, "others can write tokens into it", "chmod go-w")
    });
    secret.chain(password).chain(tokens).collect()
}

fn file(path: &Path, forbidden: u32, found: &str, command: &str) -> Option<Finding> {
    let mode = fs::metadata(path).ok()?.permissions().mode();
    let name = path.display();
    Some(match mode & forbidden {
        0 => Finding::good(TOPIC, format!("{name} has the mode {:03o}", mode & 0o777)),
        _ => Finding::note(
            TOPIC,
            format!("{name} has the mode {:03o}: {found}", mode & 0o777),
            format!("{command} {name}"),
        ),
    })
}

/// Where static entries are kept. The check of the configuration has read the file.
pub(super) fn state(config: &Config) -> Option<Finding> {
    let topic = "state";
    let app = config.apps.iter().find(|app| matches!(app, AppChoice::Static(_)))?;
    if config.cluster.name.is_some() {
        return Some(Finding::good(topic, "static entries are kept in the etcd of the cluster"));
    }
    Some(match store_path(config, app) {
        Some(path) => {
            Finding::good(topic, format!("static entries are kept in {}", path.display()))
        }
        None => Finding::note(
            topic,
            "without STATE_DIRECTORY static entries are kept in memory only",
            "nothing, if the service has StateDirectory=; else name a file with `store` of the app static",
        ),
    })
}
