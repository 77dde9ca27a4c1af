//! Actions.

use std::net::{Ipv4Addr, Ipv6Addr};

use bellrock::openflow::{Bytes, List, typed_actions};
use bellrock::{Action, MacAddr, Port, SwitchInfo};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::argument::{Arg, Argument, about, wrong_type, wrong_value};
use crate::kept::{KeptAction, permanent};

/// What is done to a packet: `Action.output(3)`, `Action.set_eth_dst("02:00:00:00:00:07")`.
/// Compares by value.
///
/// A value that does not fit its field, and an action that the version of the switch does not have,
/// are errors when they are written to a switch.
#[pyclass(name = "Action", module = "bellrock", frozen, eq, from_py_object)]
#[derive(Clone)]
pub(crate) struct PyAction(Form);

/// The form of an action.
#[derive(Clone)]
enum Form {
    /// An action as the library has it.
    Known(Action<'static>),
    /// A tag, which is two actions in some versions.
    Tag(u16),
    /// An action without a meaning here, as a switch has reported it.
    Kept(KeptAction),
}

/// Largest VLAN id.
const MAX_VLAN_ID: u16 = 0x0fff;

/// Actions begin at multiples of so many bytes (1.3.5 §7.2.5).
const ALIGNED_BYTES: usize = 8;

/// Maximum length of the bytes of an action of an experimenter, so that it fits a flow.
const MAX_EXPERIMENTER_BYTES: usize = 60_000;

impl PyAction {
    /// The actions of the library that this is.
    fn list(&self) -> Vec<Action<'_>> {
        match &self.0 {
            Form::Known(action) => vec![*action],
            Form::Tag(id) => Action::tag(*id).to_vec(),
            Form::Kept(kept) => vec![kept.action()],
        }
    }

    /// The form in which it prints.
    pub(crate) fn text(&self) -> String {
        match &self.0 {
            Form::Known(action) => action.to_string(),
            Form::Tag(id) => Action::tag(*id).map(|action| action.to_string()).join(","),
            Form::Kept(kept) => kept.to_string(),
        }
    }

    /// Whether it can be sent to a switch.
    fn is_whole(&self) -> bool {
        !matches!(&self.0, Form::Kept(kept) if !kept.is_whole())
    }

    /// Whether flows of this switch can have it.
    pub(crate) fn is_supported(&self, switch: &SwitchInfo) -> bool {
        match &self.0 {
            // It is `set_vlan_vid` where no action pushes tags.
            Form::Tag(id) if !switch.version.pushes_vlan_tags() => {
                switch.supports(&Action::set_vlan_vid(*id))
            }
            _ => self.list().iter().all(|action| switch.supports(action)),
        }
    }

    /// Appends the actions of the library that this is.
    ///
    /// # Errors
    /// `ValueError`: it is no whole action, or there are too many that have no meaning here.
    fn append_to(&self, list: &mut Vec<Action<'static>>) -> PyResult<()> {
        match &self.0 {
            Form::Known(action) => list.push(*action),
            Form::Tag(id) => list.extend(Action::tag(*id)),
            Form::Kept(kept) => list.push(kept.to_permanent()?),
        }
        Ok(())
    }
}

impl PartialEq for PyAction {
    fn eq(&self, other: &Self) -> bool {
        self.list() == other.list() && self.is_whole() == other.is_whole()
    }
}

impl Eq for PyAction {}

impl From<Action<'static>> for PyAction {
    fn from(action: Action<'static>) -> Self {
        PyAction(Form::Known(action))
    }
}

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident ($($arg:ident: $type:ty),*) = $value:expr;)*) => {
        #[pymethods]
        impl PyAction {
            $(
                $(#[$doc])*
                #[staticmethod]
                fn $name($($arg: &Bound<'_, PyAny>),*) -> PyResult<Self> {
                    $(
                        let $arg = <$type>::read($arg)
                            .map_err(|error| about($arg.py(), concat!(stringify!($name), ": ", stringify!($arg)), error))?;
                    )*
                    Ok(Action::$name($($arg),*).into())
                }
            )*

            /// Sends the packet out of a port, with all changes made so far. To the controller, the
            /// whole packet is sent.
            #[staticmethod]
            fn output(port: Arg<Port>) -> Self {
                Action::output(port.0).into()
            }

            /// Sends the packet to a group, with all changes made so far (1.3).
            #[staticmethod]
            fn group(group: Arg<u32>) -> Self {
                Action::group(group.0).into()
            }

            /// Adds a VLAN tag with this id, 12 bits, to a packet without one: the same in every
            /// version.
            ///
            /// A packet that has a tag gets a second one in 1.3, and another id in 1.0: where it
            /// may have one, match `vlan_id`, and use `set_vlan_vid`.
            #[staticmethod]
            fn tag(vlan_id: Arg<u16>) -> PyResult<Self> {
                match vlan_id.0 {
                    id @ 0..=MAX_VLAN_ID => Ok(PyAction(Form::Tag(id))),
                    id => Err(wrong_value(format_args!(
                        "tag: vlan_id is at most {MAX_VLAN_ID}, not {id}"
                    ))),
                }
            }

            /// Removes the VLAN tag of a packet that has one: the same in every version. In 1.3,
            /// the match of the flow names the tag: `Match(vlan_id=7)`.
            #[staticmethod]
            fn untag() -> Self {
                Action::untag().into()
            }

            /// An action of an experimenter (1.0: of a vendor): its id, such as 0x2320 for
            /// Nicira's, and the bytes behind the id. Zeros are added up to a multiple of 8 bytes.
            #[staticmethod]
            fn experimenter(id: Arg<u32>, data: &[u8]) -> PyResult<Self> {
                if data.len() > MAX_EXPERIMENTER_BYTES {
                    let length = data.len();
                    return Err(wrong_value(format_args!(
                        "experimenter: data has at most {MAX_EXPERIMENTER_BYTES} bytes, not {length}"
                    )));
                }
                let mut padded = data.to_vec();
                padded.resize(data.len().next_multiple_of(ALIGNED_BYTES), 0);
                let data = Bytes(permanent(&padded)?);
                Ok(Action::Experimenter { experimenter: id.0, data }.into())
            }

            /// Reads an action in the form in which it prints, such as `output:3`.
            #[staticmethod]
            fn parse(text: &str) -> PyResult<Self> {
                text.parse::<Action<'static>>().map(PyAction::from).map_err(wrong_value)
            }

            /// Id and bytes of an action of an experimenter. `None` for other actions.
            #[getter]
            fn experimenter_data<'py>(&self, py: Python<'py>) -> Option<(u32, Bound<'py, PyBytes>)> {
                match self.list().first() {
                    Some(Action::Experimenter { experimenter, data }) => {
                        Some((*experimenter, PyBytes::new(py, data)))
                    }
                    _ => None,
                }
            }

            fn __str__(&self) -> String {
                self.text()
            }

            fn __repr__(&self) -> String {
                match &self.0 {
                    Form::Tag(id) => format!("Action.tag({id})"),
                    Form::Known(Action::Experimenter { .. }) | Form::Kept(_) => {
                        format!("<Action {}>", self.text())
                    }
                    Form::Known(action) => format!("Action.parse('{action}')"),
                }
            }
        }
    };
}

typed_actions!(methods);

/// The actions of a call's arguments.
///
/// # Errors
/// `TypeError`: one is no action. `ValueError`: one cannot be written.
pub(crate) fn actions_in(arguments: &Bound<'_, PyTuple>) -> PyResult<Vec<Action<'static>>> {
    let mut actions = Vec::with_capacity(arguments.len());
    for argument in arguments.iter_borrowed() {
        match argument.cast_exact::<PyAction>() {
            Ok(action) => action.get().append_to(&mut actions)?,
            Err(_) => return Err(wrong_type(&argument, "an Action")),
        }
    }
    Ok(actions)
}

/// The actions, as the library has them.
///
/// # Errors
/// `ValueError`: one cannot be written.
pub(crate) fn actions_of(actions: &[PyAction]) -> PyResult<Vec<Action<'static>>> {
    let mut list = Vec::with_capacity(actions.len());
    actions.iter().try_for_each(|action| action.append_to(&mut list))?;
    Ok(list)
}

/// The actions of an app, as it gets them back.
pub(crate) fn own_actions(actions: &[Action<'_>]) -> Vec<PyAction> {
    let own = actions.iter().map(|action| match action.bytes() {
        [] => Form::Known(action.with_bytes(&[])),
        _ => Form::Kept(KeptAction::of(action)),
    });
    own.map(PyAction).collect()
}

/// The actions that a switch reports, in the form in which a program makes them: without lengths
/// that mean nothing. Those that have no such form, of an experimenter for example, are kept as
/// they are.
pub(crate) fn reported_actions(actions: List<'_, Action<'_>>) -> Vec<PyAction> {
    let known = actions.iter().map(|action| {
        PyAction(match action.to_string().parse() {
            Ok(known) => Form::Known(known),
            Err(_) => Form::Kept(KeptAction::of(&action)),
        })
    });
    let unread = KeptAction::unread(actions.unread()).map(|kept| PyAction(Form::Kept(kept)));
    known.chain(unread).collect()
}
