//! Reads what a flow does with packets from text, in the form in which switches' flows print:
//! `meter:3,set_field:10.0.0.7->ipv4_dst,output:3,goto_table:1`.

use std::sync::Arc;

use bellrock_openflow::{Action, Bytes};

use super::{Flow, Treatment};

/// A text that does not say what a flow does with packets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct ParseInstructionsError {
    part: Option<usize>,
    why: String,
}

impl ParseInstructionsError {
    /// Index of the part between commas that is wrong. `None`: the text as a whole is.
    #[must_use]
    pub fn part(&self) -> Option<usize> {
        self.part
    }

    fn at(part: usize) -> impl Fn(String) -> Self {
        move |why| ParseInstructionsError { part: Some(part), why }
    }
}

/// A part of the text of [`Flow::instructions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstructionPart {
    /// Sends packets through this meter first.
    Meter(u32),
    /// Applies an action at once.
    Apply(Action<'static>),
    /// Applies an action of an experimenter at once.
    Experimenter {
        /// The experimenter's id.
        experimenter: u32,
        /// The bytes after the id, padding included.
        data: Arc<[u8]>,
    },
    /// Merges actions into the action set.
    Write(Vec<Action<'static>>),
    /// Writes the masked bits of the metadata. `None`: no bit.
    Metadata(Option<(u64, u64)>),
    /// Continues in this later table.
    GotoTable(u8),
}

impl InstructionPart {
    /// The action, if it is one that is applied at once.
    pub(super) fn applied(&self) -> Option<Action<'_>> {
        match self {
            InstructionPart::Apply(action) => Some(*action),
            InstructionPart::Experimenter { experimenter, data } => {
                Some(Action::Experimenter { experimenter: *experimenter, data: Bytes(data) })
            }
            _ => None,
        }
    }
}

impl Flow {
    /// Replaces what the flow does with packets. `text` has commas between its parts: actions, as
    /// [`Action`] reads them, and `experimenter(ID,BYTES)`, which are applied at once, in order;
    /// and the instructions `meter:NUMBER`, `write_actions(ACTIONS)`, `write_metadata:VALUE[/MASK]`
    /// and `goto_table:TABLE` (1.3.5 §7.2.4). `drop` or an empty text is for nothing.
    ///
    /// ```
    /// use bellrock_api::{Flow, Match, Port};
    ///
    /// let flow = Flow::new(Match::any()).instructions("dec_nw_ttl,output:3")?;
    /// assert_eq!(flow.outputs().collect::<Vec<_>>(), [Port(3)]);
    /// # Ok::<(), bellrock_api::ParseInstructionsError>(())
    /// ```
    ///
    /// # Errors
    /// The first part that is wrong, and what would be right.
    pub fn instructions(self, text: &str) -> Result<Self, ParseInstructionsError> {
        Ok(self.with_parts(&parse_instructions(text)?))
    }

    /// Replaces what the flow does with packets by these parts.
    #[must_use]
    pub fn with_parts(self, parts: &[InstructionPart]) -> Self {
        let mut treatment = Treatment::default();
        for part in parts {
            if let Some(action) = part.applied() {
                treatment.apply.push(&action);
            }
            match part {
                InstructionPart::Apply(_) | InstructionPart::Experimenter { .. } => {}
                InstructionPart::Meter(meter) => treatment.meter = Some(*meter),
                InstructionPart::Write(actions) => treatment.write.extend(actions),
                InstructionPart::Metadata(metadata) => treatment.metadata = *metadata,
                InstructionPart::GotoTable(table) => treatment.goto_table = Some(*table),
            }
        }
        Flow { treatment, ..self }
    }
}

/// Reads a list of actions with commas between them. `drop` or an empty text is for none.
///
/// # Errors
/// The first action that is wrong, and what would be right.
pub fn parse_actions(text: &str) -> Result<Vec<Action<'static>>, ParseInstructionsError> {
    let text = text.trim();
    if text.is_empty() || text == "drop" {
        return Ok(Vec::new());
    }
    let action = |(index, part): (usize, &str)| {
        let action = part.parse::<Action<'static>>();
        action.map_err(|error| ParseInstructionsError::at(index)(error.to_string()))
    };
    text.split(',').enumerate().map(action).collect()
}

/// Reads the parts of the text of [`Flow::instructions`].
///
/// # Errors
/// The first part that is wrong, and what would be right.
pub fn parse_instructions(text: &str) -> Result<Vec<InstructionPart>, ParseInstructionsError> {
    let text = text.trim();
    if text.is_empty() || text == "drop" {
        return Ok(Vec::new());
    }
    let texts = parts(text).map_err(|why| ParseInstructionsError { part: None, why })?;
    let mut read: Vec<InstructionPart> = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().map(|text| text.trim()).enumerate() {
        let part = part(text).map_err(ParseInstructionsError::at(index))?;
        let is_same = |other: &InstructionPart| {
            std::mem::discriminant(other) == std::mem::discriminant(&part)
        };
        if part.applied().is_none() && read.iter().any(is_same) {
            let why = format!("{text:?}: give this instruction once");
            return Err(ParseInstructionsError::at(index)(why));
        }
        read.push(part);
    }
    Ok(read)
}

fn part(text: &str) -> Result<InstructionPart, String> {
    if let Some(actions) = text.strip_prefix("write_actions(") {
        let actions = actions.strip_suffix(')').unwrap_or(actions);
        let actions = parse_actions(actions).map_err(|error| error.to_string())?;
        return Ok(InstructionPart::Write(actions));
    }
    if let Some(action) = text.strip_prefix("experimenter(") {
        return experimenter(text, action.strip_suffix(')').unwrap_or(action));
    }
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    Ok(match name {
        "meter" => InstructionPart::Meter(number(text, value)?),
        "goto_table" => InstructionPart::GotoTable(number(text, value)?),
        "write_metadata" => InstructionPart::Metadata(metadata(text, value)?),
        "clear_actions" => {
            return Err(
                "clear_actions is not supported; write_actions replaces actions of the same type"
                    .into(),
            );
        }
        _ => InstructionPart::Apply(
            text.parse().map_err(|error: bellrock_openflow::ParseActionError| error.to_string())?,
        ),
    })
}

/// Actions begin at multiples of so many bytes (1.3.5 §7.2.5).
const ALIGNED_BYTES: usize = 8;

/// Reads the id and the bytes of an action of an experimenter, in hexadecimal. Zeros pad it.
fn experimenter(part: &str, action: &str) -> Result<InstructionPart, String> {
    let (id, digits) = action.split_once(',').unwrap_or((action, ""));
    let form = "write experimenter(ID,BYTES) with its bytes in hexadecimal, such as \
                experimenter(0x2320,000efff807000000)";
    let wrong = || format!("{part:?}: {form}");
    let experimenter = unsigned(id).and_then(|id| u32::try_from(id).ok()).ok_or_else(wrong)?;
    let (pairs, odd) = digits.trim().as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8)
    };
    let data: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    let mut data = data.filter(|_| odd.is_empty()).ok_or_else(wrong)?;
    data.resize(data.len().next_multiple_of(ALIGNED_BYTES), 0);
    Ok(InstructionPart::Experimenter { experimenter, data: data.into() })
}

/// Splits at commas outside parentheses.
fn parts(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut start, mut is_inside) = (Vec::new(), 0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' if !is_inside => is_inside = true,
            b')' if is_inside => is_inside = false,
            b'(' | b')' => return Err(format!("the parentheses in {text:?} do not match")),
            b',' if !is_inside => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if is_inside {
        return Err(format!("the parentheses in {text:?} do not match"));
    }
    parts.push(&text[start..]);
    Ok(parts)
}

fn number<T: TryFrom<u64>>(part: &str, text: &str) -> Result<T, String> {
    let value = unsigned(text).and_then(|value| T::try_from(value).ok());
    value.ok_or_else(|| {
        let bits = size_of::<T>() * 8;
        format!("{part:?}: give a number of at most {bits} bits after the colon")
    })
}

fn metadata(part: &str, text: &str) -> Result<Option<(u64, u64)>, String> {
    let (value, mask) = match text.split_once('/') {
        Some((value, mask)) => (number(part, value)?, number(part, mask)?),
        None => (number(part, text)?, u64::MAX),
    };
    if value & !mask != 0 {
        return Err(format!("{part:?} has bits outside its mask; set them to 0"));
    }
    Ok((mask != 0).then_some((value, mask)))
}

fn unsigned(text: &str) -> Option<u64> {
    match text.trim().strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.trim().parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use bellrock_openflow::{FlowCommand, Match};

    use super::*;

    #[test]
    fn instructions_read_as_those_of_a_flow_print() {
        for text in [
            "drop",
            "output:3",
            "meter:3,set_field:10.0.0.7->ipv4_dst,output:3,goto_table:1",
            "write_actions(group:7,output:2),write_metadata:0x10/0xf0",
            "write_metadata:0x10",
            "push_vlan:0x8100,set_field:0x1064->vlan_vid,CONTROLLER:128",
            "experimenter(0x00002320,000efff807000000),output:3",
        ] {
            let flow = Flow::new(Match::any()).instructions(text).unwrap();
            let printed =
                flow.with_flow_mod(FlowCommand::Add, |flow_mod| flow_mod.instructions.to_string());
            assert_eq!(printed, text);
        }
        let spaced = Flow::new(Match::any()).instructions(" dec_nw_ttl , output:3 ").unwrap();
        assert_eq!(spaced.applied().len(), 2);
        let short = Flow::new(Match::any()).instructions("experimenter(0x2320, 000e)").unwrap();
        assert_eq!(short.applied()[0].bytes(), [0, 14, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn wrong_instructions_say_what_would_be_right() {
        let cases = [
            ("fly", "there is no action \"fly\""),
            ("output:3,", "there is no action \"\""),
            ("meter:3,meter:4", "give this instruction once"),
            ("goto_table:256", "at most 8 bits"),
            ("meter", "after the colon"),
            ("write_actions(output:1", "do not match"),
            ("write_metadata:0x10/0x01", "outside its mask"),
            ("clear_actions", "not supported"),
            ("experimenter(0x2320,00f)", "with its bytes in hexadecimal"),
            ("experimenter(0x2320,zz)", "such as experimenter(0x2320,000efff807000000)"),
            ("experimenter(nicira,00)", "write experimenter(ID,BYTES)"),
        ];
        for (text, part) in cases {
            let message = Flow::new(Match::any()).instructions(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
        let part = |text: &str| parse_instructions(text).unwrap_err().part();
        assert_eq!(part("meter:3,output:1,fly"), Some(2));
        assert_eq!(part("output:1, write_actions(output:1,fly)"), Some(1));
        assert_eq!(part("output:1,output:2)"), None);
        assert_eq!(parse_actions("output:1,fly").unwrap_err().part(), Some(1));
    }
}
