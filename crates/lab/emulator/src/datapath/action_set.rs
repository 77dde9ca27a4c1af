//! The action set of a packet, and of a bucket (1.3.5 §5.10).

use bellrock_openflow::Action;

/// Actions, at most one of each type (set-field: of each field), in the order in which they run.
#[derive(Clone, Debug, Default)]
pub(super) struct ActionSet(Vec<(u16, Action<'static>)>);

/// Position of the group action in the order.
const GROUP: u16 = 10 << 8;
/// Position of the output: last.
const OUTPUT: u16 = 11 << 8;

/// Position of an action's type in the order of the specification.
///
/// Of several tags to pop, the outermost goes first: the specification says only that all pops run
/// before any push. TTLs are set together with the other fields.
fn place(action: &Action<'static>) -> u16 {
    let (step, within) = match action {
        Action::CopyTtlIn => (1, 0),
        Action::PopVlan => (2, 0),
        Action::PopPbb => (2, 1),
        Action::PopMpls(_) => (2, 2),
        Action::PushMpls(_) => (3, 0),
        Action::PushPbb(_) => (4, 0),
        Action::PushVlan(_) => (5, 0),
        Action::CopyTtlOut => (6, 0),
        Action::DecMplsTtl => (7, 0),
        Action::DecNwTtl => (7, 1),
        Action::SetField(field, _) => (8, *field as u16),
        Action::SetMplsTtl(_) => (8, 0xf0),
        Action::SetNwTtl(_) => (8, 0xf1),
        Action::SetVlanVid(_) => (8, 0xf2),
        Action::SetVlanPcp(_) => (8, 0xf3),
        Action::SetTpSrc(_) => (8, 0xf4),
        Action::SetTpDst(_) => (8, 0xf5),
        Action::SetQueue(_) => (9, 0),
        Action::Group(_) => return GROUP,
        Action::Output { .. } | Action::Enqueue { .. } => return OUTPUT,
        // The check refuses these; they would do nothing.
        Action::SetUnknownField { .. } | Action::Experimenter { .. } | Action::Unknown { .. } => {
            (0, 0)
        }
    };
    step << 8 | within
}

impl ActionSet {
    /// Makes the set of a bucket's actions.
    pub(super) fn of(actions: &[Action<'static>]) -> Self {
        let mut set = ActionSet::default();
        set.merge(actions);
        set
    }

    /// Adds actions; each replaces an action of the same type.
    pub(super) fn merge(&mut self, actions: &[Action<'static>]) {
        for action in actions {
            let place = place(action);
            match self.0.binary_search_by_key(&place, |(place, _)| *place) {
                Ok(index) => self.0[index].1 = *action,
                Err(index) => self.0.insert(index, (place, *action)),
            }
        }
    }

    /// Whether the set has no actions.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes all actions.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The actions in the order in which they run. A group replaces the output.
    pub(super) fn actions(&self) -> impl Iterator<Item = &Action<'static>> {
        let grouped = self.0.iter().any(|(place, _)| *place == GROUP);
        let run = self.0.iter().filter(move |(place, _)| !grouped || *place != OUTPUT);
        run.map(|(_, action)| action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellrock_openflow::{Field, Port};

    #[test]
    fn actions_run_in_the_order_of_the_specification_whatever_order_they_came_in() {
        let set = ActionSet::of(&[
            Action::output(Port(1)),
            Action::SetQueue(3),
            Action::SetField(Field::VlanVid, 0x1005),
            Action::DecNwTtl,
            Action::CopyTtlOut,
            Action::PushVlan(0x8100),
            Action::PushPbb(0x88e7),
            Action::PushMpls(0x8847),
            Action::PopVlan,
            Action::CopyTtlIn,
        ]);
        let order: Vec<_> = set.actions().copied().collect();
        assert_eq!(
            order,
            [
                Action::CopyTtlIn,
                Action::PopVlan,
                Action::PushMpls(0x8847),
                Action::PushPbb(0x88e7),
                Action::PushVlan(0x8100),
                Action::CopyTtlOut,
                Action::DecNwTtl,
                Action::SetField(Field::VlanVid, 0x1005),
                Action::SetQueue(3),
                Action::output(Port(1)),
            ]
        );
    }

    #[test]
    fn an_action_takes_the_place_of_one_of_its_type_and_set_field_of_one_of_its_field() {
        let mut set = ActionSet::of(&[
            Action::SetField(Field::EthDst, 1),
            Action::SetField(Field::EthSrc, 2),
            Action::output(Port(1)),
        ]);
        set.merge(&[Action::SetField(Field::EthDst, 3), Action::output(Port(2))]);
        let left: Vec<_> = set.actions().copied().collect();
        let source = Action::SetField(Field::EthSrc, 2);
        let destination = Action::SetField(Field::EthDst, 3);
        assert_eq!(left, [destination, source, Action::output(Port(2))]);
    }

    #[test]
    fn a_group_takes_the_place_of_the_output() {
        let set = ActionSet::of(&[Action::output(Port(1)), Action::Group(7)]);
        assert_eq!(set.actions().collect::<Vec<_>>(), [&Action::Group(7)]);
    }
}
