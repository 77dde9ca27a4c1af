//! The text format of Prometheus, version 0.0.4.
//!
//! The library writes OpenMetrics, in which the name of a counter's family has no `_total`. Tools
//! that know only the older format, such as `promtool check metrics`, find no description for such
//! a counter. Prometheus reads both.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::registry::Registry;

/// The media type.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Writes all series of a collector.
pub(super) fn encode(collector: impl Collector) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(collector));
    let mut text = String::new();
    encode_registry(&mut text, &registry)?;
    Ok(name_counters(&text))
}

/// Names counters in `HELP` and `TYPE` as in their series.
fn name_counters(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut lines = open_metrics.lines().peekable();
    while let Some(line) = lines.next() {
        let is_counter = |line: &str| line.starts_with("# TYPE ") && line.ends_with(" counter");
        let is_of_counter = is_counter(line)
            || line.starts_with("# HELP ") && lines.peek().is_some_and(|next| is_counter(next));
        match line.splitn(4, ' ').collect::<Vec<_>>()[..] {
            [hash, keyword, name, rest] if is_of_counter => {
                text.extend([hash, " ", keyword, " ", name, "_total ", rest]);
            }
            _ => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_the_names_of_their_series() {
        let open_metrics = "# HELP a_b How many of x.\n# TYPE a_b counter\na_b_total{l=\"# TYPE v counter\"} 1\n\
                            # HELP c It is a counter\n# TYPE c gauge\nc 2\n";
        let text = "# HELP a_b_total How many of x.\n# TYPE a_b_total counter\n\
                    a_b_total{l=\"# TYPE v counter\"} 1\n# HELP c It is a counter\n# TYPE c gauge\nc 2\n";
        assert_eq!(name_counters(open_metrics), text);
    }
}
