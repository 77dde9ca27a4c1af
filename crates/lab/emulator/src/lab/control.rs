//! The control connections: when they are made, how long bytes take, and how each end detects that
//! the other is gone.
//!
//! A switch behaves as Open vSwitch does: it waits before it connects again, each time twice as
//! long ([`ReconnectBackoff`]), and sends an echo request after a silence of [`PROBE_AFTER`]. The
//! controller's keepalive is the one of its sessions.

use std::collections::BTreeSet;
use std::time::Duration;

use fastrand::Rng;

use super::SeedStream;
use super::agenda::Agenda;
use super::controller::LabController;
use super::wires::{WireId, WorkerOutput};
use crate::backoff::ReconnectBackoff;
use crate::network::EmulatedNetwork;
use crate::switch::ChannelId;
use crate::topology::SwitchIndex;

/// Default time of bytes between a switch and its controller: a control network in one building.
pub const CONTROL_DELAY: Duration = Duration::from_micros(500);

/// Silence of its controller after which a switch sends an echo request, as in Open vSwitch.
pub const PROBE_AFTER: Duration = Duration::from_secs(5);

/// Further silence after which it closes the connection, as in Open vSwitch.
pub const PROBE_WAIT: Duration = Duration::from_secs(5);

/// Direction of bytes.
#[derive(Clone, Copy)]
enum ByteDirection {
    ToController,
    ToSwitch,
}

/// An event of a control connection.
#[derive(Debug)]
enum ControlEvent {
    /// The switch starts to connect, if this is still its latest attempt.
    Connect,
    /// The attempt reaches the controller.
    Arrives,
    /// The switch learns that the controller has accepted the connection.
    Accepted,
    /// The switch learns that there is no controller.
    Refused,
    /// Bytes reach the controller.
    ToController(Vec<u8>),
    /// Bytes reach the switch.
    ToSwitch(Vec<u8>),
    /// The controller learns that the switch has closed the connection.
    HungUp,
    /// The switch learns that the controller has closed the connection.
    Closed,
    /// The switch checks whether its controller is alive.
    Probe,
}

/// The control connection of one switch.
#[derive(Default)]
struct ControlConnection {
    /// The present connection, or the one that is being made.
    wire: Option<WireId>,
    /// The switch's end of the connection, after it was accepted.
    channel: Option<ChannelId>,
    /// Number of attempts; also the number of the last one.
    attempts: u32,
    /// Attempts since the last one that agreed on a version.
    failures: u32,
    /// Whether its operator wants no connection.
    is_disconnected: bool,
    /// When the switch last heard from its controller.
    last_heard: Duration,
    /// Whether the switch has sent an echo request since.
    has_probed: bool,
    /// When the last bytes in each direction arrive: later bytes do not overtake them.
    last_arrival: [Duration; 2],
    /// How late its messages are.
    late: Lateness,
}

/// Messages are late by up to `at_most`, until `until`.
#[derive(Clone, Copy, Default)]
struct Lateness {
    until: Duration,
    at_most: Duration,
}

impl Lateness {
    fn draw(self, now: Duration, rng: &mut Rng) -> Duration {
        if now >= self.until {
            return Duration::ZERO;
        }
        let maximum = u64::try_from(self.at_most.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(rng.u64(0..=maximum))
    }
}

/// One controller, if it runs, and all connections to it.
pub(super) struct ControlPlane {
    pub(super) controller: Option<LabController>,
    controls: Vec<ControlConnection>,
    agenda: Agenda<(WireId, ControlEvent)>,
    /// Connections that carry nothing, though no end has closed them.
    silent_wires: BTreeSet<WireId>,
    delay: Duration,
    backoff: ReconnectBackoff,
    /// How late the messages of all switches are.
    shuffled: Lateness,
    rng: Rng,
}

impl ControlPlane {
    pub(super) fn new(
        seed: u64,
        switches: usize,
        delay: Duration,
        backoff: ReconnectBackoff,
    ) -> Self {
        ControlPlane {
            controller: None,
            controls: (0..switches).map(|_| ControlConnection::default()).collect(),
            agenda: Agenda::new(),
            silent_wires: BTreeSet::new(),
            delay,
            backoff,
            shuffled: Lateness::default(),
            rng: SeedStream::Messages.rng(seed),
        }
    }

    /// Time of the next event.
    pub(super) fn next(&self) -> Option<Duration> {
        let timers = self.controller.as_ref().and_then(LabController::next_timer);
        self.agenda.next().into_iter().chain(timers).min()
    }

    /// Runs the first event that is due. Returns whether there was one.
    pub(super) fn step(&mut self, network: &mut EmulatedNetwork) -> bool {
        let now = network.now();
        if let Some((wire, event)) = self.agenda.due(now) {
            self.event(wire, event, network);
        } else if let Some(controller) = &mut self.controller
            && controller.next_timer().is_some_and(|at| at <= now)
        {
            controller.timers(now);
        } else {
            return false;
        }
        self.take_sent(now);
        true
    }

    /// Connects a switch after `wait`, unless its operator wants no connection.
    pub(super) fn connect(&mut self, switch: SwitchIndex, wait: Duration, now: Duration) {
        let control = self.control(switch);
        if control.is_disconnected {
            return;
        }
        control.attempts += 1;
        let wire = WireId { switch, number: control.attempts };
        control.wire = Some(wire);
        control.channel = None;
        control.last_arrival = [Duration::ZERO; 2];
        self.agenda.put(now + wait, (wire, ControlEvent::Connect));
    }

    /// Disconnects a switch for its operator, or lets it connect again.
    pub(super) fn set_disconnected(
        &mut self,
        switch: SwitchIndex,
        is_disconnected: bool,
        network: &mut EmulatedNetwork,
    ) {
        let was_away =
            std::mem::replace(&mut self.control(switch).is_disconnected, is_disconnected);
        if is_disconnected {
            self.disconnect(switch, network);
        } else if was_away {
            self.control(switch).failures = 0;
            self.connect(switch, Duration::ZERO, network.now());
        }
    }

    /// Ends the connection of a switch at both ends, if it has one. The switch connects again.
    pub(super) fn reset(&mut self, switch: SwitchIndex, network: &mut EmulatedNetwork) {
        if self.control(switch).channel.is_some() {
            self.disconnect(switch, network);
            self.try_again(switch, network.now());
        }
    }

    /// Stops all bytes on the connection of a switch, if it has one.
    pub(super) fn silence(&mut self, switch: SwitchIndex) {
        let control = self.control(switch);
        let wire = control.wire.filter(|_| control.channel.is_some());
        self.silent_wires.extend(wire);
    }

    /// Handles the restart of a switch: its connection is lost, and it connects at once.
    pub(super) fn restarted(&mut self, switch: SwitchIndex, network: &mut EmulatedNetwork) {
        self.disconnect(switch, network);
        self.control(switch).failures = 0;
        self.connect(switch, Duration::ZERO, network.now());
    }

    /// Makes the messages of a switch late.
    pub(super) fn delay(&mut self, switch: SwitchIndex, until: Duration, at_most: Duration) {
        self.control(switch).late = Lateness { until, at_most };
    }

    /// Makes the messages of different switches arrive in another order.
    pub(super) fn shuffle(&mut self, until: Duration, at_most: Duration) {
        self.shuffled = Lateness { until, at_most };
    }

    /// Maximum time that a switch waits before it connects again.
    pub(super) fn longest_wait(&self) -> Duration {
        self.backoff.maximum
    }

    /// Stops the controller. Its connections close.
    pub(super) fn stop(&mut self, now: Duration) {
        if let Some(controller) = &mut self.controller {
            controller.stop(now);
        }
        self.take_sent(now);
        self.controller = None;
    }

    fn event(&mut self, wire: WireId, event: ControlEvent, network: &mut EmulatedNetwork) {
        let now = network.now();
        let current = self.control(wire.switch).wire == Some(wire);
        match event {
            ControlEvent::ToController(_)
            | ControlEvent::ToSwitch(_)
            | ControlEvent::HungUp
            | ControlEvent::Closed
                if self.silent_wires.contains(&wire) => {}
            ControlEvent::ToController(bytes) => {
                if let Some(controller) = &mut self.controller {
                    controller.received(wire, &bytes, now);
                }
            }
            ControlEvent::HungUp => {
                if let Some(controller) = &mut self.controller {
                    controller.hung_up(wire, now);
                }
            }
            // Everything else concerns the switch, which knows only its newest connection.
            _ if !current => {}
            ControlEvent::Connect => {
                self.send(wire, ByteDirection::ToController, ControlEvent::Arrives, now);
            }
            ControlEvent::Arrives => {
                let answer = if self.controller.is_some() {
                    ControlEvent::Accepted
                } else {
                    ControlEvent::Refused
                };
                self.send(wire, ByteDirection::ToSwitch, answer, now);
                if let Some(controller) = &mut self.controller {
                    controller.open(wire, now);
                }
            }
            ControlEvent::Accepted => self.accepted(wire, network),
            ControlEvent::Refused => self.try_again(wire.switch, now),
            ControlEvent::ToSwitch(bytes) => self.handle_bytes(wire.switch, &bytes, network),
            ControlEvent::Closed => {
                self.forget_channel(wire.switch, network);
                self.try_again(wire.switch, now);
            }
            ControlEvent::Probe => self.probe(wire, network),
        }
    }

    fn accepted(&mut self, wire: WireId, network: &mut EmulatedNetwork) {
        let now = network.now();
        // A lab has fewer controllers than a switch has channels.
        let Ok(channel) = network.connect(wire.switch) else { return };
        let control = self.control(wire.switch);
        control.channel = Some(channel);
        control.last_heard = now;
        control.has_probed = false;
        self.agenda.put(now + PROBE_AFTER, (wire, ControlEvent::Probe));
    }

    fn handle_bytes(&mut self, switch: SwitchIndex, bytes: &[u8], network: &mut EmulatedNetwork) {
        let now = network.now();
        let control = self.control(switch);
        control.last_heard = now;
        control.has_probed = false;
        let Some(channel) = control.channel else { return };
        let read = network.control(switch, channel, bytes);
        if network.switch(switch).is_ready(channel) {
            self.control(switch).failures = 0;
        }
        if read.is_err() {
            // The last output tells the controller why.
            self.take_output(switch, network);
            self.reset(switch, network);
        }
    }

    /// Checks whether the switch has heard from its controller recently.
    fn probe(&mut self, wire: WireId, network: &mut EmulatedNetwork) {
        let now = network.now();
        let control = self.control(wire.switch);
        let Some(channel) = control.channel else { return };
        let due = control.last_heard + PROBE_AFTER;
        if now < due {
            self.agenda.put(due, (wire, ControlEvent::Probe));
        } else if !control.has_probed {
            control.has_probed = true;
            self.agenda.put(now + PROBE_WAIT, (wire, ControlEvent::Probe));
            network.ask_echo(wire.switch, channel);
        } else {
            self.reset(wire.switch, network);
        }
    }

    /// Ends the connection of a switch, or its attempt; the controller learns of it.
    fn disconnect(&mut self, switch: SwitchIndex, network: &mut EmulatedNetwork) {
        self.forget_channel(switch, network);
        if let Some(wire) = self.control(switch).wire {
            self.send(wire, ByteDirection::ToController, ControlEvent::HungUp, network.now());
        }
        self.control(switch).wire = None;
    }

    fn forget_channel(&mut self, switch: SwitchIndex, network: &mut EmulatedNetwork) {
        if let Some(channel) = self.control(switch).channel.take() {
            network.disconnect(switch, channel);
        }
    }

    fn try_again(&mut self, switch: SwitchIndex, now: Duration) {
        let control = self.control(switch);
        control.failures = control.failures.saturating_add(1);
        let failures = control.failures;
        let wait = self.backoff.after(failures);
        self.connect(switch, wait, now);
    }

    /// Sends the output of a switch to this controller.
    pub(super) fn take_output(&mut self, switch: SwitchIndex, network: &mut EmulatedNetwork) {
        let control = self.control(switch);
        let (Some(wire), Some(channel)) = (control.wire, control.channel) else { return };
        // Requests may wait until the output is sent, and then add more output.
        loop {
            let bytes = network.switch(switch).output(channel).to_vec();
            if bytes.is_empty() {
                return;
            }
            let n = bytes.len();
            self.carry(wire, ByteDirection::ToController, bytes, network.now());
            if network.sent(switch, channel, n).is_err() {
                return self.reset(switch, network);
            }
        }
    }

    /// Sends the output of the controller.
    fn take_sent(&mut self, now: Duration) {
        let Some(mut controller) = self.controller.take() else { return };
        controller.take_sent(|wire, sent| match sent {
            WorkerOutput::Bytes(bytes) => {
                self.carry(wire, ByteDirection::ToSwitch, bytes, now);
            }
            WorkerOutput::Closed => {
                self.send(wire, ByteDirection::ToSwitch, ControlEvent::Closed, now);
            }
        });
        self.controller = Some(controller);
    }

    /// Sends bytes. Late messages are also cut into pieces, anywhere.
    fn carry(&mut self, wire: WireId, direction: ByteDirection, mut bytes: Vec<u8>, now: Duration) {
        let event = match direction {
            ByteDirection::ToController => ControlEvent::ToController,
            ByteDirection::ToSwitch => ControlEvent::ToSwitch,
        };
        if now < self.control(wire.switch).late.until && bytes.len() > 1 {
            let rest = bytes.split_off(self.rng.usize(1..bytes.len()));
            self.send(wire, direction, event(bytes), now);
            bytes = rest;
        }
        self.send(wire, direction, event(bytes), now);
    }

    /// Queues an event that travels over a connection. It does not overtake earlier ones.
    fn send(&mut self, wire: WireId, direction: ByteDirection, event: ControlEvent, now: Duration) {
        let late = self.controls[wire.switch.index()].late;
        let extra = self.shuffled.draw(now, &mut self.rng) + late.draw(now, &mut self.rng);
        let mut at = now + self.delay + extra;
        let control = self.control(wire.switch);
        // Bytes on an older connection arrive in any order.
        if control.wire == Some(wire) {
            let last = &mut control.last_arrival[direction as usize];
            at = at.max(*last);
            *last = at;
        }
        self.agenda.put(at, (wire, event));
    }

    fn control(&mut self, switch: SwitchIndex) -> &mut ControlConnection {
        &mut self.controls[switch.index()]
    }
}
