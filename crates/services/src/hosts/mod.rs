//! Finds the hosts and where they are.
