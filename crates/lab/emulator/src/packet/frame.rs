//! The bytes of an Ethernet frame.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// An Ethernet frame, from its destination address on, without preamble and checksum.
///
/// The buffer can be reused: [`EthernetFrame::clear`] keeps its memory.
#[derive(Clone, PartialEq, Eq)]
pub struct EthernetFrame(Vec<u8>);

impl EthernetFrame {
    /// An empty frame, with memory for a frame of the usual size.
    #[must_use]
    pub fn new() -> Self {
        EthernetFrame(Vec::with_capacity(Self::USUAL_ROOM))
    }

    /// Bytes that a new frame can hold: an Ethernet frame of the usual size, and some tags.
    pub const USUAL_ROOM: usize = 1_600;

    /// Removes the bytes, and keeps the memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds bytes at the end.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The bytes, as a vector.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        self.0
    }

    /// Inserts `len` zeros at `at`.
    pub(crate) fn insert_zeros(&mut self, at: usize, len: usize) {
        let old = self.0.len();
        self.0.resize(old + len, 0);
        self.0.copy_within(at..old, at + len);
        self.0[at..at + len].fill(0);
    }

    /// Removes `len` bytes at `at`.
    pub(super) fn remove(&mut self, at: usize, len: usize) {
        self.0.copy_within(at + len.., at);
        self.0.truncate(self.0.len() - len);
    }
}

impl Default for EthernetFrame {
    fn default() -> Self {
        EthernetFrame::new()
    }
}

impl From<Vec<u8>> for EthernetFrame {
    fn from(bytes: Vec<u8>) -> Self {
        EthernetFrame(bytes)
    }
}

impl From<&[u8]> for EthernetFrame {
    fn from(bytes: &[u8]) -> Self {
        EthernetFrame(bytes.to_vec())
    }
}

impl Deref for EthernetFrame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for EthernetFrame {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl fmt::Debug for EthernetFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frame({})", bellrock_openflow::Bytes(&self.0))
    }
}
