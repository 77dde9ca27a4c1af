//! Logs when circuits and reservations go down and come up again.

use std::collections::BTreeMap;
use std::time::Duration;

use bellrock_api::Network;
use tracing::{info, warn};

/// Time between two checks.
const LOOK: Duration = Duration::from_secs(1);

/// Time of the first check. Before links are found everything is down, which is not worth a line.
const FIRST_LOOK: Duration = Duration::from_secs(5);

/// State of something that an app keeps up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum How {
    Up,
    /// Neither up nor down yet.
    UnderWay,
    /// Down, with the reason.
    Down(String),
}

/// Lists the names and states of everything that an app keeps up. Names do not change.
pub(in crate::cli) type Kept = Box<dyn Fn() -> Vec<(String, How)> + Send>;

/// Logs changes between up and down from now on.
pub(in crate::cli) fn log_changes(network: &Network, kept: Vec<Kept>) {
    if !kept.is_empty() {
        network.spawn("log of circuits and reservations", look(network.clone(), kept));
    }
}

async fn look(network: Network, kept: Vec<Kept>) {
    let mut before = BTreeMap::new();
    network.sleep(FIRST_LOOK).await;
    loop {
        let now = kept.iter().flat_map(|list| list()).collect();
        for (name, how) in news(&mut before, now) {
            match how {
                How::Up => info!("{name} is up"),
                How::Down(why) => warn!("{name} is down: {why}"),
                How::UnderWay => {}
            }
        }
        network.sleep(LOOK).await;
    }
}

/// Returns what went up or down since `before`. `UnderWay` counts as no change.
fn news(before: &mut BTreeMap<String, How>, now: Vec<(String, How)>) -> Vec<(String, How)> {
    let mut known = BTreeMap::new();
    let mut news = Vec::new();
    for (name, how) in now {
        let was = before.remove(&name);
        let how = match how {
            How::UnderWay => was.clone().unwrap_or(How::UnderWay),
            how => how,
        };
        if was.as_ref() != Some(&how) && how != How::UnderWay {
            news.push((name.clone(), how.clone()));
        }
        known.insert(name, how);
    }
    *before = known;
    news
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_is_told_once() {
        let mut before = BTreeMap::new();
        let mut told = |how: Option<How>| {
            let now = how.map(|how| ("blue".to_owned(), how));
            news(&mut before, now.into_iter().collect()).pop().map(|(_, how)| how)
        };
        let down = || How::Down("no path".to_owned());
        assert_eq!(told(Some(How::UnderWay)), None);
        assert_eq!(told(Some(How::Up)), Some(How::Up));
        assert_eq!(told(Some(How::UnderWay)), None);
        assert_eq!(told(Some(How::Up)), None, "it was up before");
        assert_eq!(told(Some(down())), Some(down()));
        assert_eq!(told(Some(down())), None);
        assert_eq!(told(None), None);
        assert_eq!(told(Some(How::Up)), Some(How::Up), "another of the same name");
    }
}
