//! What has happened in the network, for whoever wants to know.
