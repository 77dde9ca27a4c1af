//! Runs a controller from its configuration, until a signal ends it.

use bellrock::{RunError, Signal};
use bellrock_config::Config;
use bellrock_config::apps::AppChoice;
use bellrock_daemon::{Configured, LogLevel, NotRun, RunOptions};
use bellrock_sharing::CostlyTable;

/// Runs the controller until SIGTERM or SIGINT. `table`: the one of `global_learning`, in an
/// experiment.
pub(super) fn run(
    config: Config,
    options: RunOptions,
    log_level: LogLevel,
    table: Option<CostlyTable>,
) -> Result<(), NotRun> {
    // Before any thread starts, and before anything that a signal would leave half done.
    let mut signals = options.watch_signals()?;
    let substitute = |choice: &AppChoice, budget: &_| match (table, choice) {
        (Some(table), AppChoice::GlobalLearning(settings)) => Some(table.app(*settings, budget)),
        _ => None,
    };
    let configured = Configured::start_substituted(config, options, log_level, substitute)?;
    loop {
        match signals.wait(configured.controller()).ok_or(RunError::Failed)? {
            Signal::Reload => configured.reload(),
            Signal::Stop(signal) => {
                configured.stop(signal);
                return Ok(());
            }
        }
    }
}
