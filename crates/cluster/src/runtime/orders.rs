//! Orders of operators, which wait until they are done or given up.

use std::collections::BTreeMap;
use std::sync::mpsc as blocking;

use bellrock_api::Dpid;

use crate::mastership::{NotMoved, ORDER_LIMIT};
use crate::node::NodeId;

/// What has become of an order.
pub(crate) type OrderResult = Result<(), OrderError>;

/// Why a question or an order was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// The thread has ended, or does not answer.
    #[error("this node of the cluster is ending, or does not answer")]
    Gone,
    /// There is no node of this name.
    #[error("the cluster has no node {name:?}: its nodes are {known}")]
    UnknownNode {
        /// As given.
        name: String,
        /// Names of the nodes.
        known: String,
    },
    /// This node has no majority, or has not read etcd.
    #[error(
        "this node does not serve: it hears no majority, or has not read etcd; order it at a node that \
         `bellrock cluster` lists as serving"
    )]
    NotServing,
    /// etcd does not answer this node.
    #[error(
        "nothing is moved without etcd, which does not serve this node ({why}); order it again when \
         `bellrock cluster` shows that etcd answers"
    )]
    NoStore {
        /// What is wrong with etcd.
        why: String,
    },
    /// Another order for the same switch is under way.
    #[error("{dpid} is being moved to {node} already; wait for the answer to that order")]
    Moving {
        /// The switch.
        dpid: Dpid,
        /// The node that it is moved to.
        node: String,
    },
    /// Only the master gives a switch away.
    #[error("{dpid} is not this node's to move: {}", where_to_order(master.as_deref()))]
    NotMaster {
        /// The switch.
        dpid: Dpid,
        /// Its master, by the record, if that is another node.
        master: Option<String>,
    },
    /// The other node could not be its master.
    #[error(
        "{node} cannot take {dpid}: it does not serve, drains, or does not have the switch; see \
         `bellrock cluster`"
    )]
    CannotTake {
        /// The switch.
        dpid: Dpid,
        /// The other node.
        node: String,
    },
    /// The other node has not answered.
    #[error(
        "{dpid} is not moved: {node} has not accepted it within {} s; this node is its master still, so \
         order it again",
        ORDER_LIMIT.as_secs()
    )]
    NotAccepted {
        /// The switch.
        dpid: Dpid,
        /// The other node.
        node: String,
    },
    /// The new order of masters may be in etcd, or not.
    #[error(
        "etcd has not confirmed within {} s that {dpid} is moved to {node}; it may move yet: see \
         `bellrock cluster --switches` when etcd answers",
        ORDER_LIMIT.as_secs()
    )]
    NotWritten {
        /// The switch.
        dpid: Dpid,
        /// The other node.
        node: String,
    },
    /// The switch has not made the other node its master.
    #[error(
        "{dpid} is to obey {node}, and has not within {} s; see the log of {node}, and \
         `bellrock cluster --switches`",
        ORDER_LIMIT.as_secs()
    )]
    NotObeyed {
        /// The switch.
        dpid: Dpid,
        /// The other node.
        node: String,
    },
    /// A third node has the switch.
    #[error(
        "{dpid} was moved to {node}, and does not stay there: {} has taken it over; see `bellrock cluster`",
        by.as_deref().unwrap_or("another node")
    )]
    TakenOver {
        /// The switch.
        dpid: Dpid,
        /// The node that it was moved to.
        node: String,
        /// The node that has it now, by the record.
        by: Option<String>,
    },
    /// Some switches are still where operators have put them.
    #[error(
        "{left} switches are not released: etcd has not confirmed it within {} s, or this node does not \
         serve any more; see `bellrock cluster`, and order it again",
        ORDER_LIMIT.as_secs()
    )]
    NotReleased {
        /// Number of these switches.
        left: usize,
    },
}

fn where_to_order(master: Option<&str>) -> String {
    match master {
        Some(node) => format!("its master is {node}; order it there"),
        None => "this node is not its master; see `bellrock cluster --switches`".to_owned(),
    }
}

/// Who waits for the end of which order.
#[derive(Default)]
pub(super) struct Orders {
    /// By switch: where it is moved to.
    moves: BTreeMap<Dpid, (String, blocking::Sender<OrderResult>)>,
    balances: Vec<blocking::Sender<OrderResult>>,
}

impl Orders {
    /// Whether no move of the switch is under way.
    pub(super) fn may_move(&self, dpid: Dpid) -> Result<(), OrderError> {
        match self.moves.get(&dpid) {
            Some((node, _)) => Err(OrderError::Moving { dpid, node: node.clone() }),
            None => Ok(()),
        }
    }

    pub(super) fn begin_move(
        &mut self,
        dpid: Dpid,
        to: &str,
        answer: blocking::Sender<OrderResult>,
    ) {
        self.moves.insert(dpid, (to.to_owned(), answer));
    }

    /// All balances that are under way end together.
    pub(super) fn begin_balance(&mut self, answer: blocking::Sender<OrderResult>) {
        self.balances.push(answer);
    }

    /// Answers who waits for this move. `names`: those of all nodes.
    pub(super) fn moved(&mut self, dpid: Dpid, result: Result<(), NotMoved>, names: &[&str]) {
        let Some((node, answer)) = self.moves.remove(&dpid) else { return };
        let name = |id: NodeId| names.get(id.index()).map(|&name| name.to_owned());
        let result = result.map_err(|why| match why {
            NotMoved::NotMaster(master) => {
                OrderError::NotMaster { dpid, master: master.and_then(name) }
            }
            NotMoved::CannotTake => OrderError::CannotTake { dpid, node },
            NotMoved::NotAccepted => OrderError::NotAccepted { dpid, node },
            NotMoved::NotWritten => OrderError::NotWritten { dpid, node },
            NotMoved::NotObeyed => OrderError::NotObeyed { dpid, node },
            NotMoved::TakenOver(by) => OrderError::TakenOver { dpid, node, by: by.and_then(name) },
        });
        // Nobody may wait for it any more.
        let _ = answer.send(result);
    }

    /// Answers who waits for the end of marks, of which so many are left.
    pub(super) fn balanced(&mut self, left: usize) {
        let result = if left == 0 { Ok(()) } else { Err(OrderError::NotReleased { left }) };
        for answer in self.balances.drain(..) {
            let _ = answer.send(result.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: Dpid = Dpid(0xa1);

    /// What an operator is answered whose move to node b of a, b and c has ended so.
    fn answer(result: Result<(), NotMoved>) -> OrderResult {
        let mut orders = Orders::default();
        let (answer, answered) = blocking::channel();
        orders.begin_move(SWITCH, "b", answer);
        orders.moved(SWITCH, result, &["a", "b", "c"]);
        answered.recv().unwrap()
    }

    #[test]
    fn a_move_that_failed_says_what_happened_and_what_to_do() {
        assert_eq!(answer(Ok(())), Ok(()));
        let expected = [
            (NotMoved::NotMaster(NodeId::new(2)), "its master is c; order it there"),
            (NotMoved::NotMaster(None), "see `bellrock cluster --switches`"),
            (NotMoved::CannotTake, "b cannot take 00000000000000a1"),
            (NotMoved::NotAccepted, "b has not accepted it within 5 s"),
            (NotMoved::NotWritten, "etcd has not confirmed within 5 s"),
            (NotMoved::NotObeyed, "is to obey b, and has not within 5 s"),
            (NotMoved::TakenOver(NodeId::new(2)), "c has taken it over"),
        ];
        for (why, text) in expected {
            let error = answer(Err(why)).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn a_switch_is_moved_by_one_order_at_a_time() {
        let mut orders = Orders::default();
        let (answer, _answered) = blocking::channel();
        orders.begin_move(SWITCH, "b", answer);
        let error = orders.may_move(SWITCH).unwrap_err();
        assert_eq!(error, OrderError::Moving { dpid: SWITCH, node: "b".to_owned() });
        assert_eq!(orders.may_move(Dpid(1)), Ok(()));
        orders.moved(SWITCH, Ok(()), &["a", "b", "c"]);
        assert_eq!(orders.may_move(SWITCH), Ok(()));
    }

    #[test]
    fn all_who_wait_for_a_balance_are_answered() {
        let mut orders = Orders::default();
        for (left, expected) in [(0, Ok(())), (2, Err(OrderError::NotReleased { left: 2 }))] {
            let (one, other) = (blocking::channel(), blocking::channel());
            orders.begin_balance(one.0);
            orders.begin_balance(other.0);
            orders.balanced(left);
            assert_eq!(
                [one.1.recv().unwrap(), other.1.recv().unwrap()],
                [expected.clone(), expected]
            );
        }
    }
}
