//! The apps that `bellrock run` offers: a row of [`KNOWN`] for each.
//!
//! In a file an app is a name (`- hub`), or a name with settings (`- learning: {match: l2}`). A
//! name that ends in `.py` is the path of a file with apps in Python.
//!
//! Each module has an app: its settings, what contradicts them, the files that they name, and what
//! it stores. Whoever goes through apps goes through [`KNOWN`], and names none of them.

/// Defines a setting of apps. `$of` returns the settings of an app, `$of_mut` returns them for a
/// change. `$field` is the setting's field, and `$read` reads its value from `$text`.
macro_rules! setting {
    ($of:ident, $of_mut:ident, $key:literal, $value:literal, $about:literal, $field:ident, |$text:ident| $read:expr, $show:expr) => {
        Setting {
            key: $key,
            value: $value,
            about: $about,
            change: Change::Restart,
            form: Form::One {
                set: |choice, $text| {
                    if let Some(settings) = choice.$of_mut() {
                        settings.$field = $read?;
                    }
                    Ok(())
                },
                show: |choice| choice.$of().map_or_else(String::new, |its| $show(&its.$field)),
            },
        }
    };
}

/// Defines the setting `store` of an app that keeps `$what` in `$file`.
macro_rules! store_setting {
    ($what:literal, $file:literal) => {
        Setting {
            key: "store",
            value: "PATH",
            about: concat!(
                "The file that keeps ",
                $what,
                " over a restart of the controller. auto: ",
                $file,
                " in the state directory of the service, or nowhere without one. none: nowhere. A ",
                "cluster keeps them in its etcd."
            ),
            change: Change::Restart,
            form: Form::One {
                set: |choice, text| {
                    if let Some(store) = choice.store_mut() {
                        *store = StorePlace::read(text)?;
                    }
                    Ok(())
                },
                show: |choice| choice.store().cloned().unwrap_or_default().show(),
            },
        }
    };
}

mod bandwidth;
mod hub;
mod learning;
mod provisioning;
mod quarantine;
mod routing;
mod static_entries;

use std::path::Path;

use bellrock_api::{Forwards, Needs};
use bellrock_apps::bandwidth::BandwidthSettings;
use bellrock_apps::provisioning::ProvisioningSettings;
use bellrock_apps::{LearningSettings, RoutingSettings};

use super::Config;
use super::contradictions::Contradiction;
use super::files::WrongFile;
use super::form::Setting;
use super::store::StorePlace;
use super::values;

pub use quarantine::{BlockListError, MAX_BLOCK_LIST_BYTES, QuarantineSettings, read_block_list};
pub use static_entries::StaticSettings;

/// An app of the chain, with its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppChoice {
    /// `hub`.
    Hub,
    /// `learning`.
    Learning(LearningSettings),
    /// `global_learning`.
    GlobalLearning(LearningSettings),
    /// `bandwidth`.
    Bandwidth(BandwidthSettings, StorePlace),
    /// `provisioning`.
    Provisioning(ProvisioningSettings, StorePlace),
    /// `quarantine`.
    Quarantine(QuarantineSettings),
    /// `routing`.
    Routing(RoutingSettings),
    /// `static`.
    Static(StaticSettings),
    /// The apps of a file of Python.
    Python(PythonFile),
}

/// A file with apps in Python. They are known when Python has read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonFile(String);

impl PythonFile {
    /// The file that an app's name is the path of, if it ends in `.py`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let is_python = Path::new(name).extension().is_some_and(|extension| extension == "py");
        is_python.then(|| PythonFile(name.to_owned()))
    }

    /// Its path. A relative one begins at the working directory of the controller, as those of all
    /// settings.
    #[must_use]
    pub fn path(&self) -> &Path {
        Path::new(&self.0)
    }
}

/// An app that can be chosen.
pub struct Known {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one or two sentences.
    pub about: &'static str,
    /// The app with its default settings.
    pub choice: fn() -> AppChoice,
    /// Its settings, in order.
    pub settings: &'static [Setting<AppChoice>],
    /// Those of its settings that the nodes of a cluster share.
    pub shared: &'static [&'static str],
    /// The value of [`App::forwards`](bellrock_api::App::forwards), before the app is made.
    pub forwards: Forwards,
    /// The value of `App::needs`, before the app is made.
    pub needs: Needs,
    /// What outlasts the controller, if something does. Then it has a setting `store`.
    pub stored: Option<Stored>,
    /// Why it can do nothing if nobody can give it orders.
    pub idle: fn(&AppChoice) -> Option<&'static str>,
    /// What contradicts its settings.
    pub(crate) contradictions: fn(&AppChoice, &Config) -> Vec<Contradiction>,
    /// What is wrong with the files that its settings name.
    pub(crate) wrong_files: fn(&AppChoice) -> Vec<WrongFile>,
}

/// What an app keeps over a restart of the controller.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    /// What it is, such as "static entries".
    pub what: &'static str,
    /// Name of its file in the state directory.
    pub file: &'static str,
    /// Its name in the etcd of a cluster.
    pub shared: &'static str,
}

impl Known {
    /// An app without settings that passes packets on.
    const PLAIN: Known = Known {
        name: "",
        about: "",
        choice: || AppChoice::Hub,
        settings: &[],
        shared: &[],
        forwards: Forwards::Nothing,
        needs: Needs::empty(),
        stored: None,
        idle: |_| None,
        contradictions: |_, _| Vec::new(),
        wrong_files: |_| Vec::new(),
    };

    /// Its settings that the nodes of a cluster share.
    pub(crate) fn shared_settings(&self) -> impl Iterator<Item = &'static Setting<AppChoice>> {
        let (settings, shared) = (self.settings, self.shared);
        settings.iter().filter(|setting| shared.contains(&setting.key))
    }
}

/// All apps that can be chosen.
pub const KNOWN: &[Known] = &[
    learning::LEARNING,
    learning::GLOBAL_LEARNING,
    routing::ROUTING,
    hub::HUB,
    quarantine::QUARANTINE,
    static_entries::STATIC,
    provisioning::PROVISIONING,
    bandwidth::BANDWIDTH,
];

impl AppChoice {
    /// Name of the app, as operators write it: of a file, its path.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            AppChoice::Hub => hub::HUB.name,
            AppChoice::Learning(_) => learning::LEARNING.name,
            AppChoice::GlobalLearning(_) => learning::GLOBAL_LEARNING.name,
            AppChoice::Bandwidth(..) => bandwidth::BANDWIDTH.name,
            AppChoice::Provisioning(..) => provisioning::PROVISIONING.name,
            AppChoice::Quarantine(_) => quarantine::QUARANTINE.name,
            AppChoice::Routing(_) => routing::ROUTING.name,
            AppChoice::Static(_) => static_entries::STATIC.name,
            AppChoice::Python(file) => &file.0,
        }
    }

    /// Its row in [`KNOWN`]. `None`: apps in Python.
    #[must_use]
    pub fn known(&self) -> Option<&'static Known> {
        KNOWN.iter().find(|known| known.name == self.name())
    }

    /// Whether it has tables that take their memory out of `table_memory_bytes`.
    #[must_use]
    pub fn has_tables(&self) -> bool {
        self.learning().is_some()
    }

    /// Where it keeps what outlasts the controller, if something does.
    #[must_use]
    pub fn store(&self) -> Option<&StorePlace> {
        match self {
            AppChoice::Bandwidth(_, store)
            | AppChoice::Provisioning(_, store)
            | AppChoice::Quarantine(QuarantineSettings { store, .. })
            | AppChoice::Static(StaticSettings { store }) => Some(store),
            _ => None,
        }
    }

    fn store_mut(&mut self) -> Option<&mut StorePlace> {
        match self {
            AppChoice::Bandwidth(_, store)
            | AppChoice::Provisioning(_, store)
            | AppChoice::Quarantine(QuarantineSettings { store, .. })
            | AppChoice::Static(StaticSettings { store }) => Some(store),
            _ => None,
        }
    }

    /// The value of [`App::forwards`](bellrock_api::App::forwards), before the app is made. Those
    /// of apps in Python are not known before.
    #[must_use]
    pub fn forwards(&self) -> Forwards {
        self.known().map_or(Forwards::Unknown, |known| known.forwards)
    }

    /// The value of `App::needs`, before the app is made.
    #[must_use]
    pub fn needs(&self) -> Needs {
        self.known().map_or(Needs::empty(), |known| known.needs)
    }
}

/// Finds the app of Bellrock's own with this name.
///
/// # Errors
/// The names of all apps, as the end of a sentence that begins with "give".
pub fn known(name: &str) -> Result<&'static Known, String> {
    KNOWN.iter().find(|known| known.name == name).ok_or_else(|| {
        let names: Vec<_> = KNOWN.iter().map(|known| known.name).collect();
        format!("{}, or a Python file, such as ./my_app.py", values::one_of(name, &names))
    })
}

/// Makes the app with this name, with its default settings.
///
/// # Errors
/// As [`known`].
pub(crate) fn choose(name: &str) -> Result<AppChoice, String> {
    match PythonFile::named(name) {
        Some(file) => Ok(AppChoice::Python(file)),
        None => Ok((known(name)?.choice)()),
    }
}
