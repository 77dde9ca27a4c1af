//! Apps that consist only of their handlers.

use bellrock_api::{App, Handler, Network, SwitchInfo};

/// An app with this name. It makes a handler for each switch with `make`, and has no state of its
/// own. An app that shares state between its handlers implements [`App`] instead.
pub fn per_switch<H, F>(name: &'static str, make: F) -> PerSwitch<F>
where
    H: Handler,
    F: Fn(&SwitchInfo) -> H + Send + Sync + 'static,
{
    PerSwitch { name, make }
}

/// The app that [`per_switch`] returns.
#[derive(Clone, Debug)]
pub struct PerSwitch<F> {
    name: &'static str,
    make: F,
}

impl<H, F> App for PerSwitch<F>
where
    H: Handler,
    F: Fn(&SwitchInfo) -> H + Send + Sync + 'static,
{
    type Handler = H;

    fn name(&self) -> &'static str {
        self.name
    }

    fn switch_up(&self, _: &Network, switch: &SwitchInfo) -> H {
        (self.make)(switch)
    }
}
