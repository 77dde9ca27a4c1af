//! Completion with Tab at the prompt: commands, hosts, switches, and the ends of links.
//!
//! The possible next words come from the table of commands, so they agree with the help.

use std::collections::BTreeMap;

use bellrock_emulator::topology::TopologySpec;
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use super::request::{COMMANDS, HOST_COMMANDS};

/// The names of a network.
pub(super) struct Names {
    hosts: Vec<String>,
    switches: Vec<String>,
    /// Names at the other ends of the links of each switch and host.
    neighbours: BTreeMap<String, Vec<String>>,
}

impl Names {
    pub(super) fn of(topology: &TopologySpec) -> Self {
        let mut neighbours = BTreeMap::<String, Vec<String>>::new();
        for link in topology.links() {
            let [a, b] = [0, 1].map(|end| topology.name(link.ends[end].node).to_owned());
            neighbours.entry(a.clone()).or_default().push(b.clone());
            neighbours.entry(b).or_default().push(a);
        }
        Names {
            hosts: topology.hosts().iter().map(|host| host.name.clone()).collect(),
            switches: topology.switches().iter().map(|switch| switch.name.clone()).collect(),
            neighbours,
        }
    }

    /// Start of the last word of a line, and its possible completions.
    fn complete(&self, line: &str) -> (usize, Vec<String>) {
        let start = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let (before, last) = line.split_at(start);
        let before: Vec<&str> = before.split_whitespace().collect();
        let mut words: Vec<String> =
            self.next(&before).into_iter().filter(|word| word.starts_with(last)).collect();
        words.dedup();
        (start, words)
    }

    /// Possible words after these words.
    fn next(&self, before: &[&str]) -> Vec<String> {
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let Some((&first, given)) = before.split_first() else {
            let commands = COMMANDS.iter().map(|command| command.name.to_owned());
            return commands.chain(self.hosts.iter().cloned()).collect();
        };
        if self.hosts.iter().any(|host| host == first) {
            return match given {
                [] => own(HOST_COMMANDS),
                [command] if HOST_COMMANDS.contains(command) => {
                    self.hosts.iter().filter(|host| *host != first).cloned().collect()
                }
                _ => Vec::new(),
            };
        }
        let Some(command) = COMMANDS.iter().find(|command| command.name == first) else {
            return Vec::new();
        };
        let Some(kind) = command.arguments.split_whitespace().nth(given.len()) else {
            return Vec::new();
        };
        let others = |names: &[String]| -> Vec<String> {
            names.iter().filter(|name| !given.contains(&name.as_str())).cloned().collect()
        };
        match kind.trim_matches(['[', ']']) {
            "HOST" => others(&self.hosts),
            "SWITCH" | "SWITCH[:PORT" => others(&self.switches),
            "NAME" => match given.last().and_then(|name| self.neighbours.get(*name)) {
                Some(neighbours) => neighbours.clone(),
                None => self.neighbours.keys().cloned().collect(),
            },
            // Numbers and times are not completed.
            word if word.chars().all(|c| c.is_ascii_uppercase()) => Vec::new(),
            words => words.split('|').map(str::to_owned).collect(),
        }
    }
}

impl Completer for Names {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let (start, mut words) = self.complete(line.get(..at).unwrap_or(line));
        // Adds a space, so that the next word can be typed at once.
        if let [word] = words.as_mut_slice() {
            word.push(' ');
        }
        Ok((start, words))
    }
}

impl Hinter for Names {
    type Hint = String;
}

impl Highlighter for Names {}
impl Validator for Names {}
impl Helper for Names {}

#[cfg(test)]
mod tests {
    use bellrock_emulator::topology::tree;

    use super::*;

    fn complete(line: &str) -> Vec<String> {
        Names::of(&tree(2, 3).build().unwrap()).complete(line).1
    }

    #[test]
    fn each_word_is_completed_to_what_may_stand_there() {
        for (line, words) in [
            ("pi", &["ping", "pingall"][..]),
            ("q", &["quit"]),
            ("h9", &["h9"]),
            ("h1 ", &["ping", "iperf"]),
            ("h1 p", &["ping"]),
            ("h1 ping h9", &["h9"]),
            ("ping h1 h9", &["h9"]),
            ("ping h1 h1", &[]),
            ("ping h1 h2 ", &[]),
            ("link ", &["down", "up"]),
            ("link down s1 ", &["s2", "s3", "s4"]),
            ("link up h1 ", &["s2"]),
            ("dump-flows s", &["s1", "s2", "s3", "s4"]),
            ("move h1 s4", &["s4"]),
            ("restart s2 ", &["empty"]),
            ("pingall ", &["--pairs"]),
            ("nonsense ", &[]),
        ] {
            assert_eq!(complete(line), words, "{line:?}");
        }
        assert_eq!(complete("").len(), COMMANDS.len() + 9);
        assert_eq!(complete("ping ").len(), 9);
    }
}
