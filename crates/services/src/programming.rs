//! Flows installed on many switches, confirmed.
