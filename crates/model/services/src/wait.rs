//! Waits for a time that there may be none of.

use std::future::pending;
use std::time::Duration;

use bellrock_api::Network;

/// Waits until a time on the controller's clock; forever if there is none.
pub async fn wait_until(network: &Network, at: Option<Duration>) {
    match at {
        Some(at) => network.sleep_until(at).await,
        None => pending().await,
    }
}
