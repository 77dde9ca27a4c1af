//! Several controllers as one.
//!
//! Every switch connects to every controller (a *node* of the cluster), and obeys one of them: its
//! master. etcd keeps, for each switch, the order in which nodes are its master.
