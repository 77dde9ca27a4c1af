//! Description of a switch (1.0 §5.3.5; 1.3.5 §7.3.5.1).

use std::fmt;

use crate::reader::Reader;
use crate::wire;
use crate::{DecodeError, EncodeError, FixedStr, Out};

/// The description of a switch: five texts from its manufacturer.
#[derive(Clone, Copy)]
pub struct Desc<'a>(&'a wire::Desc);

impl<'a> Desc<'a> {
    /// Returns the manufacturer.
    #[must_use]
    pub fn manufacturer(&self) -> FixedStr<256> {
        FixedStr(self.0.manufacturer)
    }

    /// Returns the hardware.
    #[must_use]
    pub fn hardware(&self) -> FixedStr<256> {
        FixedStr(self.0.hardware)
    }

    /// Returns the software.
    #[must_use]
    pub fn software(&self) -> FixedStr<256> {
        FixedStr(self.0.software)
    }

    /// Returns the serial number.
    #[must_use]
    pub fn serial_number(&self) -> FixedStr<32> {
        FixedStr(self.0.serial_number)
    }

    /// Returns the name that its operator has given it.
    #[must_use]
    pub fn datapath(&self) -> FixedStr<256> {
        FixedStr(self.0.datapath)
    }

    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.fixed("description").map(Desc)
    }

    pub(crate) fn encode(&self, out: &mut Out) -> Result<(), EncodeError> {
        out.put(self.0)
    }

    fn texts(&self) -> [(&'static str, String); 5] {
        [
            ("manufacturer", self.manufacturer().to_string()),
            ("hardware", self.hardware().to_string()),
            ("software", self.software().to_string()),
            ("serial_number", self.serial_number().to_string()),
            ("datapath", self.datapath().to_string()),
        ]
    }
}

/// The five texts, for the switch's end of a session to send.
#[derive(Clone, Default)]
pub struct DescBuf(Box<wire::Desc>);

impl DescBuf {
    /// Makes a description of these texts, each cut to the length of its field.
    #[must_use]
    pub fn new(
        manufacturer: &str,
        hardware: &str,
        software: &str,
        serial_number: &str,
        datapath: &str,
    ) -> Self {
        DescBuf(Box::new(wire::Desc {
            manufacturer: FixedStr::new(manufacturer).0,
            hardware: FixedStr::new(hardware).0,
            software: FixedStr::new(software).0,
            serial_number: FixedStr::new(serial_number).0,
            datapath: FixedStr::new(datapath).0,
        }))
    }

    /// Returns the description for a reply.
    #[must_use]
    pub fn view(&self) -> Desc<'_> {
        Desc(&self.0)
    }
}

impl PartialEq for Desc<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.manufacturer() == other.manufacturer()
            && self.hardware() == other.hardware()
            && self.software() == other.software()
            && self.serial_number() == other.serial_number()
            && self.datapath() == other.datapath()
    }
}

impl Eq for Desc<'_> {}

impl fmt::Debug for Desc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.texts()).finish()
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Desc<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.texts())
    }
}
