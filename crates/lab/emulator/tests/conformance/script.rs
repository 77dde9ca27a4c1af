//! Files of conversations: the steps and their outcomes.
//!
//! ```text
//! == The highest priority counts
//! # 1.3.5 §5.3
//! version: 1.3
//!
//! > flow_mod ADD priority=2, in_port=1 actions=output:2
//! > flow_mod ADD priority=1 actions=output:3
//! frame 1: eth 01>02 ipv4 10.0.0.1>10.0.0.2 udp 1>2
//!     port 2: eth 01>02 ipv4 10.0.0.1>10.0.0.2 udp 1>2
//! ```
//!
//! Indented lines are the outcome of the step above; they are checked, and written with `BLESS=1`.
//! Where the two switches differ, an effect of only one is marked `emulated:` or `ovs:`, and the
//! conversation names the reasons: `differs: buffers`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::frame::{Result, number};

/// Default number of ports of the switch.
const USUAL_PORTS: u32 = 4;

/// A step of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// `> MESSAGE`, or `2> MESSAGE` from the second controller.
    Send { controller: usize, message: String },
    /// `frame PORT: FRAME`, or `frame PORT x3: FRAME` three times.
    Frame { port: u32, times: u64, frame: String },
    /// `wait 3500ms`.
    Wait(Duration),
    /// `link PORT down`, `link PORT up`.
    Link { port: u32, up: bool },
}

/// Settings of the switch before the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setup {
    pub(crate) version: bellrock_openflow::Version,
    pub(crate) controllers: usize,
    pub(crate) ports: u32,
    /// Number of packets that the switch can buffer.
    pub(crate) buffers: u32,
    /// Maximum number of flows in each table; `None` for the default.
    pub(crate) capacity: Option<u32>,
}

pub(crate) struct Conversation {
    pub(crate) title: String,
    pub(crate) setup: Setup,
    /// Names of the reasons why the switches differ.
    pub(crate) differs: Vec<String>,
    pub(crate) steps: Vec<(usize, Step)>,
    pub(crate) recorded: Vec<Outcome>,
}

/// The outcome of a step: of the emulated switch, and of Open vSwitch. An item may have several
/// lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) emulated: Vec<String>,
    pub(crate) ovs: Vec<String>,
}

/// A file, with everything that is needed to write it again.
pub(crate) struct Script {
    pub(crate) path: PathBuf,
    pub(crate) conversations: Vec<Conversation>,
    /// Every line except outcomes; for steps also the conversation and the step.
    lines: Vec<(String, Option<(usize, usize)>)>,
}

const INDENT: &str = "    ";
const EMULATED: &str = "emulated: ";
const OVS: &str = "ovs: ";

impl Script {
    pub(crate) fn read(path: &Path) -> Result<Script> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let mut script =
            Script { path: path.to_owned(), conversations: Vec::new(), lines: Vec::new() };
        for (number, line) in text.lines().enumerate() {
            let place = |error| format!("{}:{}: {error}", path.display(), number + 1);
            script.line(number + 1, line).map_err(place)?;
        }
        Ok(script)
    }

    fn line(&mut self, number: usize, line: &str) -> Result<()> {
        if let Some(outcome) = line.strip_prefix(INDENT) {
            let conversation = self.conversations.last_mut().ok_or("an outcome of nothing")?;
            let recorded = conversation.recorded.last_mut().ok_or("an outcome of nothing")?;
            recorded.read(outcome);
            return Ok(());
        }
        let mut place = None;
        if let Some(title) = line.strip_prefix("== ") {
            self.conversations.push(Conversation::new(title));
        } else if !line.is_empty() && !line.starts_with('#') {
            let last = self
                .conversations
                .len()
                .checked_sub(1)
                .ok_or("a conversation begins with `== `")?;
            let conversation = &mut self.conversations[last];
            if let Some(step) = step(line)? {
                conversation.steps.push((number, step));
                conversation.recorded.push(Outcome::default());
                place = Some((last, conversation.steps.len() - 1));
            } else {
                conversation.set(line)?;
            }
        }
        self.lines.push((line.to_owned(), place));
        Ok(())
    }

    /// Writes the file with these outcomes, one for each step of each conversation.
    pub(crate) fn write(&self, outcomes: &[Vec<Outcome>]) -> std::io::Result<()> {
        let mut text = String::new();
        for (line, place) in &self.lines {
            text.push_str(line);
            text.push('\n');
            if let Some((conversation, step)) = place {
                outcomes[*conversation][*step].write(&mut text);
            }
        }
        std::fs::write(&self.path, text)
    }
}

impl Conversation {
    /// A conversation without steps.
    pub(crate) fn new(title: &str) -> Self {
        let setup = Setup {
            version: bellrock_openflow::Version::V1_3,
            controllers: 1,
            ports: USUAL_PORTS,
            buffers: 0,
            capacity: None,
        };
        let title = title.to_owned();
        Conversation { title, setup, differs: Vec::new(), steps: Vec::new(), recorded: Vec::new() }
    }

    /// Adds a step that is in no file.
    pub(crate) fn add(&mut self, step: Step) {
        self.steps.push((self.steps.len() + 1, step));
        self.recorded.push(Outcome::default());
    }

    fn set(&mut self, line: &str) -> Result<()> {
        let (key, value) = line.split_once(": ").ok_or_else(|| format!("`{line}` is no step"))?;
        match key {
            "version" if value == "1.0" => self.setup.version = bellrock_openflow::Version::V1_0,
            "version" if value == "1.3" => self.setup.version = bellrock_openflow::Version::V1_3,
            "controllers" => self.setup.controllers = number(value)? as usize,
            "ports" => self.setup.ports = number(value)? as u32,
            "buffers" => self.setup.buffers = number(value)? as u32,
            "capacity" => self.setup.capacity = Some(number(value)? as u32),
            "differs" => self.differs = value.split(", ").map(str::to_owned).collect(),
            _ => return Err(format!("`{line}` is no setting and no step")),
        }
        Ok(())
    }
}

/// The step of a line; `None` for other lines.
fn step(line: &str) -> Result<Option<Step>> {
    if let Some((controller, message)) = line.split_once("> ")
        && let Ok(controller) = number(if controller.is_empty() { "1" } else { controller })
    {
        let controller = (controller as usize).checked_sub(1).ok_or("controllers count from 1")?;
        return Ok(Some(Step::Send { controller, message: message.to_owned() }));
    }
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    Ok(Some(match verb {
        "frame" => {
            let (at, frame) = rest.split_once(": ").ok_or("frame PORT: FRAME")?;
            let (port, times) = at.split_once(" x").unwrap_or((at, "1"));
            Step::Frame {
                port: number(port)? as u32,
                times: number(times)?,
                frame: frame.to_owned(),
            }
        }
        "wait" => {
            let milliseconds = rest.strip_suffix("ms").ok_or("wait MILLISECONDSms")?;
            Step::Wait(Duration::from_millis(number(milliseconds)?))
        }
        "link" => match rest.split_once(' ') {
            Some((port, "up")) => Step::Link { port: number(port)? as u32, up: true },
            Some((port, "down")) => Step::Link { port: number(port)? as u32, up: false },
            _ => return Err("link PORT up|down".into()),
        },
        _ => return Ok(None),
    }))
}

impl Outcome {
    /// Reads one line, without its indentation.
    fn read(&mut self, line: &str) {
        let (emulated, ovs, text) = match (line.strip_prefix(EMULATED), line.strip_prefix(OVS)) {
            (Some(text), _) => (true, false, text),
            (_, Some(text)) => (false, true, text),
            _ => (true, true, line),
        };
        for (wanted, items) in [(emulated, &mut self.emulated), (ovs, &mut self.ovs)] {
            match items.last_mut() {
                _ if !wanted => {}
                // A further line of the item above.
                Some(item) if text.starts_with(' ') => {
                    item.push('\n');
                    item.push_str(text);
                }
                _ => items.push(text.to_owned()),
            }
        }
    }

    /// Writes common items once, and items of only one switch with its name.
    pub(crate) fn write(&self, text: &mut String) {
        let (emulated, ovs) = (&self.emulated, &self.ovs);
        let alike = |pairs: &mut dyn Iterator<Item = (&String, &String)>| {
            pairs.take_while(|(a, b)| a == b).count()
        };
        let before = alike(&mut emulated.iter().zip(ovs));
        let shortest = emulated.len().min(ovs.len()) - before;
        let behind = alike(&mut emulated.iter().rev().zip(ovs.iter().rev())).min(shortest);
        let marked = |items: &[String], mark: &str| -> Vec<String> {
            let lines = items[before..items.len() - behind].iter().flat_map(|item| item.lines());
            lines.map(|line| format!("{mark}{line}")).collect()
        };
        let plain = |items: &[String]| -> Vec<String> {
            items.iter().flat_map(|item| item.lines()).map(str::to_owned).collect()
        };
        let parts = [
            plain(&emulated[..before]),
            marked(emulated, EMULATED),
            marked(ovs, OVS),
            plain(&emulated[emulated.len() - behind..]),
        ];
        for line in parts.iter().flatten() {
            text.push_str(INDENT);
            text.push_str(line);
            text.push('\n');
        }
    }
}
