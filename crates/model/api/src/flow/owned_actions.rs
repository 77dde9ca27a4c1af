//! Actions with their bytes.

use std::borrow::Cow;
use std::sync::Arc;

use bellrock_openflow::Action;

/// An ordered list of actions. It owns the bytes of those of experimenters and of unknown ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnedActions {
    /// The actions, each without its bytes.
    actions: Vec<Action<'static>>,
    /// Index and bytes of each action that has bytes, in order. Few have.
    bytes: Vec<(usize, Arc<[u8]>)>,
}

impl OwnedActions {
    pub(super) fn push(&mut self, action: &Action<'_>) {
        if !action.bytes().is_empty() {
            self.bytes.push((self.actions.len(), action.bytes().into()));
        }
        self.actions.push(action.with_bytes(&[]));
    }

    pub(super) fn extend(&mut self, actions: &[Action<'_>]) {
        self.actions.reserve(actions.len());
        actions.iter().for_each(|action| self.push(action));
    }

    /// Inserts actions before all others.
    pub(super) fn prepend(&mut self, actions: &[Action<'_>]) {
        let mut all = OwnedActions::default();
        all.extend(actions);
        all.extend(&self.all());
        *self = all;
    }

    /// The actions without their bytes.
    pub(super) fn without_bytes(&self) -> &[Action<'static>] {
        &self.actions
    }

    /// The actions. Allocates nothing if none has bytes.
    pub(super) fn all(&self) -> Cow<'_, [Action<'_>]> {
        if self.bytes.is_empty() {
            return Cow::Borrowed(&self.actions);
        }
        let mut all: Vec<Action<'_>> = self.actions.clone();
        for (index, bytes) in &self.bytes {
            if let Some(action) = all.get_mut(*index) {
                *action = action.with_bytes(bytes);
            }
        }
        Cow::Owned(all)
    }
}
