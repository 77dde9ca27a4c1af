//! What an answer says that is not as ordered, a line for each problem. The command then fails,
//! although it prints the answer: a script must not take a refusal for success.
//!
//! A switch that is not connected is no problem: it gets what is wanted when it comes. Nor is one
//! that obeys another controller.

use bellrock_query::{MessageState, SentMessages, StaticAnswer, StaticState};

/// Static entries that a switch refuses, or has not confirmed in time.
pub(crate) fn static_entries(answer: &StaticAnswer) -> Vec<String> {
    let is_problem = |state| !matches!(state, StaticState::Waiting | StaticState::Standby);
    let of_wanted = answer.problems.iter().filter(|problem| is_problem(problem.state));
    let line = |problem: &bellrock_query::StaticProblem| {
        let name = problem.name.as_deref().unwrap_or("a removed entry");
        let state = match problem.state {
            StaticState::Refused => "refused",
            StaticState::NotKept => "not kept",
            _ => "not confirmed",
        };
        format!("{name}: {state}: {}", problem.why)
    };
    let mut lines: Vec<_> = of_wanted.map(line).collect();
    let further = answer.unconfirmed.saturating_sub(answer.waiting + lines.len());
    if further > 0 {
        lines.push(format!("{further} more entries are not confirmed"));
    }
    lines
}

/// Messages that a switch has not carried out, or not confirmed.
pub(crate) fn messages(sent: &SentMessages) -> Vec<String> {
    let outcomes = sent.outcomes.iter().enumerate();
    let not_done = outcomes.filter(|(_, outcome)| outcome.state != MessageState::Confirmed);
    let line = |(index, outcome): (usize, &bellrock_query::MessageOutcome)| {
        let state = match outcome.state {
            MessageState::Refused => "refused",
            MessageState::NotSent => "not sent",
            _ => "not confirmed",
        };
        let why = outcome.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        format!("message {}: {state}{why}", index + 1)
    };
    not_done.map(line).collect()
}

#[cfg(test)]
mod tests {
    use bellrock_query::{MessageOutcome, StaticProblem};

    use super::*;

    #[test]
    fn refused_and_late_entries_are_problems_and_waiting_ones_are_not() {
        let problem = |name: &str, state| StaticProblem {
            name: Some(name.to_owned()),
            state,
            why: "so".to_owned(),
        };
        let answer = StaticAnswer {
            unconfirmed: 6,
            waiting: 2,
            problems: vec![
                problem("a", StaticState::Refused),
                problem("b", StaticState::Waiting),
                StaticProblem { name: None, ..problem("", StaticState::Pending) },
            ],
            ..StaticAnswer::default()
        };
        let lines = [
            "a: refused: so",
            "a removed entry: not confirmed: so",
            "2 more entries are not confirmed",
        ];
        assert_eq!(static_entries(&answer), lines);
        let waiting = StaticAnswer {
            unconfirmed: 200,
            waiting: 200,
            problems: vec![problem("b", StaticState::Waiting)],
            ..StaticAnswer::default()
        };
        assert!(static_entries(&waiting).is_empty());
    }

    #[test]
    fn each_message_that_is_not_confirmed_is_named() {
        let outcome =
            |state, why: Option<&str>| MessageOutcome { state, why: why.map(str::to_owned) };
        let sent = SentMessages {
            dpid: bellrock_api::Dpid(1),
            name: None,
            version: bellrock_api::Version::V1_3,
            outcomes: vec![
                outcome(MessageState::Confirmed, None),
                outcome(MessageState::Refused, Some("so")),
                outcome(MessageState::NotSent, None),
            ],
        };
        assert_eq!(messages(&sent), ["message 2: refused: so", "message 3: not sent"]);
    }
}
