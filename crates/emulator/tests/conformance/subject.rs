//! What a conversation is held with.

use std::time::Duration;

use super::frame::Result;
use super::script::Setup;

/// A switch that takes part in conversations.
pub(crate) trait Subject {
    /// Its name, for messages about it.
    fn name(&self) -> &'static str;

    /// Makes a new switch with connections to all its controllers. Only hellos have been exchanged.
    fn begin(&mut self, setup: &Setup) -> Result<()>;

    /// Gives it bytes from a controller.
    fn send(&mut self, controller: usize, bytes: &[u8]) -> Result<()>;

    /// A frame arrives at a port.
    fn frame(&mut self, port: u32, frame: &[u8]) -> Result<()>;

    /// Time passes.
    fn wait(&mut self, time: Duration) -> Result<()>;

    /// The link of a port goes down or comes up.
    fn link(&mut self, port: u32, up: bool) -> Result<()>;

    /// All that came of what was done since the last time, when everything has come of it.
    fn heard(&mut self) -> Result<Heard>;
}

/// What a switch did.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// Whole messages, in order: controller and bytes.
    pub(crate) messages: Vec<(usize, Vec<u8>)>,
    /// Frames by port, each port's in order.
    pub(crate) frames: Vec<(u32, Vec<u8>)>,
    /// Controllers whose connection the switch has closed.
    pub(crate) closed: Vec<usize>,
}
