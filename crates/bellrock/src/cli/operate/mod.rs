//! Commands to the apps of a running controller, from the command line to the app and back.
//!
//! A command is sent over the control socket as words. In the controller, [`Commands`] passes them
//! to the app, if it is in the chain.

#[cfg(feature = "cli")]
pub(super) mod bandwidth;
#[cfg(feature = "cli")]
pub(super) mod block_list;
#[cfg(feature = "cli")]
pub(super) mod kept;
#[cfg(feature = "cli")]
pub(super) mod provisioning;
#[cfg(feature = "cli")]
pub(super) mod quarantine;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bellrock_api::Network;
use serde_json::Value;

use super::wait::wait_until;

/// The commands of all apps, in the chain or not, and the app of each.
pub(super) const COMMANDS: &[(&str, &str)] = &[
    ("quarantine", "quarantine"),
    ("reserve", "bandwidth"),
    ("release", "bandwidth"),
    ("reservations", "bandwidth"),
    ("circuits", "provisioning"),
];

/// Carries out a command from the words after its name. The answer is JSON. An error is a sentence
/// that says why nothing was done.
type Handler = Box<dyn Fn(&Network, &[&str]) -> Result<Value, String> + Send + Sync>;

/// The commands of the apps in a chain.
#[derive(Default)]
pub(super) struct Commands {
    handlers: BTreeMap<&'static str, Handler>,
    /// Whether the chain belongs to your own program, which calls its apps itself.
    of_own_program: bool,
}

impl Commands {
    /// The commands of your own program: none.
    pub(super) fn of_own_program() -> Self {
        Commands { of_own_program: true, ..Commands::default() }
    }

    /// Registers the handler of the command with this name.
    pub(super) fn add(
        &mut self,
        command: &'static str,
        handler: impl Fn(&Network, &[&str]) -> Result<Value, String> + Send + Sync + 'static,
    ) {
        self.handlers.insert(command, Box::new(handler));
    }

    /// Carries out a command.
    ///
    /// # Errors
    /// Why it could not be done.
    pub(super) fn call(
        &self,
        network: &Network,
        command: &str,
        words: &[String],
    ) -> Result<Value, String> {
        let handler = self.handlers.get(command).ok_or_else(|| self.not_here(command))?;
        handler(network, &words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Explains why no app takes a command.
    fn not_here(&self, command: &str) -> String {
        let app =
            COMMANDS.iter().find(|(name, _)| *name == command).map_or(command, |(_, app)| app);
        if self.of_own_program {
            return format!(
                "`{command}` asks the app `{app}` of `bellrock run`; this controller is another program, which \
                 calls its apps itself"
            );
        }
        format!(
            "`{command}` needs the app `{app}`, which this controller does not run; start it with \
             that app before those that carry all packets: `bellrock run --app {app} --app \
             learning`"
        )
    }
}

/// Time limit for a command of an app. The client waits a little longer.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(8);

/// Waits in this thread for the answer of an app's task.
///
/// # Errors
/// There is no answer in time, or at all.
fn wait_for<T>(answer: bellrock_api::Answer<T>) -> Result<T, String> {
    let answer = wait_until(Instant::now() + COMMAND_TIMEOUT, answer).ok_or_else(|| {
        let limit = COMMAND_TIMEOUT.as_secs();
        format!("it is not done after {limit} s, and continues; ask for the result later")
    })?;
    answer.ok_or_else(|| "the controller is stopping".to_owned())
}

/// Formats an app's answer as text.
#[cfg(feature = "cli")]
pub(super) fn show(command: &str, answer: Value) -> serde_json::Result<String> {
    match command {
        "reserve" | "release" | "reservations" => {
            Ok(bandwidth::show(&serde_json::from_value::<Vec<_>>(answer)?))
        }
        "circuits" => Ok(provisioning::show(&serde_json::from_value::<Vec<_>>(answer)?)),
        "quarantine" => Ok(quarantine::show(serde_json::from_value(answer)?)),
        _ => super::show::json(&answer),
    }
}
