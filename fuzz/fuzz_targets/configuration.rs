//! A configuration file is a configuration or a list of problems.
#![no_main]

use bellrock_config::Config;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| Config::fuzz(text));
