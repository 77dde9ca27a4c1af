//! The metrics of a fixed operator: every family has a meaning, and every label is inert.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::client::{Lab, PATIENCE};
use bellrock_northbound::limits::MAX_STATUS_PORTS;
use bellrock_northbound::{HTTP_COUNTERS, StatisticsSettings};

fn scrape(lab: &Lab) -> String {
    let reply = lab.get("/metrics");
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.head.contains("content-type: text/plain; version=0.0.4"), "{reply:?}");
    reply.body
}

#[test]
fn a_scrape_has_the_state_and_every_counter() {
    let lab = Lab::new();
    let text = scrape(&lab);
    for line in [
        r#"dp_status{dp_id="0xa1",dp_name="s1"} 1"#,
        r#"dp_status{dp_id="0xa2",dp_name="s2"} 0"#,
        r#"port_status{dp_id="0xa1",dp_name="s1",port="1",port_description="s1-eth1"} 1"#,
        r#"of_packet_ins_total{dp_id="0xa1",dp_name="s1"} 7"#,
        r#"bellrock_switch_certificate_expiry_timestamp_seconds{dp_id="0xa1",dp_name="s1"} 2000000000"#,
        r#"of_dp_connections_total{dp_id="0xa1",dp_name="s1"} 2"#,
        // A switch that is not connected any more, without a name.
        r#"of_packet_ins_total{dp_id="0xa3",dp_name="00000000000000a3"} 1"#,
        r#"bellrock_packet_ins_total{worker="0"} 5"#,
        r#"bellrock_port_packet_ins_dropped_total{dp_id="0xa1",dp_name="s1",port="1",port_description="s1-eth1"} 8"#,
        r#"bellrock_app_events_late_total{app="hub"} 1"#,
        r#"bellrock_app_refused_total{app="hub"} 2"#,
        r#"bellrock_app_messages_total{app="hub"} 3"#,
        r#"bellrock_app_message_excess_seconds_total{app="hub"} 4"#,
        r#"bellrock_app_table_memory_refusals_total{app="hub"} 7"#,
        r#"bellrock_app_table_memory_used_bytes{app="hub"} 5"#,
        "bellrock_hosts 3",
        "bellrock_cluster_serving 1",
        "bellrock_cluster_nodes 3",
        "bellrock_cluster_nodes_alive 2",
        r#"bellrock_cluster_switches{role="master"} 1"#,
        r#"bellrock_cluster_switches{role="standby"} 0"#,
        "bellrock_cluster_epoch 88",
        "bellrock_cluster_certificate_expiry_timestamp_seconds 1950000000",
        "bellrock_cluster_crl_expiry_timestamp_seconds 1940000000",
        r#"bellrock_cluster_node_up{node="b"} 1"#,
        r#"bellrock_cluster_node_up{node="c"} 0"#,
        r#"bellrock_cluster_node_switches{node="b"} 1"#,
        r#"bellrock_cluster_node_silence_seconds{node="c"} 0.9"#,
        "bellrock_cluster_store_up 0",
        "bellrock_cluster_store_revision 91",
        "bellrock_cluster_store_silence_seconds 4.5",
        "bellrock_cluster_requests_total 9",
        r#"bellrock_cluster_request_outcomes_total{outcome="unknown"} 2"#,
        "bellrock_cluster_requests_taken_total 4",
        "bellrock_cluster_requests_refused_total 3",
        "bellrock_tls_certificate_expiry_timestamp_seconds 1900000000",
        "bellrock_tls_crl_expiry_timestamp_seconds 1890000000",
        "bellrock_task_polls_total 9",
        r#"bellrock_app_floods_total{app="hub"} 1"#,
        r#"bellrock_app_floods_total{app="learning"} 2"#,
        r#"bellrock_app_odd_name_total{app="learning"} 3"#,
        r#"bellrock_reservations{state="installed"} 1"#,
        "# HELP bellrock_packet_ins_total Packet-ins that reached the apps.",
        "# TYPE bellrock_packet_ins_total counter",
        "bellrock_blocked_hosts 0",
    ] {
        assert!(text.lines().any(|one| one == line), "no {line} in\n{text}");
    }
    for (name, _) in HTTP_COUNTERS {
        assert!(text.contains(&format!("\nbellrock_http_{name}_total ")), "{name}");
    }
    // An app that does not run has no family, and ports are not asked for.
    assert!(!text.contains("bellrock_circuits") && !text.contains("of_port_"), "{text}");
    // Nothing is read that workers or switches have to list.
    let asked = lab.operator.requests.lock().unwrap();
    let lists = ["list_ports", "list_hosts", "list_flows", "count_flows"];
    assert!(!asked.iter().any(|request| lists.contains(&request.name())), "{asked:?}");
}

#[test]
fn the_ports_of_a_scrape_are_bounded_and_the_others_counted() {
    let lab = Lab::new();
    let ports = |text: &str| text.lines().filter(|line| line.starts_with("port_status{")).count();
    let text = scrape(&lab);
    assert_eq!(ports(&text), 1);
    assert!(text.lines().any(|line| line == "bellrock_ports_left_out 0"), "{text}");
    lab.operator.more_ports.store(MAX_STATUS_PORTS + 2, Ordering::Relaxed);
    let text = scrape(&lab);
    assert_eq!(ports(&text), MAX_STATUS_PORTS);
    assert!(text.lines().any(|line| line == "bellrock_ports_left_out 3"));
}

#[test]
fn every_series_has_a_meaning_and_a_type_and_texts_of_switches_stay_in_their_labels() {
    let lab = Lab::new();
    let text = scrape(&lab);
    assert!(text.contains(r#"software="S\"\n# \\""#), "{text}");
    let described = |keyword: &str| -> BTreeSet<&str> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(keyword));
        lines.map(|line| line.split_once(' ').unwrap().0).collect()
    };
    let (helped, typed) = (described("# HELP "), described("# TYPE "));
    let series: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(series.len() > 30, "{text}");
    for line in &series {
        let name = line.split(['{', ' ']).next().unwrap();
        let parts = ["_bucket", "_sum", "_count"];
        let histogram = parts.iter().find_map(|part| name.strip_suffix(part));
        let name = histogram.filter(|name| typed.contains(name)).unwrap_or(name);
        assert!(helped.contains(name) && typed.contains(name), "{line}");
    }
    let names: Vec<_> = series.iter().map(|line| line.rsplit_once(' ').unwrap().0).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "twice: {text}");
}

#[test]
fn ports_and_flows_are_reported_if_switches_are_asked() {
    let every = Some(Duration::from_secs(1));
    let lab = Lab::with(|settings| {
        settings.statistics = StatisticsSettings { ports: every, flows: every };
    });
    let expected = [
        r#"of_port_rx_bytes{dp_id="0xa1",dp_name="s1",port="1",port_description="s1-eth1"} 500"#,
        r#"of_port_tx_bytes{dp_id="0xa1",dp_name="s1",port="1",port_description="s1-eth1"} 600"#,
        r#"bellrock_flows{dp_id="0xa1",dp_name="s1",owner="learning"} 4"#,
        r#"bellrock_flows{dp_id="0xa1",dp_name="s1",owner="foreign"} 1"#,
        r#"bellrock_flows_desired{dp_id="0xa1",dp_name="s1",owner="learning"} 5"#,
    ];
    let deadline = Instant::now() + PATIENCE;
    loop {
        let text = scrape(&lab);
        let missing: Vec<_> = expected.iter().filter(|line| !text.contains(**line)).collect();
        if missing.is_empty() {
            // A counter that the switch does not keep has no series.
            assert!(!text.contains("of_port_rx_errors"), "{text}");
            break;
        }
        assert!(Instant::now() < deadline, "{missing:?} are missing in\n{text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
