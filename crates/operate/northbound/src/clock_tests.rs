//! What the server does as time passes. Only minimum times are asserted: a busy machine is late.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::http::header;
use bellrock_query::{Answer, ErrorKind, EventsAfter, Operator, QueryError, Request, Rows};
use http_body_util::BodyExt;
use serde_json::json;
use tokio::sync::watch;

use crate::access::Caller;
use crate::answer::Shared;
use crate::limits::MIN_STATISTICS_INTERVAL;
use crate::metrics::{StatisticsKind, poll};
use crate::tokens::{GivenTokens, TokenBook};
use crate::{HttpCounters, stream};

/// Answers with so many switches. Records whose flows were counted.
#[derive(Default)]
struct Switches {
    count: AtomicUsize,
    counted: Mutex<Vec<(Instant, String)>>,
}

impl Operator for Switches {
    fn answer(&self, request: Request) -> Result<Answer, QueryError> {
        Ok(match request {
            Request::ListSwitches(query) => {
                let count = self.count.load(Ordering::Relaxed);
                let row = |n: usize| {
                    let row = json!({
                        "dpid": format!("{n:016x}"), "version": "1.3", "role": "equal", "standby": false,
                        "peer": "127.0.0.1:1", "up_seconds": 0, "n_tables": 1, "n_buffers": 0,
                        "manufacturer": "", "hardware": "", "software": "", "serial_number": "",
                        "description": "", "ports": [],
                    });
                    serde_json::from_value(row).expect("a switch")
                };
                Answer::ListSwitches(Rows::of((0..count).map(row), query.page))
            }
            Request::CountFlows(query) => {
                let switch = query.switch.map(|switch| switch.to_string()).unwrap_or_default();
                self.counted.lock().expect("no panic").push((Instant::now(), switch));
                Answer::CountFlows(Rows::of([], query.page))
            }
            Request::FollowEvents(_) => Answer::FollowEvents(EventsAfter {
                restarted: false,
                missed: 0,
                events: Vec::new(),
                last: "start".to_owned(),
            }),
            other => {
                let why = format!("not expected: {other:?}");
                return Err(QueryError::new(ErrorKind::Internal, why));
            }
        })
    }
}

fn shared(operator: &Arc<Switches>) -> (Arc<Shared>, watch::Sender<()>) {
    let (events, news) = watch::channel(());
    let operator = Arc::clone(operator);
    let tokens = TokenBook::open(None, GivenTokens::default()).unwrap();
    (Arc::new(Shared::new(operator, &HttpCounters::default(), tokens, None, news)), events)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}

#[test]
fn switches_are_asked_for_statistics_one_after_the_other() {
    const SWITCHES: usize = 10;
    let operator = Arc::new(Switches::default());
    operator.count.store(SWITCHES, Ordering::Relaxed);
    let (shared, _events) = shared(&operator);
    let counted = || operator.counted.lock().expect("no panic").clone();
    let began = Instant::now();
    runtime().block_on(async {
        // A shorter interval than the minimum, which is used then.
        tokio::spawn(poll(shared, StatisticsKind::Flows, Duration::ZERO));
        while counted().len() < 2 * SWITCHES {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let asked = counted();
    let share = MIN_STATISTICS_INTERVAL / SWITCHES as u32;
    for (n, (at, switch)) in asked[..2 * SWITCHES].iter().enumerate() {
        assert_eq!(*switch, format!("{:016x}", n % SWITCHES), "in their order");
        assert!(*at - began >= share * n as u32, "{n}: after {:?}", *at - began);
    }
}

#[test]
fn a_stream_without_events_shows_that_it_lives_and_ends_in_time() {
    let (shared, _events) = shared(&Arc::default());
    let [keepalive, limit] = [20, 300].map(Duration::from_millis);
    let began = Instant::now();
    runtime().block_on(async {
        let caller = Caller::NOBODY;
        let answer = stream::respond_for(shared, caller, None, limit, keepalive).await;
        let answer = answer.expect("a stream");
        assert_eq!(answer.headers()[header::CONTENT_TYPE], "text/event-stream");
        let (mut body, mut comments) = (answer.into_body(), 0);
        while let Some(frame) = body.frame().await {
            let bytes = frame.expect("no error").into_data().expect("data");
            assert!(bytes.starts_with(b": "), "{bytes:?}");
            comments += 1;
        }
        assert!(
            (2..=1 + limit.as_millis() / keepalive.as_millis()).contains(&comments),
            "{comments}"
        );
    });
    assert!(began.elapsed() >= limit);
}
