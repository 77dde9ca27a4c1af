//! Changes of switches by orders of an operator, which desired state neither makes nor sees.
//!
//! An operator can send a switch any OpenFlow message. After such an order an app does not know
//! which of its entries the switch has: they count as unconfirmed until the switch has reported its
//! tables. What carries out orders calls [`OperatorChange::begin`]; whoever keeps entries in
//! switches waits for changes of the counters of a switch, and reads its tables.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bellrock_api::{Dpid, Network, Publisher, Watch};

/// Number of orders that may have changed a switch, since the controller started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderCounts {
    /// Those that have begun.
    pub begun: u64,
    /// Those that are over: the switch has confirmed them, or did not in time.
    pub ended: u64,
}

/// Which orders a report of a switch's tables includes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IncludedOrders {
    /// The last report was requested after this number of orders had ended.
    ended: u64,
    /// The last report that was requested while no order was under way includes these.
    all_of: u64,
}

impl IncludedOrders {
    /// The orders that a report includes that is the first of its connection.
    #[must_use]
    pub fn of_new_connection(orders: OrderCounts) -> Self {
        IncludedOrders { ended: orders.ended, all_of: orders.ended }
    }

    /// Notes a report that was requested when the counts were these.
    pub fn add_report(&mut self, at_request: OrderCounts) {
        self.ended = at_request.ended;
        if at_request.begun == at_request.ended {
            self.all_of = at_request.begun;
        }
    }

    /// Whether an order has ended since: the tables are to be read.
    #[must_use]
    pub fn needs_report(self, orders: OrderCounts) -> bool {
        orders.ended > self.ended
    }

    /// Whether an order may have changed the switch since: entries do not count as confirmed.
    #[must_use]
    pub fn is_outdated(self, orders: OrderCounts) -> bool {
        orders.begun > self.all_of
    }
}

/// The counts of all switches. All tasks of a controller share them.
#[derive(Debug, Default)]
pub struct OperatorChanges {
    /// Counts that somebody holds, and others until the next purge.
    switches: Mutex<BTreeMap<Dpid, Weak<Publisher<OrderCounts>>>>,
    /// Number of changes of any counts.
    all: Publisher<u64>,
}

/// The counts of one switch, as long as somebody holds them. Later ones begin at zero.
#[derive(Clone, Debug)]
pub struct SwitchOrders(Arc<Publisher<OrderCounts>>);

impl SwitchOrders {
    /// The counts, to read them and to wait for changes.
    #[must_use]
    pub fn watch(&self) -> &Watch<OrderCounts> {
        self.0.watch()
    }

    /// Returns the counts of now.
    #[must_use]
    pub fn counts(&self) -> OrderCounts {
        **self.watch().load()
    }
}

impl OperatorChanges {
    /// Returns the counts of a controller's switches.
    #[must_use]
    pub fn of(network: &Network) -> Arc<Self> {
        network.extension()
    }

    /// Returns the counts of a switch.
    #[must_use]
    pub fn of_switch(&self, dpid: Dpid) -> SwitchOrders {
        let mut switches = self.switches.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(orders) = switches.get(&dpid).and_then(Weak::upgrade) {
            return SwitchOrders(orders);
        }
        // Switches with ever other numbers must not fill the memory.
        if switches.len().is_power_of_two() {
            switches.retain(|_, orders| orders.strong_count() > 0);
        }
        let orders = SwitchOrders(Arc::default());
        switches.insert(dpid, Arc::downgrade(&orders.0));
        orders
    }

    /// Returns a number that grows with each change of any counts.
    #[must_use]
    pub fn watch(&self) -> &Watch<u64> {
        self.all.watch()
    }
}

/// An order of an operator that changes a switch. Drop it when the switch has confirmed the order,
/// or has not done so in time.
#[must_use = "the order ends when this is dropped"]
#[derive(Debug)]
pub struct OperatorChange {
    changes: Arc<OperatorChanges>,
    orders: SwitchOrders,
}

impl OperatorChange {
    /// Notes that an order begins. Call it before the first message is sent.
    pub fn begin(network: &Network, dpid: Dpid) -> Self {
        let changes = OperatorChanges::of(network);
        let orders = changes.of_switch(dpid);
        let change = OperatorChange { changes, orders };
        change.update(|counts| OrderCounts { begun: counts.begun + 1, ..*counts });
        change
    }

    fn update(&self, next: impl FnOnce(&OrderCounts) -> OrderCounts) {
        self.orders.0.update(next);
        self.changes.all.update(|changes| changes + 1);
    }
}

impl Drop for OperatorChange {
    fn drop(&mut self) {
        self.update(|counts| OrderCounts { ended: counts.ended + 1, ..*counts });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_includes_the_orders_that_had_ended_when_it_was_requested() {
        let counts = |begun, ended| OrderCounts { begun, ended };
        let mut included = IncludedOrders::of_new_connection(counts(3, 3));
        assert!(!included.is_outdated(counts(3, 3)) && !included.needs_report(counts(3, 3)));
        // An order is under way: nothing is certain, and nothing to be read yet.
        assert!(included.is_outdated(counts(4, 3)) && !included.needs_report(counts(4, 3)));
        assert!(included.is_outdated(counts(4, 4)) && included.needs_report(counts(4, 4)));
        // The next one begins before the tables are read.
        included.add_report(counts(5, 4));
        assert!(included.is_outdated(counts(5, 4)) && !included.needs_report(counts(5, 4)));
        assert!(included.is_outdated(counts(5, 5)) && included.needs_report(counts(5, 5)));
        included.add_report(counts(5, 5));
        assert!(!included.is_outdated(counts(5, 5)) && !included.needs_report(counts(5, 5)));
    }

    #[test]
    fn counts_that_nobody_holds_are_forgotten() {
        let changes = OperatorChanges::default();
        let held = changes.of_switch(Dpid(1));
        for number in 2..1000 {
            drop(changes.of_switch(Dpid(number)));
        }
        assert!(changes.switches.lock().unwrap().len() <= 2);
        held.0.publish(OrderCounts { begun: 1, ended: 1 });
        assert_eq!(changes.of_switch(Dpid(1)).counts().begun, 1);
    }
}
