//! The hosts of the network and where they are.
