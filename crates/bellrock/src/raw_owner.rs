//! Controllers without apps, whose messages one owner reads and writes as they are.

use std::mem;

use bellrock_api::RawOwner;
use bellrock_api::runtime::raw_owner;
use bellrock_engine::{Engine, EngineSettings};
use bellrock_services::chain::chain;

use crate::allow::restrict;
use crate::controller::ControllerBuilder;
use crate::run_error::{Result, RunError};

impl ControllerBuilder {
    /// Gives all messages of all switches to an owner, as they are, instead of a chain of apps. The
    /// owner writes with its own xids, cookies and priorities; there is no table-miss entry, no
    /// discovery and no cleaning of flows. Limits, TLS, identities, echoes, metrics and the control
    /// socket are as with apps. The owner has a thread of its own: see [`RawOwner`].
    ///
    /// ```no_run
    #[doc = include_str!("../../../examples/raw_learning.rs")]
    /// ```
    ///
    /// [`start`](Self::start) returns an error if the controller has apps too, or is a node of a
    /// cluster. When the owner is dropped, all its connections end.
    pub fn raw_owner(mut self) -> (Self, RawOwner) {
        let (owner, port) = raw_owner();
        self.raw = Some(port);
        (self, owner)
    }

    /// Starts the engine with the chain of apps, or for the raw owner.
    pub(crate) fn start_engine(&mut self, settings: &EngineSettings) -> Result<Engine> {
        let (apps, allowances) = (mem::take(&mut self.apps), mem::take(&mut self.allowances));
        let Some(owner) = self.raw.take() else {
            let chain = chain(restrict(apps, allowances)?, &self.services)?;
            return Ok(Engine::start(settings, chain)?);
        };
        if !apps.is_empty() {
            let text = "a raw owner excludes apps; leave one of the two out";
            return Err(RunError::Chain(text.to_owned()));
        }
        #[cfg(feature = "cluster")]
        if self.cluster.is_some() {
            let text = "a raw owner orders roles itself, so it is no node of a cluster";
            return Err(RunError::Chain(text.to_owned()));
        }
        Ok(Engine::start_raw(settings, owner)?)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::prelude::Handler;
    use crate::{Controller, per_switch};

    struct Nothing;
    impl Handler for Nothing {}

    #[test]
    fn an_owner_excludes_apps_and_sees_the_stop() {
        let app = per_switch("nothing", |_| Nothing);
        let (builder, owner) = Controller::builder().app(app).raw_owner();
        let error = builder.listen(([127, 0, 0, 1], 0)).start().err().map(|e| e.to_string());
        assert!(error.unwrap_or_default().contains("a raw owner excludes apps"));
        assert!(owner.is_over(), "nothing runs");
        let (builder, owner) = Controller::builder().listen(([127, 0, 0, 1], 0)).raw_owner();
        let controller = builder.start().unwrap();
        assert!(!owner.is_over() && owner.next_within(Duration::from_millis(1)).is_none());
        controller.stop();
        assert!(owner.next().is_none());
    }
}
