//! Ordered lists of actions.

use std::ops::Deref;

use bellrock_openflow::{Action, MacAddr, Port, typed_actions};
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::Flow;

/// An ordered list of actions. It derefs to a slice, so it fits wherever actions are expected:
/// [`FlowMod::actions`](crate::FlowMod::actions), [`Flow::actions`], a bucket,
/// [`Switch::packet_out_with`](crate::Switch::packet_out_with),
/// [`Switch::send_packet`](crate::Switch::send_packet).
///
/// The list allocates memory. Where that costs too much, build an array of [`Action`], which has
/// constructors of the same names: `[Action::set_eth_dst(mac), Action::output(port)]`.
///
/// ```
/// use std::net::Ipv4Addr;
/// use bellrock_api::{Actions, FlowMod, MacAddr, Match, Port};
///
/// let backend = (MacAddr([2, 0, 0, 0, 0, 7]), Ipv4Addr::new(10, 0, 0, 7));
/// let to_backend = Actions::new().set_eth_dst(backend.0).set_ipv4_dst(backend.1).output(Port(3));
/// let to_service = Match::any().eth_type(0x0800).ipv4_dst(Ipv4Addr::new(10, 0, 0, 100));
/// let flow = FlowMod::add(&to_service).idle_timeout(30).actions(&to_backend);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions(Vec<Action<'static>>);

impl Actions {
    /// An empty list: the packet is dropped.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an action.
    #[must_use]
    pub fn then(mut self, action: Action<'static>) -> Self {
        self.0.push(action);
        self
    }

    /// Sends the packet out of a port, with all changes made so far. To the controller, the whole
    /// packet is sent.
    #[must_use]
    pub fn output(self, port: Port) -> Self {
        self.then(Action::output(port))
    }

    /// Sends the packet to a group, with all changes made so far (1.3).
    #[must_use]
    pub fn group(self, group: u32) -> Self {
        self.then(Action::group(group))
    }

    /// Adds a VLAN tag to a packet without one: the same in every version ([`Action::tag`]).
    #[must_use]
    pub fn tag(self, id: u16) -> Self {
        let [push, set] = Action::tag(id);
        self.then(push).then(set)
    }

    /// Removes the VLAN tag of a packet that has one: the same in every version.
    #[must_use]
    pub fn untag(self) -> Self {
        self.then(Action::untag())
    }
}

impl Deref for Actions {
    type Target = [Action<'static>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

macro_rules! chained {
    ($($(#[$doc:meta])* $name:ident ($($arg:ident: $type:ty),*) = $value:expr;)*) => {
        /// Typed actions. Each is appended to the list.
        impl Actions {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(self, $($arg: $type),*) -> Self {
                    self.then(Action::$name($($arg),*))
                }
            )*
        }

        /// Typed actions. Each is appended to the flow's actions.
        impl Flow {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(self, $($arg: $type),*) -> Self {
                    self.actions(&[Action::$name($($arg),*)])
                }
            )*
        }
    };
}

typed_actions!(chained);

#[cfg(test)]
mod tests;
