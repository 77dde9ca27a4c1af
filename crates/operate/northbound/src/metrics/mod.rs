//! Metrics for Prometheus.
//!
//! `readings` asks the operator for what a scrape reports, and `families` makes families of series
//! of it: the names, labels and meanings. `statistics` asks switches for the counters of their
//! ports and flows, spread over time, so that a scrape does not. `text` writes the format that
//! every version of Prometheus reads.
//!
//! Nothing is counted for the metrics alone: workers do not know that they are read.

mod cluster;
mod families;
mod readings;
mod statistics;
mod text;

use std::sync::Arc;

use crate::Certificate;
use crate::answer::Shared;
use crate::problem::Problem;

pub(crate) use statistics::{Statistics, StatisticsKind, poll};
pub(crate) use text::CONTENT_TYPE;

/// The metrics as text. All of the work is done in a thread that may wait.
pub(crate) async fn scrape(shared: &Arc<Shared>) -> Result<String, Problem> {
    let statistics = Arc::clone(&shared.statistics);
    let expiry = shared.certificate.as_ref().and_then(Certificate::expiry);
    let text = shared.ask_more("the metrics", move |operator| {
        let readings = readings::read(operator)?;
        Ok(text::encode(families::Families { readings, polled: statistics.snapshot(), expiry }))
    });
    text.await?.map_err(|_| Problem::internal("the metrics cannot be written"))
}
