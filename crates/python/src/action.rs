//! Actions.

use std::net::{Ipv4Addr, Ipv6Addr};

use bellrock::openflow::{List, typed_actions};
use bellrock::{Action, MacAddr, Port};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::argument::{Arg, wrong_type, wrong_value};

/// What is done to a packet: `Action.output(3)`, `Action.set_eth_dst("02:00:00:00:00:07")`. Compares
/// by value.
///
/// A value that does not fit its field, and an action that the version of the switch does not have,
/// are errors when they are written to a switch.
#[pyclass(name = "Action", module = "bellrock", frozen, eq, from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PyAction(pub(crate) Action<'static>);

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident ($($arg:ident: $type:ty),*) = $value:expr;)*) => {
        #[pymethods]
        impl PyAction {
            $(
                $(#[$doc])*
                #[staticmethod]
                fn $name($($arg: Arg<$type>),*) -> Self {
                    PyAction(Action::$name($($arg.0),*))
                }
            )*

            /// Sends the packet out of a port, with all changes made so far. To the controller, the
            /// whole packet is sent.
            #[staticmethod]
            fn output(port: Arg<Port>) -> Self {
                PyAction(Action::output(port.0))
            }

            /// Sends the packet to a group, with all changes made so far (1.3).
            #[staticmethod]
            fn group(group: u32) -> Self {
                PyAction(Action::group(group))
            }

            /// Reads an action in the form in which it prints, such as `output:3`.
            #[staticmethod]
            fn parse(text: &str) -> PyResult<Self> {
                text.parse().map(PyAction).map_err(wrong_value)
            }

            fn __str__(&self) -> String {
                self.0.to_string()
            }

            fn __repr__(&self) -> String {
                format!("Action.parse('{}')", self.0)
            }
        }
    };
}

typed_actions!(methods);

/// The actions of a call's arguments.
///
/// # Errors
/// `TypeError`: one is no action.
pub(crate) fn actions_in(arguments: &Bound<'_, PyTuple>) -> PyResult<Vec<Action<'static>>> {
    let action = |argument: Borrowed<'_, '_, PyAny>| match argument.cast_exact::<PyAction>() {
        Ok(action) => Ok(action.get().0),
        Err(_) => Err(wrong_type(&argument, "an Action")),
    };
    arguments.iter_borrowed().map(action).collect()
}

/// The actions, as the library has them.
pub(crate) fn actions_of(actions: &[PyAction]) -> Vec<Action<'static>> {
    actions.iter().map(|action| action.0).collect()
}

/// The actions that a switch reports, in the form in which a program makes them: without lengths that mean
/// nothing. Those that have no such form, of an experimenter for example, are left out.
pub(crate) fn reported_actions(actions: List<'_, Action<'_>>) -> Vec<PyAction> {
    actions.iter().filter_map(|action| action.to_string().parse().ok().map(PyAction)).collect()
}
