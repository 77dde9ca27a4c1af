//! How long things take.

use bellrock_api::{LATENCY_BOUNDS, Latencies, LatencyCounts, Network};
use bellrock_engine::Monitor;
use bellrock_query::{LatencyBucket, LatencyRow};

/// What the turns of workers mean.
const TURN: &str = "From the readiness of switches until a worker has read, answered and written all of them. An \
                    answer to a packet-in takes no longer inside the controller.";

/// What the times in the queues of switches mean.
const QUEUE: &str = "From the first bytes that a switch does not take at once, until it has taken all that waits for it. \
                     What a switch takes at once is not counted.";

/// All latencies: those of workers, and those of services and apps.
pub(super) fn list(monitor: &Monitor, network: &Network) -> Vec<LatencyRow> {
    let services = network.extension::<Latencies>();
    let services = services.all().map(|(name, meaning, counts)| row(name, meaning, &counts));
    let workers = [row("turn", TURN, &monitor.turns()), row("queue", QUEUE, &monitor.queues())];
    workers.into_iter().chain(services).collect()
}

fn row(name: &str, meaning: &str, counts: &LatencyCounts) -> LatencyRow {
    let mut up_to = 0;
    let bucket = |(bound, count): (&std::time::Duration, &u64)| {
        up_to += count;
        LatencyBucket { le_seconds: bound.as_secs_f64(), count: up_to }
    };
    LatencyRow {
        name: name.to_owned(),
        meaning: meaning.trim().to_owned(),
        count: counts.count(),
        sum_seconds: counts.sum.as_secs_f64(),
        buckets: LATENCY_BOUNDS.iter().zip(&counts.buckets).map(bucket).collect(),
    }
}
