//! Shortest paths over the topology.
