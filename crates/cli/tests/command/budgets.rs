//! Budgets of apps: `bellrock apps` shows which app has exceeded which, and an event names it.

use bellrock::Controller;
use bellrock::app::{Allowance, AllowedWrites};
use bellrock::apps::{Learning, LearningSettings};
use bellrock_session::Versions;
use bellrock_tables::Budget;
use serde_json::Value;

use crate::one_switch::OneSwitch;
use crate::running::{Place, free_address, until};

/// Less than the smallest table takes.
const TOO_FEW_BYTES: usize = 100;

/// The column OVER BUDGET of the only app.
fn over_budget(asked: &mut OneSwitch) -> String {
    let text = asked.text("apps", &[]);
    let lines: Vec<&str> = text.lines().collect();
    let [from, to] = ["OVER BUDGET", "LAST ERROR"].map(|head| lines[0].find(head).unwrap());
    lines[1].get(from..to).unwrap_or(&lines[1][from..]).trim().to_owned()
}

fn has_event(asked: &mut OneSwitch, name: &str, text: &str) -> bool {
    let events = asked.json("events", &[]);
    let is_it = |row: &Value| {
        let is_alarm = row["event"] == "app_event" && row["alarming"] == true;
        is_alarm && row["text"].as_str().unwrap().contains(&format!("{name}: {text}"))
    };
    events.as_array().unwrap().iter().any(is_it)
}

#[test]
fn an_app_whose_tables_get_no_memory_is_named() {
    let address = free_address();
    let mut asked = OneSwitch::new("budgets-tables", address, Versions::ALL);
    let all = Budget::new(1 << 20);
    let tables = all.share(TOO_FEW_BYTES);
    let app = Learning::new(LearningSettings::default(), &tables);
    let builder = Controller::builder().app(app).app_tables("learning", &tables).tables(&all);
    let controller = asked.start(builder.listen(address));
    asked.connect(&controller);
    assert_eq!(over_budget(&mut asked), "-");
    asked.ping();
    let row = asked.json("apps", &[])[0].clone();
    assert!(row["tables"]["refusals"].as_u64() > Some(0), "{row}");
    assert_eq!(
        (&row["tables"]["used_bytes"], &row["tables"]["limit_bytes"]),
        (&0.into(), &100.into())
    );
    assert!(row["messages"].as_u64() >= Some(6), "it floods requests and replies: {row}");
    assert!(over_budget(&mut asked).ends_with("times no table memory"));
    until("an event names the app", || {
        has_event(&mut asked, "table_memory_refused", "the app learning gets no more memory")
    });
    controller.stop();
}

#[test]
fn an_app_that_is_refused_messages_is_named() {
    let address = free_address();
    let mut asked = OneSwitch::new("budgets-refused", address, Versions::ALL);
    let reads = Allowance { write: AllowedWrites::None, ..Allowance::default() };
    let builder = Controller::builder().app(Learning::default()).allow("learning", reads);
    let controller = asked.start(builder.listen(address));
    asked.connect(&controller);
    until("packets that it may not answer", || {
        let topology = asked.net.network().topology();
        let [from, to] = ["h1", "h2"].map(|name| topology.host(name).unwrap());
        asked.net.network_mut().ping(from, to, Default::default()).unwrap();
        over_budget(&mut asked).ends_with(" refused")
    });
    until("an event names the app", || {
        has_event(&mut asked, "refused_to_app", "the app learning is not allowed to")
    });
    controller.stop();
}

#[test]
fn the_table_memory_of_an_app_is_that_of_its_part_of_allow() {
    let place = Place::new("budgets-config");
    let file = place.write(
        "bellrock.yaml",
        "apps: [learning]\nallow: {learning: {table_memory_bytes: 2 MiB}}\n",
    );
    let controller = crate::running::Controller::start(&place, &["--config", &file]);
    let apps = controller.ask("apps");
    assert_eq!(apps[0]["tables"]["limit_bytes"], 2 << 20, "{apps}");
    controller.stop();
}
