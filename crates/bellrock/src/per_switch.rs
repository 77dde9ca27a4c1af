//! Apps that consist only of their handlers.

use std::borrow::Cow;

use bellrock_api::{App, Handler, Match, Network, SwitchInfo};

/// An app with this name. It makes a handler for each switch with `make`, and has no state of its
/// own. An app that shares state between its handlers implements [`App`] instead.
pub fn per_switch<H, F>(name: impl Into<Cow<'static, str>>, make: F) -> PerSwitch<F>
where
    H: Handler,
    F: Fn(&SwitchInfo) -> H + Send + Sync + 'static,
{
    PerSwitch { name: name.into(), make, sees: None }
}

/// The app that [`per_switch`] returns.
#[derive(Clone, Debug)]
pub struct PerSwitch<F> {
    name: Cow<'static, str>,
    make: F,
    sees: Option<Vec<Match>>,
}

impl<F> PerSwitch<F> {
    /// Sets the packets that the app must see, whatever the apps behind it install ([`App::sees`]):
    /// none, if its own flows are enough.
    #[must_use]
    pub fn sees(self, matches: impl IntoIterator<Item = Match>) -> Self {
        PerSwitch { sees: Some(matches.into_iter().collect()), ..self }
    }
}

impl<H, F> App for PerSwitch<F>
where
    H: Handler,
    F: Fn(&SwitchInfo) -> H + Send + Sync + 'static,
{
    type Handler = H;

    fn name(&self) -> &str {
        &self.name
    }

    fn sees(&self) -> Option<Vec<Match>> {
        self.sees.clone()
    }

    fn switch_up(&self, _: &Network, switch: &SwitchInfo) -> H {
        (self.make)(switch)
    }
}

#[cfg(test)]
mod tests {
    use bellrock_api::runtime::DynApp;

    use super::*;

    #[test]
    fn an_app_may_be_named_at_run_time() {
        for port in 1..3 {
            let app: Box<dyn DynApp> = Box::new(per_switch(format!("port{port}"), |_| ()));
            assert_eq!(app.name(), format!("port{port}"));
        }
    }
}
