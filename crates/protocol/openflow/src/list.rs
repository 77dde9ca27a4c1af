//! Lists in messages: a view of checked bytes, or items to write. Both iterate as the same items.

use std::fmt;
use std::marker::PhantomData;

use crate::reader::{Reader, Strictness};
use crate::{DecodeError, EncodeError, Out, Version};

/// An element of a list: an action, an instruction, a bucket, a port, a flow's statistics.
///
/// In effect sealed: its methods take the codec's own reader.
pub trait Element<'a>: Sized {
    /// Reads one element and moves the reader past it. It has to consume at least one byte.
    #[doc(hidden)]
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError>;

    /// Writes one element.
    #[doc(hidden)]
    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError>;

    /// Returns whether this version says both, this element and the one behind it, by the one
    /// behind it alone.
    #[doc(hidden)]
    #[inline(always)]
    fn is_said_by_next(&self, _next: &Self, _version: Version) -> bool {
        false
    }
}

/// A list of `T` in a message.
///
/// A list that was read is a view of its bytes. They were all checked, so it iterates without
/// errors and encodes to the same bytes. A list to write borrows a slice of items. Two lists are
/// equal if their items and their unreadable bytes ([`List::unread`]) are equal.
#[derive(Clone, Copy)]
pub struct List<'a, T>(Repr<'a, T>);

#[derive(Clone, Copy)]
enum Repr<'a, T> {
    Wire { version: Version, bytes: &'a [u8], reading: Strictness },
    Items(&'a [T]),
}

impl<'a, T> List<'a, T> {
    /// Makes a list of these items.
    #[must_use]
    pub const fn of(items: &'a [T]) -> Self {
        List(Repr::Items(items))
    }

    /// The empty list.
    #[must_use]
    pub const fn empty() -> Self {
        List(Repr::Items(&[]))
    }

    /// Whether the list has no items.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        match self.0 {
            Repr::Wire { bytes, .. } => bytes.is_empty(),
            Repr::Items(items) => items.is_empty(),
        }
    }
}

impl<'a, T: Element<'a> + Clone> List<'a, T> {
    /// Reads the rest of the reader as elements, and checks each.
    pub(crate) fn decode(version: Version, mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let (bytes, reading) = (reader.peek(), reader.how());
        while !reader.is_empty() {
            let before = reader.len();
            T::decode(version, &mut reader)?;
            if reader.len() == before {
                return Err(reader.bad_length("list element", 0));
            }
        }
        Ok(List(Repr::Wire { version, bytes, reading }))
    }

    /// As [`List::decode`], for a list within a framed item. A liberal reading ends at the first
    /// element that cannot be framed; [`List::unread`] returns the rest.
    pub(crate) fn decode_within(version: Version, reader: Reader<'a>) -> Result<Self, DecodeError> {
        if reader.is_liberal() {
            let (bytes, reading) = (reader.peek(), reader.how());
            return Ok(List(Repr::Wire { version, bytes, reading }));
        }
        Self::decode(version, reader)
    }

    /// Returns the bytes after the last readable item. They are empty, except in a list from a
    /// switch that has an item of invalid length.
    #[must_use]
    pub fn unread(&self) -> &'a [u8] {
        let Repr::Wire { version, bytes, reading: Strictness::Liberal } = self.0 else {
            return &[];
        };
        let mut reader = Reader::new(bytes).reading(Strictness::Liberal);
        loop {
            let rest = reader.peek();
            if T::decode(version, &mut reader).is_err() || reader.len() == rest.len() {
                return rest;
            }
        }
    }

    /// Returns whether a strict reading accepts the whole list.
    pub(crate) fn is_strict(&self) -> bool {
        match self.0 {
            Repr::Wire { version, bytes, reading: Strictness::Liberal } => {
                Self::decode(version, Reader::new(bytes)).is_ok()
            }
            _ => true,
        }
    }

    pub(crate) fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        match self.0 {
            Repr::Wire { version: from, bytes, .. } if from == version => out.append(bytes),
            _ if !self.unread().is_empty() => {
                Err(EncodeError::Unsupported { what: "a list that cannot be read", version })
            }
            _ => {
                let mut items = self.iter();
                let mut next = items.next();
                while let Some(item) = next {
                    next = items.next();
                    if next.as_ref().is_some_and(|next| item.is_said_by_next(next, version)) {
                        continue;
                    }
                    item.encode(version, out)?;
                }
                Ok(())
            }
        }
    }

    /// Iterates over the items.
    #[must_use]
    pub fn iter(&self) -> Iter<'a, T> {
        Iter(match self.0 {
            Repr::Wire { version, bytes, reading } => {
                let reader = Reader::new(bytes).reading(reading);
                IterRepr::Wire { version, reader, item: PhantomData }
            }
            Repr::Items(items) => IterRepr::Items(items.iter()),
        })
    }

    /// Number of items. A list that was read from bytes is walked to count them.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.0 {
            Repr::Wire { .. } => self.iter().count(),
            Repr::Items(items) => items.len(),
        }
    }
}

/// The items of a [`List`].
#[derive(Clone)]
pub struct Iter<'a, T>(IterRepr<'a, T>);

#[derive(Clone)]
enum IterRepr<'a, T> {
    Wire { version: Version, reader: Reader<'a>, item: PhantomData<T> },
    Items(std::slice::Iter<'a, T>),
}

impl<'a, T: Element<'a> + Clone> Iterator for Iter<'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match &mut self.0 {
            // The bytes were checked when the list was read, except those of `List::unread`.
            IterRepr::Wire { version, reader, .. } if !reader.is_empty() => {
                let item = T::decode(*version, reader).ok();
                if item.is_none() {
                    reader.take_rest();
                }
                item
            }
            IterRepr::Wire { .. } => None,
            IterRepr::Items(items) => items.next().cloned(),
        }
    }
}

impl<'a, T: Element<'a> + Clone> IntoIterator for List<'a, T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> Default for List<'_, T> {
    fn default() -> Self {
        List::empty()
    }
}

impl<'a, T> From<&'a [T]> for List<'a, T> {
    fn from(items: &'a [T]) -> Self {
        List::of(items)
    }
}

impl<'a, T, const N: usize> From<&'a [T; N]> for List<'a, T> {
    fn from(items: &'a [T; N]) -> Self {
        List::of(items)
    }
}

impl<'a, T: Element<'a> + Clone + PartialEq> PartialEq for List<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter()) && self.unread() == other.unread()
    }
}

impl<'a, T: Element<'a> + Clone + Eq> Eq for List<'a, T> {}

impl<'a, T: Element<'a> + Clone + fmt::Debug> fmt::Debug for List<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        list.entries(self.iter());
        match self.unread() {
            [] => list.finish(),
            unread => list.entry(&crate::Bytes(unread)).finish(),
        }
    }
}

#[cfg(feature = "serde")]
impl<'a, T: Element<'a> + Clone + serde::Serialize> serde::Serialize for List<'a, T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeSeq;

        let mut list = serializer.serialize_seq(None)?;
        for item in self.iter() {
            list.serialize_element(&item)?;
        }
        if !self.unread().is_empty() {
            list.serialize_element(&std::collections::BTreeMap::from([(
                "unread",
                crate::Bytes(self.unread()),
            )]))?;
        }
        list.end()
    }
}
