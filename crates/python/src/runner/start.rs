//! When apps start: with the controller, in each term of this node, and again when their code is
//! replaced.

use std::sync::{Arc, PoisonError};

use bellrock::{Network, Scope};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyNone;

use super::shared::TermEvent;
use super::{Handlers, Runner, RunnerApp};

impl Runner {
    /// Calls `start` of all apps, but those that run once: theirs is called when a term begins.
    ///
    /// # Errors
    /// The exception of an app.
    pub(crate) fn start(&self, py: Python<'_>) -> PyResult<()> {
        for app in self.apps.iter().filter(|app| app.scope == Scope::PerSwitch) {
            let network = app.network()?.clone();
            self.start_app(py, app, network)?;
        }
        Ok(())
    }

    fn start_app(&self, py: Python<'_>, app: &RunnerApp, network: Network) -> PyResult<()> {
        let of_python = app.python_network_of(&network, &self.shared);
        *app.started() = Some(network);
        let module = py.import(intern!(py, "bellrock._app"))?;
        module.call_method1(intern!(py, "begin"), (app.object(py), of_python))?;
        Ok(())
    }

    /// Starts apps whose term begins, and ends the tasks of those whose term is over.
    ///
    /// # Errors
    /// An exception that is to end the program; any one of `start` on a controller that is alone.
    pub(super) fn follow_terms(&self, py: Python<'_>) -> PyResult<()> {
        while let Some(TermEvent { place, network }) = self.shared.terms.pop() {
            let Some(app) = self.apps.get(place) else { continue };
            let Some(network) = network else {
                *app.started() = None;
                let module = py.import(intern!(py, "bellrock._app"))?;
                module.call_method1(intern!(py, "end"), (app.object(py),))?;
                continue;
            };
            let has_term = network.term().is_some();
            match self.start_app(py, app, network) {
                // The next leader must not end for it too.
                Err(error) if has_term => self.report(py, app, error)?,
                result => result?,
            }
        }
        Ok(())
    }

    /// Replaces the object of an app by that of another version of its code, with the same options.
    /// Returns whether there is an app of this name.
    ///
    /// # Errors
    /// An exception that is to end the program.
    pub(crate) fn replace(&self, py: Python<'_>, name: &str, new: Py<PyAny>) -> PyResult<bool> {
        let Some(place) = self.apps.iter().position(|app| app.name == name) else {
            return Ok(false);
        };
        let app = &self.apps[place];
        *app.app.lock().unwrap_or_else(PoisonError::into_inner) = new;
        let started = app.started().clone();
        if let Some(network) = started
            && let Err(error) = self.start_app(py, app, network)
        {
            self.report(py, app, error)?;
        }
        let mut of_app: Vec<_> =
            self.links().values().filter(|it| it.app == place).map(Arc::clone).collect();
        of_app.sort_by_key(|handlers| handlers.switch.get().link().number());
        for handlers in of_app {
            self.renew(py, &handlers)?;
        }
        Ok(true)
    }

    /// Forgets the faults of an app that its switches have not counted yet.
    pub(crate) fn forget_faults(&self, name: &str) {
        let links = self.links();
        let of_app = links.values().filter(|it| self.apps[it.app].name == name);
        of_app.for_each(|handlers| handlers.switch.get().link().renew_code());
    }

    /// Lets a switch come up for the new version of an app, when the flows of the last one are
    /// gone.
    fn renew(&self, py: Python<'_>, old: &Handlers) -> PyResult<()> {
        let (switch, link) = (old.switch.clone_ref(py), Arc::clone(old.switch.get().link()));
        let removal = match self.apps[old.app].flows_may_stay {
            true => None,
            // It is an error if the switch is going, and then nothing is to be removed.
            false => switch.get().remove_all().ok(),
        };
        if removal.is_none() {
            return self.begin_at(py, &link, (old.app, switch), &[]);
        }
        let nothing = PyNone::get(py).to_owned().into_any();
        let waiting =
            Handlers { renewed_after: removal, ..Handlers::of(&nothing, switch, old.app) };
        self.links().insert(link.number(), Arc::new(waiting));
        Ok(())
    }
}
