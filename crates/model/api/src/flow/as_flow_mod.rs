//! What can be installed as a flow.

use bellrock_openflow::{FlowCommand, FlowMod};

use super::Flow;

/// A flow that can be installed: a [`FlowMod`], which borrows its parts and may name any command,
/// or an owned [`Flow`], as plans and desired state take it.
pub trait AsFlowMod {
    /// Calls `call` with it as a flow_mod. A [`Flow`] is added.
    fn as_flow_mod<T>(&self, call: impl FnOnce(&FlowMod<'_>) -> T) -> T;
}

impl AsFlowMod for FlowMod<'_> {
    #[inline(always)]
    fn as_flow_mod<T>(&self, call: impl FnOnce(&FlowMod<'_>) -> T) -> T {
        call(self)
    }
}

impl AsFlowMod for Flow {
    fn as_flow_mod<T>(&self, call: impl FnOnce(&FlowMod<'_>) -> T) -> T {
        self.with_flow_mod(FlowCommand::Add, call)
    }
}
