//! The settings of a controller as flags and variables of the command line. They come from the
//! table in [`bellrock_config::settings`], so that flags and keys of a file agree.

use bellrock_config::settings::{self, GROUPS};
use bellrock_config::{Config, Override, Setting, variable};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches};

/// Settings given by flags or by the environment.
#[derive(Debug, Default)]
pub(crate) struct Overrides(pub(crate) Vec<Override>);

impl Args for Overrides {
    fn augment_args(mut command: clap::Command) -> clap::Command {
        for group in GROUPS {
            let args = group.settings.iter().map(flag);
            command = command.next_help_heading(group.heading).args(args);
        }
        command
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

/// The flag of a setting.
fn flag(setting: &Setting<Config>) -> Arg {
    let default = setting.show(&Config::default());
    let (first, _) = setting.about.split_once(". ").unwrap_or((setting.about, ""));
    let arg = Arg::new(setting.key)
        .long(long(setting.key))
        .value_name(setting.value)
        .env(variable(setting.key))
        .hide_env_values(true)
        .help(format!("{} [default: {default}]", first.trim_end_matches('.')))
        .long_help(format!("{}\n\n[default: {default}]", setting.about));
    let arg = if setting.key == "http.listen" { arg.visible_alias("http") } else { arg };
    match setting.takes_many() {
        true => arg.action(ArgAction::Append).value_delimiter(','),
        false => arg,
    }
}

impl FromArgMatches for Overrides {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut overrides = Overrides::default();
        overrides.update_from_arg_matches(matches)?;
        Ok(overrides)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0 = settings::all().filter_map(|setting| given(setting.key, matches)).collect();
        Ok(())
    }
}

/// The values of a setting on the command line or in the environment. Empty variables do not count.
fn given(key: &'static str, matches: &ArgMatches) -> Option<Override> {
    let values: Vec<String> = matches.get_many::<String>(key)?.cloned().collect();
    let origin = match matches.value_source(key)? {
        ValueSource::EnvVariable if values.iter().all(String::is_empty) => return None,
        ValueSource::EnvVariable => variable(key),
        _ => format!("--{}", long(key)),
    };
    Some(Override { key, origin, values })
}

/// The flag of a setting, without `--`.
fn long(key: &str) -> String {
    key.replace(['_', '.'], "-")
}
