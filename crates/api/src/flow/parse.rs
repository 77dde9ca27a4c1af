//! Reads what a flow does with packets from text, in the form in which switches' flows print:
//! `meter:3,set_field:10.0.0.7->ipv4_dst,output:3,goto_table:1`.

use bellrock_openflow::Action;

use super::{Flow, Treatment};

/// A text that does not say what a flow does with packets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseInstructionsError(String);

impl Flow {
    /// Replaces what the flow does with packets. `text` has commas between its parts: actions, as
    /// [`Action`] reads them, which are applied at once, in order; and the instructions
    /// `meter:NUMBER`, `write_actions(ACTIONS)`, `write_metadata:VALUE[/MASK]` and
    /// `goto_table:TABLE` (1.3.5 §7.2.4). `drop` or an empty text is for nothing.
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
        let treatment = read(text).map_err(ParseInstructionsError)?;
        Ok(Flow { treatment, ..self })
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
    let action = |part: &str| {
        part.parse::<Action<'static>>().map_err(|error| ParseInstructionsError(error.to_string()))
    };
    text.split(',').map(action).collect()
}

fn read(text: &str) -> Result<Treatment, String> {
    let mut treatment = Treatment::default();
    let text = text.trim();
    if text.is_empty() || text == "drop" {
        return Ok(treatment);
    }
    for part in parts(text)? {
        let part = part.trim();
        let (name, value) = part.split_once(':').unwrap_or((part, ""));
        if let Some(actions) = part.strip_prefix("write_actions(") {
            let actions = actions.strip_suffix(')').unwrap_or(actions);
            once(part, treatment.write.is_empty())?;
            treatment.write = parse_actions(actions).map_err(|error| error.to_string())?;
            continue;
        }
        match name {
            "meter" => {
                once(part, treatment.meter.is_none())?;
                treatment.meter = Some(number(part, value)?);
            }
            "goto_table" => {
                once(part, treatment.goto_table.is_none())?;
                treatment.goto_table = Some(number(part, value)?);
            }
            "write_metadata" => {
                once(part, treatment.metadata.is_none())?;
                treatment.metadata = metadata(part, value)?;
            }
            "clear_actions" => {
                return Err("clear_actions is not supported; write_actions replaces actions of the same type".into());
            }
            _ => {
                let action = part.parse::<Action<'static>>().map_err(|error| error.to_string())?;
                treatment.apply.push(action);
            }
        }
    }
    Ok(treatment)
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

fn once(part: &str, is_first: bool) -> Result<(), String> {
    is_first.then_some(()).ok_or_else(|| format!("{part:?}: give this instruction once"))
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
        ] {
            let flow = Flow::new(Match::any()).instructions(text).unwrap();
            let printed =
                flow.with_flow_mod(FlowCommand::Add, |flow_mod| flow_mod.instructions.to_string());
            assert_eq!(printed, text);
        }
        let spaced = Flow::new(Match::any()).instructions(" dec_nw_ttl , output:3 ").unwrap();
        assert_eq!(spaced.applied().len(), 2);
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
        ];
        for (text, part) in cases {
            let message = Flow::new(Match::any()).instructions(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
