//! Apps that come with Bellrock, which programs give by their names.

use bellrock::apps::{Hub, Learning, Routing};
use bellrock::lab::{Lab, LabBuilder, LabError};
use bellrock::{App, ControllerBuilder, Needs};
use bellrock_detached::DetachedApp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Names of the apps of Bellrock's own that a program may give.
const OWN_APPS: [&str; 3] = ["hub", "learning", "routing"];

/// An app of Bellrock's own, with its default settings.
pub(crate) enum OwnApp {
    Hub,
    Learning(Box<Learning>),
    Routing(Box<Routing>),
}

/// An app of a chain.
pub(crate) enum ChainApp {
    Python(DetachedApp),
    Own(OwnApp),
}

impl ChainApp {
    /// Adds it to the end of a chain.
    pub(crate) fn add_to<C: Chain>(self, chain: C) -> C {
        match self {
            ChainApp::Python(app) => chain.with(app),
            ChainApp::Own(app) => app.add_to(chain),
        }
    }
}

/// What apps are added to, in the order of the chain.
pub(crate) trait Chain: Sized {
    fn with(self, app: impl App) -> Self;
}

impl Chain for ControllerBuilder {
    fn with(self, app: impl App) -> Self {
        self.app(app)
    }
}

impl Chain for LabBuilder {
    fn with(self, app: impl App) -> Self {
        self.app(app)
    }
}

impl OwnApp {
    /// Finds an app by its name.
    ///
    /// # Errors
    /// `TypeError`: it is no name. `ValueError`: there is no app of this name.
    pub(crate) fn named(name: &Bound<'_, PyAny>) -> PyResult<Self> {
        let name = name.cast::<PyString>().map_err(|_| {
            PyTypeError::new_err("an app is an instance of bellrock.App, or the name of an app")
        })?;
        Ok(match name.to_str()? {
            "hub" => OwnApp::Hub,
            "learning" => OwnApp::Learning(Box::default()),
            "routing" => OwnApp::Routing(Box::default()),
            other => {
                let wrong = format!("there is no app {other:?}; there are {}", OWN_APPS.join(", "));
                return Err(PyValueError::new_err(wrong));
            }
        })
    }

    /// The services that it needs.
    pub(crate) fn needs(&self) -> Needs {
        match self {
            OwnApp::Hub => Hub.needs(),
            OwnApp::Learning(app) => app.needs(),
            OwnApp::Routing(app) => app.needs(),
        }
    }

    /// Adds it to the end of a chain.
    pub(crate) fn add_to<C: Chain>(self, chain: C) -> C {
        match self {
            OwnApp::Hub => chain.with(Hub),
            OwnApp::Learning(app) => chain.with(*app),
            OwnApp::Routing(app) => chain.with(*app),
        }
    }

    /// Runs a lab with it as the last app.
    pub(crate) fn run_last(self, lab: LabBuilder) -> Result<Lab, LabError> {
        match self {
            OwnApp::Hub => lab.try_run(Hub),
            OwnApp::Learning(app) => lab.try_run(*app),
            OwnApp::Routing(app) => lab.try_run(*app),
        }
    }
}
