//! Bytes on a connection of HTTP get answers of HTTP, or none, in both interfaces. Nobody without a
//! token gives an order.
//!
//! The first byte of the input chooses the interface. `TOKEN` in the rest stands for a valid token.
#![no_main]

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use bellrock_northbound::fuzzing::Routers;
use bellrock_northbound::tokens::{Scope, TokenEntry};
use bellrock_query::{Answer, ErrorKind, Operator, QueryError, Request};
use libfuzzer_sys::fuzz_target;

/// Knows nothing, but notes orders.
struct Empty;

static ORDERED: AtomicBool = AtomicBool::new(false);

impl Operator for Empty {
    fn answer(&self, request: Request) -> Result<Answer, QueryError> {
        ORDERED.fetch_or(request.is_order(), Ordering::Relaxed);
        let _ = request.audit_text();
        Err(QueryError::new(ErrorKind::NotFound, "there is nothing"))
    }
}

static LAB: LazyLock<(Routers, String)> = LazyLock::new(|| {
    let file: PathBuf = std::env::temp_dir().join(format!("bellrock-fuzz-{}", std::process::id()));
    let (entry, token) = TokenEntry::make("fuzz", Scope::Write, None).expect("random numbers");
    entry.add_to(&file).expect("a file for the token");
    let routers = Routers::new(Arc::new(Empty), &file, &bellrock_ryu::interface(Vec::new()));
    (routers, token)
});

fuzz_target!(|input: &[u8]| {
    let Some((&which, bytes)) = input.split_first() else { return };
    let (routers, token) = &*LAB;
    let is_ryu = which & 1 != 0;
    let place = bytes.windows(5).position(|word| word == b"TOKEN");
    let sent = match place {
        Some(at) => [&bytes[..at], token.as_bytes(), &bytes[at + 5..]].concat(),
        None => bytes.to_vec(),
    };
    ORDERED.store(false, Ordering::Relaxed);
    let answer = routers.serve(is_ryu, &sent);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."), "{answer:?}");
    let may_order = is_ryu || place.is_some();
    assert!(may_order || !ORDERED.load(Ordering::Relaxed), "an order without a token");
    let failed = answer.windows(12).any(|bytes| bytes == b"HTTP/1.1 500");
    assert!(!failed, "an internal error: {}", String::from_utf8_lossy(&answer));
});
