//! The JSON of requests and answers: what clients of any language write and read.

use bellrock_api::{Dpid, Port, Version};
use bellrock_query::{
    Answer, AskSwitch, BalanceCluster, Block, CleanFlows, ClusterStatus, ClusterSwitchRow,
    CountFlows, DescribeCounters, DrainNode, ErrorKind, FlowPage, FlowRow, FollowEvents,
    ForgetIdentity, GetCluster, GetCounters, GetSharedConfig, GetStatus, GetTopology, GroupKind,
    JudgeRelay, LinkRow, ListApps, ListBlocked, ListCircuits, ListClusterSwitches, ListEvents,
    ListFlows, ListGroups, ListHosts, ListIdentities, ListLatencies, ListLinks, ListMeters,
    ListOrphans, ListPorts, ListQueues, ListRelays, ListReservations, ListStatic, ListSwitches,
    ListTasks, MessageBytes, MeterUnit, MoveSwitch, NodeRole, Operator, Page, PortState,
    QueryError, RelayVerdict, Release, Reload, Request, ReservationRow, ReservationState, Reserve,
    Rows, SendMessages, SetSharedConfig, SetStatic, StaticBand, StaticBucket, StaticEntry,
    StaticFlow, StaticGroup, StaticMeter, SwitchRef, Unblock,
};
use serde_json::json;

#[test]
fn requests_are_written_and_read_in_one_form() {
    let flows = ListFlows {
        switch: SwitchRef::Dpid(Dpid(0xa1)),
        app: Some("routing".to_owned()),
        page: Page::new(20, 10).unwrap(),
    };
    let reserve = Reserve {
        from: "10.0.0.1".to_owned(),
        to: "a1:4".to_owned(),
        rate_kbps: 10_000,
        queue: None,
        wait_ms: 0,
    };
    let page = json!({"skip": 20, "limit": 10});
    let first = json!({"skip": 0, "limit": 1000});
    for (request, form) in [
        (Request::from(GetStatus {}), json!({"get_status": {}})),
        (
            flows.into(),
            json!({"list_flows": {"switch": "00000000000000a1", "app": "routing", "page": page}}),
        ),
        (CountFlows::default().into(), json!({"count_flows": {"switch": null, "page": first}})),
        (
            reserve.into(),
            json!({"reserve": {
                "from": "10.0.0.1", "to": "a1:4", "rate_kbps": 10_000, "queue": null, "wait_ms": 0
            }}),
        ),
        (Release { id: 7 }.into(), json!({"release": {"id": 7}})),
    ] {
        assert_eq!(serde_json::to_value(&request).unwrap(), form);
        assert_eq!(form.as_object().unwrap().keys().next().unwrap(), request.name());
        assert_eq!(serde_json::from_value::<Request>(form).unwrap(), request);
    }
}

/// An order with an entry of each kind.
fn set_static() -> SetStatic {
    let entry = |name: &str| StaticEntry {
        name: name.to_owned(),
        switch: SwitchRef::Name("core-1".to_owned()),
        ttl_seconds: None,
        flow: None,
        group: None,
        meter: None,
    };
    let flow = StaticFlow { actions: "drop".to_owned(), ..StaticFlow::default() };
    let bucket = StaticBucket { weight: 1, actions: "output:1".to_owned(), ..Default::default() };
    let group = StaticGroup { id: 7, kind: GroupKind::Select, buckets: vec![bucket] };
    let band = StaticBand { rate: 1000, burst: 0, dscp_remark: Some(1) };
    let meter = StaticMeter { id: 5, unit: MeterUnit::Kbps, bands: vec![band] };
    SetStatic {
        owner: None,
        entries: vec![
            StaticEntry { flow: Some(flow), ..entry("f") },
            StaticEntry { group: Some(group), ..entry("g") },
            StaticEntry { meter: Some(meter), ttl_seconds: Some(60), ..entry("m") },
        ],
        remove: vec!["old".to_owned()],
        replace: true,
    }
}

#[test]
fn static_entries_are_written_in_one_form() {
    let form = json!({
        "owner": null, "remove": ["old"], "replace": true,
        "entries": [
            {"name": "f", "switch": "core-1",
             "flow": {"table": 0, "priority": 2048, "match": "any", "actions": "drop"}},
            {"name": "g", "switch": "core-1",
             "group": {"id": 7, "type": "select", "buckets": [{"weight": 1, "actions": "output:1"}]}},
            {"name": "m", "switch": "core-1", "ttl_seconds": 60,
             "meter": {"id": 5, "unit": "kbps", "bands": [{"rate": 1000, "burst": 0, "dscp_remark": 1}]}},
        ],
    });
    assert_eq!(serde_json::to_value(set_static()).unwrap(), form);
    let wrong = json!({"entries": [{"name": "f", "switch": "a1", "flow": {"nonsense": 1}}]});
    let error = serde_json::from_value::<SetStatic>(wrong).unwrap_err().to_string();
    assert!(error.contains("unknown field `nonsense`"), "{error}");
}

#[test]
fn every_request_is_read_as_it_was_written() {
    let (switch, page) = (SwitchRef::Name("core-1".to_owned()), Page::new(3, 4).unwrap());
    let host = "10.0.0.7".to_owned();
    let message = MessageBytes(vec![4, 20, 0, 8, 0, 0, 0, 1]);
    let requests = [
        Request::from(GetStatus {}),
        ListSwitches { switch: None, page }.into(),
        ListPorts { switch: Some(switch.clone()), page }.into(),
        ListQueues { switch: Some(switch.clone()), port: Some(Port(3)), page }.into(),
        ListHosts { switch: Some(switch.clone()), page }.into(),
        ListApps {}.into(),
        ListTasks { page }.into(),
        GetCounters {}.into(),
        DescribeCounters {}.into(),
        ListLatencies {}.into(),
        GetTopology {}.into(),
        ListLinks { page }.into(),
        ListRelays { page }.into(),
        JudgeRelay {
            from: "core-1:4".parse().unwrap(),
            to: "a2:LOCAL".parse().unwrap(),
            verdict: RelayVerdict::Link,
        }
        .into(),
        ListEvents { kind: Some("link_down".to_owned()), alarming: true, open: true, page }.into(),
        FollowEvents { after: Some("1-7".to_owned()), wait_ms: 5 }.into(),
        ListFlows { switch: switch.clone(), app: None, page }.into(),
        ListGroups { switch: switch.clone(), page }.into(),
        ListMeters { switch: switch.clone(), page }.into(),
        CountFlows { switch: None, page }.into(),
        ListOrphans { switch: Some(switch.clone()), app: Some("bandwidth".to_owned()), page }
            .into(),
        CleanFlows { switch: Some(switch.clone()), app: Some("bandwidth".to_owned()) }.into(),
        Block { host: host.clone() }.into(),
        Unblock { host: host.clone() }.into(),
        ListBlocked { page }.into(),
        Reserve { from: host.clone(), to: host, rate_kbps: 9, queue: None, wait_ms: 5 }.into(),
        Release { id: 7 }.into(),
        ListReservations { page }.into(),
        ListCircuits { page }.into(),
        set_static().into(),
        ListStatic { name: None, switch: None, owner: Some("alice".to_owned()), page }.into(),
        AskSwitch { switch: switch.clone(), request: message.clone() }.into(),
        SendMessages { switch: switch.clone(), messages: vec![message.clone(), message] }.into(),
        ListIdentities { page }.into(),
        ForgetIdentity { switch }.into(),
        GetCluster {}.into(),
        ListClusterSwitches { page }.into(),
        MoveSwitch { switch: SwitchRef::Dpid(Dpid(0xa1)), node: "b".to_owned() }.into(),
        DrainNode { draining: true }.into(),
        BalanceCluster {}.into(),
        GetSharedConfig {}.into(),
        SetSharedConfig {
            text: "log_level: debug\n".to_owned(),
            generation: Some(4),
            dry_run: true,
        }
        .into(),
        Reload { dry_run: true }.into(),
    ];
    let names: Vec<_> = requests.iter().map(Request::name).collect();
    assert_eq!(names, Request::NAMES, "each request once");
    for request in requests {
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request, "{text}");
    }
    assert!(ListPorts::default().switch.is_none());
    let all = json!({"list_ports": {"switch": null}});
    assert_eq!(serde_json::from_value::<Request>(all).unwrap(), ListPorts::default().into());
}

#[test]
fn an_answer_of_a_newer_controller_stays_readable() {
    let error = json!({"kind": "of_tomorrow", "message": "no", "hint": "yes"});
    let error: QueryError = serde_json::from_value(error).unwrap();
    assert_eq!((error.kind, &*error.message), (ErrorKind::Unknown, "no"));
    let state = |text| serde_json::from_value::<PortState>(json!(text)).unwrap();
    assert_eq!((state("link_down"), state("dormant")), (PortState::LinkDown, PortState::Unknown));
    let state = serde_json::from_value::<ReservationState>(json!("moving")).unwrap();
    assert_eq!(state, ReservationState::Unknown);
}

#[test]
fn fields_missing_from_a_request_have_their_defaults() {
    let read = |form| serde_json::from_value::<Request>(form);
    let flows = read(json!({"list_flows": {"switch": "core-1"}})).unwrap();
    let switch = SwitchRef::Name("core-1".to_owned());
    assert_eq!(flows, ListFlows { switch, app: None, page: Page::default() }.into());
    assert_eq!(read(json!({"list_hosts": {}})).unwrap(), ListHosts::default().into());
    for (form, wrong) in [
        (json!({"list_flows": {}}), "missing field `switch`"),
        (json!({"list_flows": {"switch": "a1", "limit": 3}}), "unknown field `limit`"),
        (json!({"flows": {}}), "unknown variant `flows`"),
        (json!({"release": {"id": -1}}), "integer `-1`"),
    ] {
        let error = read(form).unwrap_err().to_string();
        assert!(error.contains(wrong), "{error}");
    }
}

#[test]
fn answers_have_the_text_that_operators_write() {
    let link = LinkRow {
        from_dpid: Dpid(1),
        from_name: Some("core-1".to_owned()),
        from_port: Port(4),
        to_dpid: Dpid(0xb2),
        to_name: None,
        to_port: Port::LOCAL,
        up_seconds: 3,
        rate_kbps: None,
        both_ways: true,
    };
    let form = json!({
        "total": 9, "skipped": 8, "rows": [{
            "from_dpid": "0000000000000001", "from_name": "core-1", "from_port": "4",
            "to_dpid": "00000000000000b2", "to_name": null, "to_port": "LOCAL",
            "up_seconds": 3, "rate_kbps": null, "both_ways": true,
        }],
    });
    let links = Rows { total: 9, skipped: 8, rows: vec![link], incomplete: None };
    assert_eq!(serde_json::to_value(Answer::ListLinks(links.clone())).unwrap(), form);
    assert_eq!(serde_json::from_value::<Rows<LinkRow>>(form).unwrap(), links);

    let reservation = ReservationRow {
        id: 7,
        from: "10.0.0.1".to_owned(),
        to: "10.0.0.2".to_owned(),
        rate_kbps: 1000,
        queue: None,
        state: ReservationState::Installed,
        why: None,
        path: vec!["core-1:2".to_owned()],
    };
    let form = serde_json::to_value(&reservation).unwrap();
    assert_eq!((&form["state"], &form["path"]), (&json!("installed"), &json!(["core-1:2"])));
    assert_eq!(serde_json::from_value::<ReservationRow>(form).unwrap(), reservation);

    let flow = FlowRow {
        table: 0,
        priority: 100,
        app: None,
        cookie: "00000000000000ff".to_owned(),
        matching: "in_port=1".to_owned(),
        actions: "output:2".to_owned(),
        packets: Some(5),
        bytes: None,
        age_seconds: 60,
        idle_timeout_seconds: 0,
        hard_timeout_seconds: 0,
    };
    let page = FlowPage {
        dpid: Dpid(1),
        name: None,
        version: Version::V1_3,
        flows: Rows::of([flow], Page::default()),
    };
    let form = serde_json::to_value(&page).unwrap();
    assert_eq!((&form["version"], &form["rows"][0]["match"]), (&json!("1.3"), &json!("in_port=1")));
    assert_eq!(serde_json::from_value::<FlowPage>(form).unwrap(), page);
}

#[test]
fn a_switch_of_a_cluster_has_its_masters_and_its_role() {
    let row = ClusterSwitchRow {
        dpid: Dpid(0xa1),
        name: Some("core-1".to_owned()),
        masters: vec!["b".to_owned(), "a".to_owned()],
        epoch: Some(7),
        obeys: Some("b".to_owned()),
        placed: true,
        role: NodeRole::Standby,
    };
    let form = json!({
        "dpid": "00000000000000a1", "name": "core-1", "masters": ["b", "a"], "epoch": 7, "obeys": "b",
        "placed": true, "role": "standby",
    });
    assert_eq!(serde_json::to_value(&row).unwrap(), form);
    assert_eq!(serde_json::from_value::<ClusterSwitchRow>(form).unwrap(), row);
    // A node of an earlier release counts nothing, and knows no order.
    let old =
        json!({"dpid": "00000000000000a1", "masters": ["b"], "obeys": "b", "role": "standby"});
    assert!(!serde_json::from_value::<ClusterSwitchRow>(old).unwrap().placed);
    let status = json!({"name": "campus", "node": "a", "serving": true, "nodes": [], "store": {"reachable": true}});
    let status: ClusterStatus = serde_json::from_value(status).unwrap();
    assert_eq!((status.epoch, status.store.revision, status.requests.sent), (0, None, 0));
    let order = json!({"move_switch": {"switch": "core-1", "node": "b"}});
    let order: Request = serde_json::from_value(order).unwrap();
    assert!(order.is_order() && !Request::from(GetCluster {}).is_order());
    assert_eq!(ErrorKind::NoCluster.name(), "no_cluster");
}

#[test]
fn errors_name_the_field() {
    let error = QueryError::not_found("switch", "switch s1 is not connected");
    let form = json!({
        "kind": "not_found", "field": "switch", "message": "switch s1 is not connected",
    });
    assert_eq!(serde_json::to_value(&error).unwrap(), form);
    assert_eq!(serde_json::from_value::<QueryError>(form).unwrap(), error);
}

#[test]
fn an_answer_to_another_request_is_an_error_of_the_operator() {
    struct Confused;
    impl Operator for Confused {
        fn answer(&self, _: Request) -> Result<Answer, QueryError> {
            Ok(Answer::ListApps(Vec::new()))
        }
    }
    let operator: &dyn Operator = &Confused;
    assert_eq!(operator.ask(ListApps {}).unwrap(), []);
    assert_eq!(operator.ask(GetStatus {}).unwrap_err().kind, ErrorKind::Internal);
}
