//! Finds the links between switches.
