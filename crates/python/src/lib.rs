//! The native half of the Python package `bellrock`: `bellrock._native`.
//!
//! `python/bellrock/` is the other half: it has the classes that programs extend, the event loop,
//! and the types. What a program imports is documented there, and in the book's part "Python".
//!
//! # Threads
//! All code in Python runs in one thread, the one that called `bellrock.run`. Workers never wait
//! for it: crate `detached` copies events into a bounded queue, `runner` takes them out and calls
//! the handlers, and what these write goes back to the workers. Anything that waits for workers,
//! such as starting and stopping, is done without the lock of the interpreter.
//!
//! # What it is not
//! It decides nothing about OpenFlow: the values of Python wrap those of the crate `bellrock`.
//! Crate `osken` is apart: it reads and writes what os-ken's objects do, byte for byte.

mod action;
mod address;
mod app_options;
mod argument;
mod bell;
mod changes;
mod command_run;
mod controller;
mod desired;
mod encoded;
mod entry;
mod entry_stats;
mod error;
mod events;
mod flow;
mod flows_for_packets;
mod frame;
mod frame_view;
mod from_packet;
mod info;
mod kept;
mod lab;
mod log;
mod log_lines;
mod matching;
mod message;
mod network;
mod own_app;
mod packet;
mod packets;
mod plan;
mod raw;
mod runner;
mod stats;
mod switch;
mod verdict;
mod writers;

/// The module `bellrock._native`.
#[pyo3::pymodule]
mod _native {
    /// Version of the package.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    use crate::action::PyAction;
    #[pymodule_export]
    use crate::address::PyMacAddr;
    #[pymodule_export]
    use crate::changes::Changes;
    #[pymodule_export]
    use crate::command_run::CommandRun;
    #[pymodule_export]
    use crate::controller::NativeController;
    #[pymodule_export]
    use crate::desired::PyDesired;
    #[pymodule_export]
    use crate::encoded::PyReply;
    #[pymodule_export]
    use crate::entry::{PyBucket, PyGroup, PyMeter};
    #[pymodule_export]
    use crate::entry_stats::{
        PyBucketDesc, PyGroupDesc, PyGroupStats, PyMeterBand, PyMeterConfig, PyMeterStats,
    };
    #[pymodule_export]
    use crate::error::Error;
    #[pymodule_export]
    use crate::events::{EventStream, MissedEvents, PyEvent, PyHostId};
    #[pymodule_export]
    use crate::flow::PyFlow;
    #[pymodule_export]
    use crate::frame::{PyEthernet, PyIp};
    #[pymodule_export]
    use crate::info::{PyHost, PyLink, PyPortInfo, PySwitchInfo};
    #[pymodule_export]
    use crate::lab::NativeLab;
    #[pymodule_export]
    use crate::log::{log, log_level, log_to_stderr};
    #[pymodule_export]
    use crate::log_lines::LogLines;
    #[pymodule_export]
    use crate::matching::PyMatch;
    #[pymodule_export]
    use crate::message::{PyErrorMessage, PyFlowRemoved, PyPortStatus};
    #[pymodule_export]
    use crate::network::PyNetwork;
    #[pymodule_export]
    use crate::packet::{Arp, Icmp, Ipv4, Ipv6, PyPacket, PyPacketIn, Tcp, Udp};
    #[pymodule_export]
    use crate::packets::PyPacketIns;
    #[pymodule_export]
    use crate::plan::PyPlan;
    #[pymodule_export]
    use crate::raw::{PyRawConnection, PyRawEvent, RawClosed, RawController, RawFull};
    #[pymodule_export]
    use crate::stats::{
        PyAggregateStats, PyDescription, PyFlowStats, PyPortStats, PyQueueStats, PyTableStats,
    };
    #[pymodule_export]
    use crate::switch::PySwitch;
    #[pymodule_export]
    use crate::verdict::PyVerdict;
    #[pymodule_export]
    use bellrock_osken::OsKenCodec;
}
