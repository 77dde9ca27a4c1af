//! What apps of a chain may do, and how much memory their tables may take.

use bellrock_api::Allowance;
use bellrock_api::runtime::{AllowedApp, DynApp};
#[cfg(feature = "control")]
use bellrock_tables::Budget;

use crate::controller::ControllerBuilder;
use crate::run_error::{Result, RunError};

impl ControllerBuilder {
    /// Lets the app with this name do only what the allowance says, for an app of somebody else's
    /// choice. What goes over is not sent: the app gets an error, `refused` of the app counts it,
    /// and an event names it. Apps without an allowance may do everything, and are
    /// named when they send far too many messages ([`APP_MESSAGES_PER_SECOND`]).
    ///
    /// [`APP_MESSAGES_PER_SECOND`]: bellrock_api::APP_MESSAGES_PER_SECOND
    ///
    /// This keeps mistakes and greed of an app from the switches. Code in the controller's own
    /// process can still read and write the process's memory.
    ///
    /// ```
    /// # use bellrock::prelude::*;
    /// # struct Nothing;
    /// # impl Handler for Nothing {}
    /// use bellrock::app::{Allowance, AllowedWrites};
    ///
    /// let reads = Allowance { write: AllowedWrites::None, ..Allowance::default() };
    /// let app = per_switch("statistics", |_| Nothing);
    /// let builder = bellrock::Controller::builder().app(app).allow("statistics", reads);
    /// ```
    pub fn allow(mut self, app: &str, allowance: Allowance) -> Self {
        self.allowances.push((app.to_owned(), allowance));
        self
    }

    /// Names the app with this name when its tables, which take their memory out of `tables`, get
    /// no more (feature `control`): by an event, and in `bellrock apps`. `tables` is its
    /// [`share`](Budget::share) of a budget of all apps, or a budget of its own.
    #[cfg(feature = "control")]
    pub fn app_tables(mut self, app: &str, tables: &Budget) -> Self {
        self.app_tables.insert(app.to_owned(), tables.clone());
        self
    }
}

/// Restricts the apps that have an allowance; the last of an app counts.
pub(crate) fn restrict(
    mut apps: Vec<Box<dyn DynApp>>,
    allowances: Vec<(String, Allowance)>,
) -> Result<Vec<Box<dyn DynApp>>> {
    for (name, allowance) in allowances {
        let Some(place) = apps.iter().position(|app| app.name() == name) else {
            let text = format!("the app {name:?} has an allowance, and is not in the chain");
            return Err(RunError::Chain(text));
        };
        let app = apps.remove(place);
        apps.insert(place, Box::new(AllowedApp::new(app, allowance)));
    }
    Ok(apps)
}
