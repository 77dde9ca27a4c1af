//! The emulated switch as a subject, on a clock that advances when a conversation waits.

use std::time::Duration;

use bellrock_emulator::datapath::Effects;
use bellrock_emulator::packet::EthernetFrame;
use bellrock_emulator::switch::{ChannelId, EmulatedSwitch, SwitchSettings};
use bellrock_openflow::{Hello, Out, Port, PortDesc, PortFeatures, frame};

use super::frame::Result;
use super::script::Setup;
use super::subject::{Heard, Subject};

/// The same number of tables as in Open vSwitch.
const TABLES: u8 = 254;

/// The emulated switch of the conversation.
#[derive(Default)]
pub(crate) struct Emulated {
    switch: Option<EmulatedSwitch>,
    /// `None` for a controller whose connection the switch has closed.
    channels: Vec<Option<ChannelId>>,
    now: Duration,
    effects: Effects,
    closed: Vec<usize>,
}

impl Emulated {
    fn switch(&mut self) -> Result<&mut EmulatedSwitch> {
        self.switch.as_mut().ok_or_else(|| "no conversation has begun".to_owned())
    }
}

impl Subject for Emulated {
    fn name(&self) -> &'static str {
        "the emulated switch"
    }

    fn begin(&mut self, setup: &Setup) -> Result<()> {
        let usual = SwitchSettings::new(1, setup.ports);
        // Dummy ports have no medium and no rate.
        let plain = |port: PortDesc| PortDesc {
            current: PortFeatures::empty(),
            advertised: PortFeatures::empty(),
            supported: PortFeatures::empty(),
            current_speed: 0,
            max_speed: 0,
            ..port
        };
        let mut switch = EmulatedSwitch::new(SwitchSettings {
            ports: usual.ports.iter().copied().map(plain).collect(),
            // Each dummy port of Open vSwitch has this queue.
            queues: (1..=setup.ports).map(|port| (Port(port), 0)).collect(),
            tables: TABLES,
            table_capacity: setup.capacity.unwrap_or(usual.table_capacity),
            n_buffers: setup.buffers,
            ..usual
        });
        let connected = (0..setup.controllers).map(|_| switch.connect());
        let channels: std::result::Result<Vec<_>, _> = connected.collect();
        self.channels =
            channels.map_err(|error| error.to_string())?.into_iter().map(Some).collect();
        *self = Emulated {
            switch: Some(switch),
            channels: std::mem::take(&mut self.channels),
            ..Emulated::default()
        };
        for controller in 0..setup.controllers {
            let mut hello = Out::with_capacity(64);
            Hello::write(setup.version, 1, &mut hello).map_err(|error| error.to_string())?;
            self.send(controller, hello.as_slice())?;
        }
        let heard = self.heard()?;
        let hellos = heard.messages.iter().filter(|(_, message)| message[1] == 0).count();
        if hellos != setup.controllers || hellos != heard.messages.len() {
            return Err(format!("more or less than hellos: {heard:?}"));
        }
        Ok(())
    }

    fn send(&mut self, controller: usize, bytes: &[u8]) -> Result<()> {
        let Some(Some(channel)) = self.channels.get(controller).copied() else {
            return Err(format!("controller {} is not connected", controller + 1));
        };
        let (now, mut effects) = (self.now, std::mem::take(&mut self.effects));
        if self.switch()?.control(channel, bytes, now, &mut effects).is_err() {
            self.closed.push(controller);
        }
        self.effects = effects;
        Ok(())
    }

    fn frame(&mut self, port: u32, frame: &[u8]) -> Result<()> {
        let (now, mut effects) = (self.now, std::mem::take(&mut self.effects));
        self.switch()?.frame(port, EthernetFrame::from(frame.to_vec()), now, &mut effects);
        self.effects = effects;
        Ok(())
    }

    fn wait(&mut self, time: Duration) -> Result<()> {
        let (until, mut effects) = (self.now + time, std::mem::take(&mut self.effects));
        while let Some(next) = self.switch()?.next_timer().filter(|next| *next <= until) {
            self.now = next.max(self.now);
            let now = self.now;
            self.switch()?.timers(now, &mut effects);
        }
        self.now = until;
        self.effects = effects;
        Ok(())
    }

    fn link(&mut self, port: u32, up: bool) -> Result<()> {
        let mut effects = std::mem::take(&mut self.effects);
        self.switch()?.set_link(port, up, &mut effects);
        self.effects = effects;
        Ok(())
    }

    fn heard(&mut self) -> Result<Heard> {
        let (now, mut effects) = (self.now, std::mem::take(&mut self.effects));
        let mut heard = Heard { closed: std::mem::take(&mut self.closed), ..Heard::default() };
        for controller in 0..self.channels.len() {
            let Some(channel) = self.channels[controller] else { continue };
            let switch = self.switch()?;
            let mut output = Vec::new();
            while !switch.output(channel).is_empty() {
                let bytes = switch.output(channel).to_vec();
                switch
                    .sent(channel, bytes.len(), now, &mut effects)
                    .map_err(|error| error.to_string())?;
                output.extend(bytes);
            }
            let mut rest = output.as_slice();
            while let Some(message) = frame(rest).map_err(|error| error.to_string())? {
                heard.messages.push((controller, message.bytes.to_vec()));
                rest = &rest[message.bytes.len()..];
            }
            if heard.closed.contains(&controller) {
                self.switch()?.disconnect(channel);
                self.channels[controller] = None;
            }
        }
        let frames = effects.frames.drain(..).filter(|(port, _)| *port != Port::LOCAL.0);
        heard.frames = frames.map(|(port, frame)| (port, frame.into_vec())).collect();
        self.effects = effects;
        Ok(heard)
    }
}
