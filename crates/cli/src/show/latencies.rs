//! How long things take.

use std::time::Duration;

use bellrock_query::LatencyRow;

use super::{printable, wide_table};

/// All latencies, with upper bounds of quantiles.
pub(crate) fn latencies(rows: &[LatencyRow]) -> String {
    let row = |row: &LatencyRow| {
        let mean = (row.count > 0).then(|| row.sum_seconds / row.count as f64);
        let quantile = |share| row.quantile_seconds(share);
        let times = [mean, quantile(0.5), quantile(0.99), quantile(1.0)];
        let times = times.into_iter().map(|seconds| time(row.count, seconds));
        let mut cells = vec![printable(&row.name), row.count.to_string()];
        cells.extend(times);
        cells.push(printable(&row.meaning));
        cells
    };
    let head = ["LATENCY", "COUNT", "MEAN", "50%", "99%", "ALL", "IS"];
    wide_table(&head, &["IS", "MEAN"], rows.iter().map(row))
}

/// A time. Without one, all times are above the last bound, or there are none.
fn time(count: u64, seconds: Option<f64>) -> String {
    match seconds {
        Some(seconds) => format!("{:.3?}", Duration::from_secs_f64(seconds.max(0.0))),
        None if count == 0 => "-".to_owned(),
        None => "longer".to_owned(),
    }
}
