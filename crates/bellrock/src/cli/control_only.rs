//! The part of `cli` that serves the control socket in your own program, without commands.
//!
//! The modules are those of the command. Their code that asks and shows is unused here.

#![allow(dead_code, unused_imports, reason = "the other half of these modules is the command's")]

mod answers;
mod control;
mod flows;
mod hosts;
mod network;
mod operate;
mod own;
mod show;
mod wait;

pub(crate) use own::{ControlSocket, serve_control};

/// A new directory for a test.
#[cfg(test)]
fn test_directory(name: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("bellrock-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}
