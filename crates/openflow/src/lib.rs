//! OpenFlow.
