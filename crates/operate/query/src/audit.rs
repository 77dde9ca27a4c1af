//! Orders in the audit log.

use serde::Serialize;

/// Maximum size of an order in a line of the audit log, in bytes. The rest is left out.
pub const MAX_AUDIT_BYTES: usize = 2048;

/// An order with its name, cut after [`MAX_AUDIT_BYTES`].
pub(crate) fn text(name: &str, order: &impl Serialize) -> String {
    let mut text = serde_json::to_string(order).unwrap_or_default();
    if text.len() > MAX_AUDIT_BYTES {
        let all = text.len();
        text.truncate(text.floor_char_boundary(MAX_AUDIT_BYTES));
        text.push_str(&format!("... ({all} bytes)"));
    }
    format!("{name} {text}")
}

#[cfg(test)]
mod tests {
    use crate::{Block, ListApps, MAX_AUDIT_BYTES, Request};

    #[test]
    fn an_order_is_told_from_a_question_and_a_long_one_is_cut() {
        let block = |host: &str| Request::from(Block { host: host.to_owned() });
        assert!(block("h1").is_order() && !Request::from(ListApps {}).is_order());
        assert_eq!(block("h1").audit_text(), r#"block {"host":"h1"}"#);
        let long = block(&"é".repeat(MAX_AUDIT_BYTES)).audit_text();
        assert!(long.ends_with("é... (4107 bytes)"), "{long}");
        assert!(long.len() < MAX_AUDIT_BYTES + 30);
    }
}
