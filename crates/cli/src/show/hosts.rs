//! The hosts.

use std::fmt::Write;

use bellrock_query::HostRow;

use super::{duration, named, named_table, printable};

/// Formats the hosts as text.
pub(crate) fn hosts(hosts: &[HostRow]) -> String {
    if hosts.is_empty() {
        return "no host has been seen\n".to_owned();
    }
    let row = |host: &HostRow| {
        let remarks = [(host.flapping, "flapping"), (host.guessed, "port guessed")];
        let remarks = remarks.iter().filter(|(is_so, _)| *is_so).map(|(_, remark)| *remark);
        vec![
            host.mac.to_string(),
            host.vlan.map_or_else(|| "-".to_owned(), |vlan| vlan.to_string()),
            named(host.dpid, host.switch_name.as_deref()),
            host.port.to_string(),
            host.age_seconds.map_or_else(|| "-".to_owned(), duration),
            host.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
            host.apps.iter().map(|app| printable(app)).collect::<Vec<_>>().join(","),
            remarks.collect::<Vec<_>>().join(", "),
        ]
    };
    let head = ["MAC", "VLAN", "SWITCH", "PORT", "SEEN AGO", "ADDRESSES", "APPS", ""];
    let mut text = named_table(
        &head,
        &["APPS", "VLAN", "SEEN AGO"],
        hosts.iter().map(|host| (host.name.as_deref(), row(host))),
    );
    if hosts.iter().any(|host| host.guessed) {
        let _ = writeln!(
            text,
            "(a port is guessed where host tracking does not know the host; --services hosts finds them at ports \
             without a link)"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use bellrock_api::{Dpid, MacAddr, Port};

    use super::*;

    #[test]
    fn a_guess_says_what_would_make_it_certain() {
        let mut row = HostRow {
            dpid: Dpid(1),
            switch_name: None,
            port: Port(1),
            mac: MacAddr([2, 0, 0, 0, 0, 1]),
            name: None,
            vlan: None,
            addresses: vec!["10.0.0.1".parse().unwrap()],
            age_seconds: Some(5),
            flapping: false,
            guessed: false,
            apps: vec!["hosts".to_owned(), "learning".to_owned()],
        };
        let text = hosts(std::slice::from_ref(&row));
        let line =
            "02:00:00:00:00:01  -     0000000000000001  1     5s        10.0.0.1   hosts,learning";
        assert!(
            text.lines().nth(1).is_some_and(|row| row.starts_with(line))
                && !text.contains("guessed"),
            "{text}"
        );
        row.guessed = true;
        (row.name, row.switch_name) = (Some("web".to_owned()), Some("core-1".to_owned()));
        let text = hosts(&[row]);
        assert!(text.contains("web   02:00:00:00:00:01  -     core-1  1 "), "{text}");
        assert!(text.contains("port guessed") && text.contains("--services hosts finds them"));
    }
}
