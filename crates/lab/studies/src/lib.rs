//! The studies' experiments, and the targets of this project's engine.
//!
//! [`suite`] repeats the experiments of the studies with the load generator. It runs controllers in
//! turn, plots the results ([`plot`]), and shows the published figures beside them ([`published`]).
//! [`targets`] measures the targets of this project's engine, row by row. [`attack`] plays hostile
//! switches and hosts beside a load.
//!
//! # What it is not
//! It sends no load itself: `bellrock-bench` does. It depends on no part of the controller.

pub mod attack;
pub mod plot;
pub mod published;
pub mod suite;
pub mod targets;
