//! The command as users run it: its processes, what it prints, and how it ends.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failing test panics")]

mod arguments;
mod bench;
mod bench_suite;
mod bench_targets;
mod bench_tls;
mod budgets;

mod demo;
mod doctor;
mod emulate;
mod fake_switch;
mod flows;
mod hand_over;
mod live;
mod names;
mod new;
#[path = "../../../../vectors/odd/flows.rs"]
mod odd;
mod one_switch;
mod operate;
mod own_program;
mod ports;
mod python_run;
mod running;
mod standby;
mod terminal;
