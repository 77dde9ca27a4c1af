//! All lines between switches and controllers, on one poller.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use mio::event::Event;
use mio::{Registry, Token};

use super::connection::{
    ConnectionLoss, ConnectionState, OpenConnection, SwitchConnection, SwitchConnectionStage,
};
#[cfg(feature = "tls")]
use super::tls::SwitchTls;
use super::wire::{READ_BYTES, TcpWire, WireRead};
use crate::backoff::ReconnectBackoff;
use crate::network::EmulatedNetwork;
use crate::topology::SwitchIndex;

/// Maximum number of lines that connect, or agree on a version, at the same time. More would only
/// wait in the controller's backlog; if they did not fit there, TCP would try again a second later.
const MAX_CONNECTING: usize = 64;

/// Maximum time for TCP to connect, and for a controller to say hello.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Minimum time between two checks of the timers: a check reads all lines.
const TIMER_GRAIN: Duration = Duration::from_millis(10);

/// Minimum time that a connection lasts at a controller that serves the switch. The next pause is
/// the shortest then.
const SERVED: Duration = Duration::from_secs(5);

/// A time that never comes.
const NEVER: Duration = Duration::MAX;

/// The lines, and their read buffer. Times are real times since the start.
pub(super) struct SwitchConnections {
    controllers: Vec<SocketAddr>,
    #[cfg(feature = "tls")]
    tls: Option<SwitchTls>,
    backoff: ReconnectBackoff,
    probe_after: Duration,
    registry: Registry,
    /// For each switch, one line for each controller. A line's index is its token.
    lines: Vec<SwitchConnection>,
    /// Lines that are to be served.
    queue: VecDeque<usize>,
    receive: Box<[u8]>,
    next_timer: Duration,
    last_heard: Duration,
}

impl SwitchConnections {
    pub(super) fn new(
        switches: usize,
        controllers: Vec<SocketAddr>,
        backoff: ReconnectBackoff,
        probe_after: Duration,
        registry: Registry,
    ) -> Self {
        let n = controllers.len();
        let lines = (0..switches).flat_map(|switch| {
            (0..n).map(move |controller| SwitchConnection::new(SwitchIndex::of(switch), controller))
        });
        SwitchConnections {
            lines: lines.collect(),
            controllers,
            #[cfg(feature = "tls")]
            tls: None,
            backoff,
            probe_after,
            registry,
            queue: VecDeque::new(),
            receive: vec![0; READ_BYTES].into(),
            next_timer: Duration::ZERO,
            last_heard: Duration::ZERO,
        }
    }

    /// Lets all switches speak TLS.
    #[cfg(feature = "tls")]
    pub(super) fn set_tls(&mut self, tls: Option<SwitchTls>) {
        self.tls = tls;
    }

    /// State of a switch's connection to each controller.
    pub(super) fn of<'n>(
        &'n self,
        switch: SwitchIndex,
        network: &'n EmulatedNetwork,
    ) -> impl Iterator<Item = (SocketAddr, ConnectionState)> + 'n {
        let range = self.range(switch);
        let lines = self.lines.iter().skip(range.start).take(range.len());
        lines.zip(&self.controllers).map(|(line, at)| (*at, state(line, network)))
    }

    /// Number of switches that have agreed on a version with every controller.
    pub(super) fn connected(&self) -> usize {
        let greeted = |line: &SwitchConnection| matches!(&line.stage, SwitchConnectionStage::Open(open) if open.greeted);
        let switches = self.lines.chunks(self.controllers.len().max(1));
        switches.filter(|lines| lines.iter().all(greeted)).count()
    }

    /// When a controller was last heard.
    pub(super) fn last_heard(&self) -> Duration {
        self.last_heard
    }

    /// Whether no line is queued to be served.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Earliest time at which [`timers`](Self::timers) has work.
    pub(super) fn next_timer(&self) -> Duration {
        self.next_timer
    }

    /// Handles an event of the poller.
    pub(super) fn ready(&mut self, event: &Event) {
        let Token(number) = event.token();
        if let Some(wire) = self.lines.get_mut(number).and_then(SwitchConnection::wire) {
            wire.ready(event);
            self.enqueue(number);
        }
    }

    /// Queues the lines of a switch with output.
    pub(super) fn enqueue_switch(&mut self, switch: SwitchIndex) {
        self.range(switch).for_each(|number| self.enqueue(number));
    }

    /// Serves each queued line once.
    pub(super) fn serve(&mut self, now: Duration, network: &mut EmulatedNetwork) {
        for _ in 0..self.queue.len() {
            let Some(number) = self.queue.pop_front() else { break };
            if let Some(line) = self.lines.get_mut(number) {
                line.queued = false;
            }
            match self.turn(number, now, network) {
                Ok(false) => {}
                Ok(true) => self.enqueue(number),
                Err(broken) => self.hang_up(number, &broken, now, network),
            }
        }
    }

    /// Connects lines whose wait is over, and ends attempts that take too long.
    pub(super) fn timers(&mut self, now: Duration, network: &mut EmulatedNetwork) {
        if now < self.next_timer {
            return;
        }
        self.next_timer = NEVER;
        let mut connecting = self.lines.iter().filter(|line| line.is_connecting()).count();
        for number in 0..self.lines.len() {
            let due = match self.due(number, now, network) {
                Ok(ConnectionTimer::Connect) if connecting < MAX_CONNECTING => {
                    connecting += 1;
                    match self.connect(number, now) {
                        Ok(()) => now + CONNECT_TIMEOUT,
                        Err(broken) => {
                            self.hang_up(number, &broken, now, network);
                            now
                        }
                    }
                }
                // It connects when another line has finished.
                Ok(ConnectionTimer::Connect) => NEVER,
                Ok(ConnectionTimer::At(time)) => time.max(now + TIMER_GRAIN),
                Err(broken) => {
                    self.hang_up(number, &broken, now, network);
                    now
                }
            };
            self.next_timer = self.next_timer.min(due);
        }
    }

    /// Ends all connections of a switch that was restarted.
    pub(super) fn restarted(
        &mut self,
        switch: SwitchIndex,
        now: Duration,
        network: &mut EmulatedNetwork,
    ) {
        for number in self.range(switch) {
            if self.lines.get_mut(number).is_some_and(|line| line.wire().is_some()) {
                self.hang_up(number, &ConnectionLoss::Restarted, now, network);
            }
        }
    }

    fn range(&self, switch: SwitchIndex) -> std::ops::Range<usize> {
        let n = self.controllers.len();
        switch.index() * n..(switch.index() + 1) * n
    }

    fn enqueue(&mut self, number: usize) {
        if let Some(line) = self.lines.get_mut(number)
            && !std::mem::replace(&mut line.queued, true)
        {
            self.queue.push_back(number);
        }
    }

    /// Checks the timer of a line.
    fn due(
        &mut self,
        number: usize,
        now: Duration,
        network: &mut EmulatedNetwork,
    ) -> Result<ConnectionTimer, ConnectionLoss> {
        let Some(line) = self.lines.get_mut(number) else { return Ok(ConnectionTimer::At(NEVER)) };
        let switch = line.switch;
        match &mut line.stage {
            SwitchConnectionStage::Waiting { until } if *until <= now => {
                Ok(ConnectionTimer::Connect)
            }
            SwitchConnectionStage::Waiting { until } => Ok(ConnectionTimer::At(*until)),
            SwitchConnectionStage::Connecting { since, .. } => match *since + CONNECT_TIMEOUT {
                end if end <= now => Err(ConnectionLoss::NoAnswer),
                end => Ok(ConnectionTimer::At(end)),
            },
            SwitchConnectionStage::Open(open) if !open.greeted => {
                match open.last_heard + CONNECT_TIMEOUT {
                    end if end <= now => Err(ConnectionLoss::NoHello),
                    end => Ok(ConnectionTimer::At(end)),
                }
            }
            SwitchConnectionStage::Open(open) => match open.last_heard + self.probe_after {
                ask if ask > now => Ok(ConnectionTimer::At(ask)),
                ask if !open.has_probed => {
                    open.has_probed = true;
                    network.ask_echo(switch, open.channel);
                    self.enqueue(number);
                    Ok(ConnectionTimer::At(ask.max(now) + self.probe_after))
                }
                ask if ask + self.probe_after <= now => Err(ConnectionLoss::Silent),
                ask => Ok(ConnectionTimer::At(ask + self.probe_after)),
            },
        }
    }

    fn connect(&mut self, number: usize, now: Duration) -> Result<(), ConnectionLoss> {
        let Some(line) = self.lines.get_mut(number) else { return Ok(()) };
        let Some(controller) = self.controllers.get(line.controller) else { return Ok(()) };
        let wire = TcpWire::connect(*controller, &self.registry, Token(number))?;
        #[cfg(feature = "tls")]
        let wire = match &self.tls {
            Some(tls) => wire.with_tls(tls)?,
            None => wire,
        };
        line.stage = SwitchConnectionStage::Connecting { wire, since: now };
        Ok(())
    }

    /// Reads once and writes. Returns whether there is more to read at once.
    fn turn(
        &mut self,
        number: usize,
        now: Duration,
        network: &mut EmulatedNetwork,
    ) -> Result<bool, ConnectionLoss> {
        let Some(line) = self.lines.get_mut(number) else { return Ok(false) };
        let switch = line.switch;
        if let SwitchConnectionStage::Connecting { wire, .. } = &mut line.stage {
            if !wire.established()? {
                return Ok(false);
            }
            let channel = network.connect(switch)?;
            let waiting = SwitchConnectionStage::Waiting { until: now };
            if let SwitchConnectionStage::Connecting { wire, .. } =
                std::mem::replace(&mut line.stage, waiting)
            {
                let open = OpenConnection {
                    wire,
                    channel,
                    greeted: false,
                    since: now,
                    last_heard: now,
                    has_probed: false,
                };
                line.stage = SwitchConnectionStage::Open(open);
            }
        }
        let SwitchConnectionStage::Open(open) = &mut line.stage else { return Ok(false) };
        let channel = open.channel;
        let mut has_more = false;
        if open.wire.is_readable() && network.switch(switch).wants_input(channel) {
            match open.wire.read(&mut self.receive)? {
                WireRead::Bytes(len) => {
                    (open.last_heard, open.has_probed, self.last_heard) = (now, false, now);
                    network.control(switch, channel, &self.receive[..len])?;
                    has_more = open.wire.is_readable();
                }
                WireRead::Nothing => {}
                WireRead::End => return Err(ConnectionLoss::End),
            }
            if !open.greeted && network.switch(switch).is_ready(channel) {
                open.greeted = true;
                // Now another line may connect.
                self.next_timer = now;
            }
        }
        write(open, switch, network)?;
        match network.switch(switch).overrun() {
            Some((overrun, close)) if overrun == channel => Err(close.into()),
            _ => Ok(has_more),
        }
    }

    fn hang_up(
        &mut self,
        number: usize,
        why: &ConnectionLoss,
        now: Duration,
        network: &mut EmulatedNetwork,
    ) {
        let Some(line) = self.lines.get_mut(number) else { return };
        line.reason = why.to_string();
        let until = if let ConnectionLoss::Restarted = why {
            line.failures = 0;
            now
        } else {
            // A controller that closes the connection again refuses the switch.
            let has_served = matches!(&line.stage, SwitchConnectionStage::Open(open)
                if open.greeted && now >= open.since + SERVED);
            line.failures = if has_served { 1 } else { line.failures.saturating_add(1) };
            now + self.backoff.after(line.failures)
        };
        match std::mem::replace(&mut line.stage, SwitchConnectionStage::Waiting { until }) {
            SwitchConnectionStage::Waiting { .. } => {}
            SwitchConnectionStage::Connecting { wire, .. } => wire.close(&self.registry),
            SwitchConnectionStage::Open(mut open) => {
                // The last output tells the controller why. The connection closes even if this
                // fails.
                let _ = write(&mut open, line.switch, network);
                network.disconnect(line.switch, open.channel);
                open.wire.close(&self.registry);
            }
        }
        self.next_timer = self.next_timer.min(until).min(now);
    }
}

/// The next timer of a line.
enum ConnectionTimer {
    /// Connect now.
    Connect,
    /// Check again at this time.
    At(Duration),
}

/// Writes as many bytes as the kernel takes.
fn write(
    open: &mut OpenConnection,
    switch: SwitchIndex,
    network: &mut EmulatedNetwork,
) -> Result<(), ConnectionLoss> {
    loop {
        let written = open.wire.write(network.switch(switch).output(open.channel))?;
        if written == 0 {
            return Ok(());
        }
        network.sent(switch, open.channel, written)?;
    }
}

fn state(line: &SwitchConnection, network: &EmulatedNetwork) -> ConnectionState {
    if let SwitchConnectionStage::Open(open) = &line.stage
        && let Some(version) = network.switch(line.switch).version(open.channel)
    {
        return ConnectionState::Up(version);
    }
    match line.is_connecting() || line.failures == 0 {
        true => ConnectionState::Connecting,
        false => ConnectionState::Away { reason: line.reason.clone() },
    }
}
