//! Packets that came together, for handlers that take them all at once.

use std::ops::Range;
use std::sync::Arc;

use bellrock::openflow::PacketInView;
use bellrock::{Field, MacAddr, PacketIn};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PySlice};

use crate::argument::wrong_type;
use crate::frame_view::FrameView;
use crate::from_packet::PacketValues;
use crate::matching::named;
use crate::packet::PyPacketIn;

/// Packets that a switch sent together: a sequence of `PacketIn`, which are made when they are
/// asked for. `values` reads a field of all of them at once.
#[pyclass(name = "PacketIns", module = "bellrock", frozen, sequence)]
pub(crate) struct PyPacketIns {
    /// Whole packet_in messages.
    bytes: Arc<[u8]>,
    /// Where each message is.
    places: Vec<Range<usize>>,
}

impl PyPacketIns {
    /// Takes messages that a worker has checked.
    pub(crate) fn new(bytes: &[u8], places: Vec<Range<usize>>) -> Self {
        PyPacketIns { bytes: bytes.into(), places }
    }

    /// The same without some messages.
    pub(crate) fn with(&self, places: Vec<Range<usize>>) -> Self {
        PyPacketIns { bytes: Arc::clone(&self.bytes), places }
    }

    /// Where each message is, and the message.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (&Range<usize>, &[u8])> {
        self.places.iter().filter_map(|place| Some((place, self.bytes.get(place.clone())?)))
    }

    /// The packets as apps in Rust get them, each with its place.
    pub(crate) fn packets(&self) -> impl Iterator<Item = (&Range<usize>, PacketIn<'_>)> {
        self.messages().filter_map(|(place, message)| {
            Some((place, PacketIn::new(PacketInView::of_any_form(message)?)))
        })
    }

    fn object<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyPacketIn>> {
        let message = self.places.get(index).and_then(|place| self.bytes.get(place.clone()));
        match message {
            Some(message) => PyPacketIn::make(py, message),
            None => Err(PyIndexError::new_err("there are fewer packets")),
        }
    }
}

#[pymethods]
impl PyPacketIns {
    /// Returns the values of a field, one for each packet: numbers, and `None` for a packet that
    /// does not have the field. The fields are those of `Match`. `MacAddr(number)` makes an address
    /// of a number. Ethernet addresses are zero if the packet is shorter than that.
    fn values<'py>(&self, py: Python<'py>, field: &str) -> PyResult<Bound<'py, PyList>> {
        // The most frequent fields without a look at other headers.
        let address_at = |at: usize| {
            let address = |packet: PacketIn<'_>| {
                MacAddr(FrameView(packet.data()).chunk(at).unwrap_or_default()).to_u64()
            };
            PyList::new(py, self.packets().map(|(_, packet)| address(packet)).collect::<Vec<_>>())
        };
        match named(field)? {
            Field::InPort => {
                let ports: Vec<u32> =
                    self.packets().map(|(_, packet)| packet.in_port().0).collect();
                PyList::new(py, ports)
            }
            Field::EthDst => address_at(0),
            Field::EthSrc => address_at(6),
            field => {
                let value =
                    |packet: PacketIn<'_>| PacketValues::of(FrameView(packet.data())).value(field);
                PyList::new(py, self.packets().map(|(_, packet)| value(packet)).collect::<Vec<_>>())
            }
        }
    }

    fn __len__(&self) -> usize {
        self.places.len()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = index.cast::<PySlice>() {
            let indices = slice.indices(self.places.len() as isize)?;
            let steps = (0..indices.slicelength as isize).map(|n| indices.start + n * indices.step);
            let places = steps.filter_map(|at| self.places.get(at as usize).cloned()).collect();
            return Ok(Bound::new(py, self.with(places))?.into_any());
        }
        let Ok(index) = index.extract::<isize>() else {
            return Err(wrong_type(index, "a number or a slice"));
        };
        let from_start = if index < 0 { index + self.places.len() as isize } else { index };
        let index = usize::try_from(from_start).unwrap_or(usize::MAX);
        Ok(self.object(py, index)?.into_any())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let packets = (0..self.places.len()).map(|index| self.object(py, index));
        PyList::new(py, packets.collect::<PyResult<Vec<_>>>()?)?.try_iter()
    }

    fn __repr__(&self) -> String {
        format!("<PacketIns, {} packets>", self.places.len())
    }
}
