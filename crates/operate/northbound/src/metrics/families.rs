//! Families of series: their names, labels and meanings.
//!
//! Families that mean what Faucet's mean have its names and labels (`dp_status`, `port_status`,
//! `of_port_rx_bytes` with `dp_id`, `dp_name`, `port`, `port_description`), so that its dashboards
//! of ports work. All others begin with `bellrock_`.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use bellrock_query::{
    AppRow, CounterMeaning, CounterPart, GaugeNumbers, LatencyRow, PortCounters, PortState,
};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeGaugeValue, EncodeMetric, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::readings::Readings;
use super::statistics::Answers;
use crate::limits::MAX_STATUS_PORTS;

/// Maximum number of ports whose drops are reported. Further ones are left out.
const MAX_PORTS_WITH_DROPS: usize = 10_000;

/// All that a scrape reports.
#[derive(Debug)]
pub(super) struct Families {
    pub(super) readings: Readings,
    pub(super) polled: Answers,
    /// End of the server's certificate, in seconds since 1970.
    pub(super) expiry: Option<i64>,
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut output = Output { encoder: &mut encoder, names: HashSet::new() };
        self.controller(&mut output)?;
        self.switches(&mut output)?;
        self.ports(&mut output)?;
        self.flows(&mut output)?;
        self.apps(&mut output)?;
        self.cluster(&mut output)?;
        self.latencies(&mut output)?;
        self.counters(&mut output)
    }
}

pub(super) type Labels = Vec<(&'static str, String)>;

/// Writes families, each once.
pub(super) struct Output<'e, 'w> {
    encoder: &'e mut DescriptorEncoder<'w>,
    names: HashSet<String>,
}

impl Output<'_, '_> {
    pub(super) fn gauge<N: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels, N)>,
    ) -> fmt::Result {
        let values = values.into_iter().map(|(labels, value)| (labels, ConstGauge::new(value)));
        self.family(name, help, MetricType::Gauge, values)
    }

    pub(super) fn counter(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels, u64)>,
    ) -> fmt::Result {
        let values = values.into_iter().map(|(labels, value)| (labels, ConstCounter::new(value)));
        self.family(name, help, MetricType::Counter, values)
    }

    /// A family without values, or with the name of an earlier one, is left out.
    fn family<M: EncodeMetric>(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        values: impl Iterator<Item = (Labels, M)>,
    ) -> fmt::Result {
        let mut values = values.peekable();
        if values.peek().is_none() || !self.names.insert(name.to_owned()) {
            return Ok(());
        }
        let mut family = self.encoder.encode_descriptor(name, help, None, kind)?;
        for (labels, value) in values {
            if labels.is_empty() {
                return value.encode(family);
            }
            value.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

/// The value of a family without labels, which has only one.
pub(super) fn alone<N>(value: N) -> [(Labels, N); 1] {
    [(Vec::new(), value)]
}

/// The labels of a switch. A switch without a name has its datapath id as its name.
fn of_switch(dpid: u64, name: Option<&str>) -> Labels {
    let name = name.map_or_else(|| format!("{dpid:016x}"), str::to_owned);
    vec![("dp_id", format!("{dpid:#x}")), ("dp_name", name)]
}

fn of_port(dpid: u64, switch: Option<&str>, port: impl ToString, name: &str) -> Labels {
    let mut labels = of_switch(dpid, switch);
    labels.extend([("port", port.to_string()), ("port_description", name.to_owned())]);
    labels
}

impl Families {
    fn controller(&self, output: &mut Output<'_, '_>) -> fmt::Result {
        let Readings { status, topology, .. } = &self.readings;
        let version = vec![("version", status.version.clone())];
        output.gauge(
            "bellrock_build_info",
            "Always 1. Its label is the version.",
            [(version, 1u64)],
        )?;
        output.gauge(
            "bellrock_uptime_seconds",
            "Time since the start of the controller.",
            alone(status.uptime_seconds),
        )?;
        output.gauge("bellrock_workers", "Number of workers.", alone(status.workers as u64))?;
        output.gauge(
            "bellrock_connections",
            "Number of connections, with or without a finished handshake.",
            alone(status.connections as u64),
        )?;
        output.counter(
            "bellrock_connections_accepted",
            "Connections accepted.",
            alone(status.accepted),
        )?;
        output.counter(
            "bellrock_connections_refused",
            "Connections closed at once because of a limit.",
            alone(status.refused),
        )?;
        output.gauge(
            "bellrock_hosts",
            "Number of hosts that host tracking knows.",
            alone(status.hosts as u64),
        )?;
        output.gauge(
            "bellrock_links",
            "Number of links between switches, each direction by itself.",
            alone(topology.links.len() as u64),
        )?;
        output.gauge(
            "bellrock_links_one_way",
            "Number of links whose other direction is down.",
            alone(topology.links.iter().filter(|link| !link.both_ways).count() as u64),
        )?;
        // An app can give alarms about several things the same text.
        let alarms = self.readings.alarms.iter().map(|alarm| (&alarm.event, &alarm.text));
        let alarms = alarms
            .collect::<BTreeSet<_>>()
            .into_iter()
            .map(|(event, text)| (vec![("event", event.clone()), ("text", text.clone())], 1u64));
        output.gauge(
            "bellrock_alarm",
            "1 while an alarm is open: for a link, a named port or a switch that is down, for example.",
            alarms,
        )?;
        output.gauge(
            "bellrock_topology_settled",
            "1 if discovery has probed every port.",
            alone(u64::from(topology.settled)),
        )?;
        if let Some(memory) = &status.table_memory {
            let values = [
                ("used", memory.table_memory_used_bytes),
                ("limit", memory.table_memory_limit_bytes),
                ("huge_page", memory.table_memory_huge_page_bytes),
            ];
            for (name, bytes) in values {
                let help = match name {
                    "used" => "Memory that the tables of the apps use.",
                    "limit" => "Maximum memory of the tables of the apps.",
                    _ => {
                        "Memory of these tables that the kernel was advised to keep in huge pages."
                    }
                };
                output.gauge(
                    &format!("bellrock_table_memory_{name}_bytes"),
                    help,
                    alone(bytes as u64),
                )?;
            }
        }
        output.gauge(
            "bellrock_tls_certificate_expiry_timestamp_seconds",
            "End of the controller's certificate towards switches, in seconds since 1970.",
            status.tls_certificate_expiry.map(|end| (Vec::new(), end)),
        )?;
        output.gauge(
            "bellrock_tls_crl_expiry_timestamp_seconds",
            "Time by which the list of revoked certificates of switches is to be replaced, in seconds since 1970.",
            status.tls_crl_expiry.map(|end| (Vec::new(), end)),
        )?;
        output.gauge(
            "bellrock_http_certificate_expiry_timestamp_seconds",
            "End of the HTTP server's certificate, in seconds since 1970.",
            self.expiry.map(|end| (Vec::new(), end)),
        )
    }

    fn switches(&self, output: &mut Output<'_, '_>) -> fmt::Result {
        let Readings { status, switches, .. } = &self.readings;
        let connected = switches.iter().map(|row| (of_switch(row.dpid.0, row.name.as_deref()), 1));
        let missing = status.missing_switches.iter().filter_map(|row| {
            let name = row.name.as_deref()?;
            Some((of_switch(row.dpid.0, Some(name)), 0u64))
        });
        output.gauge(
            "dp_status",
            "1 if the switch is connected, 0 if it has a name in the configuration and is not.",
            connected.chain(missing),
        )?;
        let info = switches.iter().map(|row| {
            let mut labels = of_switch(row.dpid.0, row.name.as_deref());
            labels.extend([
                ("openflow", row.version.to_string()),
                ("role", row.role.to_string()),
                ("manufacturer", row.manufacturer.clone()),
                ("hardware", row.hardware.clone()),
                ("software", row.software.clone()),
            ]);
            (labels, 1u64)
        });
        output.gauge("bellrock_switch_info", "Always 1. Its labels describe the switch.", info)?;
        output.gauge(
            "bellrock_switch_up_seconds",
            "Time since the switch came up, or since the controller stands by.",
            switches.iter().map(|row| (of_switch(row.dpid.0, row.name.as_deref()), row.up_seconds)),
        )?;
        output.gauge(
            "bellrock_switch_standby",
            "1 if the controller stands by at the switch.",
            switches
                .iter()
                .map(|row| (of_switch(row.dpid.0, row.name.as_deref()), u64::from(row.standby))),
        )?;
        output.gauge(
            "bellrock_switch_refused_flows",
            "Number of the controller's own flows that the switch refuses.",
            switches.iter().map(|row| {
                (of_switch(row.dpid.0, row.name.as_deref()), row.refused_flows.len() as u64)
            }),
        )?;
        output.gauge(
            "bellrock_switch_certificate_expiry_timestamp_seconds",
            "End of the certificate of a switch that connects by TLS, in seconds since 1970.",
            switches.iter().filter_map(|row| {
                let identity = row.identity.as_ref()?;
                Some((of_switch(row.dpid.0, row.name.as_deref()), identity.expiry))
            }),
        )?;
        let ports = switches.iter().flat_map(|row| {
            row.ports.iter().map(|port| {
                let labels = of_port(row.dpid.0, row.name.as_deref(), port.port, &port.name);
                (labels, u64::from(port.state == PortState::Up))
            })
        });
        let all_ports: usize = switches.iter().map(|row| row.ports.len()).sum();
        output.gauge(
            "port_status",
            "1 if the port carries packets.",
            ports.take(MAX_STATUS_PORTS),
        )?;
        output.gauge(
            "bellrock_ports_left_out",
            "Number of ports without `port_status`: the switches have too many.",
            alone(all_ports.saturating_sub(MAX_STATUS_PORTS) as u64),
        )?;
        let dropped = switches.iter().flat_map(|row| {
            row.ports.iter().filter(|port| port.packet_ins_dropped > 0).map(|port| {
                let labels = of_port(row.dpid.0, row.name.as_deref(), port.port, &port.name);
                (labels, port.packet_ins_dropped)
            })
        });
        output.counter(
            "bellrock_port_packet_ins_dropped",
            "Packet_ins of the port that were dropped: above the limit of the switch, or above its \
             share of an overloaded worker.",
            dropped.take(MAX_PORTS_WITH_DROPS),
        )
    }

    /// The counters of ports, as far as switches are asked for them. They are gauges, as Faucet's:
    /// a switch may begin at zero at any time, and a counter's name would end in `_total`.
    fn ports(&self, output: &mut Output<'_, '_>) -> fmt::Result {
        type Field = fn(&PortCounters) -> Option<u64>;
        let families: [(&str, &str, Field); 8] = [
            ("of_port_rx_packets", "Packets that the port has received.", |row| row.rx_packets),
            ("of_port_tx_packets", "Packets that the port has sent.", |row| row.tx_packets),
            ("of_port_rx_bytes", "Bytes that the port has received.", |row| row.rx_bytes),
            ("of_port_tx_bytes", "Bytes that the port has sent.", |row| row.tx_bytes),
            ("of_port_rx_dropped", "Packets dropped on receipt.", |row| row.rx_dropped),
            ("of_port_tx_dropped", "Packets dropped instead of sent.", |row| row.tx_dropped),
            ("of_port_rx_errors", "Receive errors of the port.", |row| row.rx_errors),
            ("of_port_tx_errors", "Transmit errors of the port.", |row| row.tx_errors),
        ];
        for (name, help, field) in families {
            let rows = self.polled.ports.iter().flat_map(|(dpid, rows)| {
                rows.iter().filter_map(move |row| {
                    let value = row.counters.as_ref().and_then(field)?;
                    let switch = row.switch_name.as_deref();
                    Some((of_port(*dpid, switch, row.port, &row.name), value))
                })
            });
            output.gauge(name, help, rows)?;
        }
        let left_out = self.polled.left_out.len() as u64;
        output.gauge(
            "bellrock_statistics_switches_left_out",
            "Number of switches whose ports are not reported, because there are too many.",
            (!self.polled.ports.is_empty() || left_out > 0).then(|| (Vec::new(), left_out)),
        )
    }

    fn flows(&self, output: &mut Output<'_, '_>) -> fmt::Result {
        let rows = self.polled.flows.iter().flat_map(|(dpid, row)| {
            row.apps.iter().map(move |app| {
                let mut labels = of_switch(*dpid, row.name.as_deref());
                let owner = app.app.clone().unwrap_or_else(|| "foreign".to_owned());
                labels.push(("owner", owner));
                (labels, app)
            })
        });
        let wanted = rows.clone().filter_map(|(labels, app)| Some((labels, app.wanted?)));
        output.gauge(
            "bellrock_flows_desired",
            "Number of flows of an app that should be in the switch.",
            wanted,
        )?;
        output.gauge(
            "bellrock_flows",
            "Number of flows in the switch, by the app that owns them.",
            rows.map(|(labels, app)| (labels, app.flows)),
        )
    }

    fn apps(&self, output: &mut Output<'_, '_>) -> fmt::Result {
        let Readings { apps, gauges, .. } = &self.readings;
        let of_app = |app: &str| vec![("app", app.to_owned())];
        output.gauge(
            "bellrock_app_disabled",
            "1 if the app gets no more events because its handlers panicked too often.",
            apps.iter().map(|app| (of_app(&app.name), u64::from(app.disabled))),
        )?;
        output.counter(
            "bellrock_app_handler_panics",
            "Panics of the app's handlers.",
            apps.iter().map(|app| (of_app(&app.name), app.panics)),
        )?;
        output.counter(
            "bellrock_app_handler_errors",
            "Errors that the app's handlers returned.",
            apps.iter().map(|app| (of_app(&app.name), app.errors)),
        )?;
        self.budgets_of_apps(output)?;
        for GaugeNumbers { name, about, numbers } in gauges {
            let values = numbers.iter().map(|(label, n)| (label.iter().cloned().collect(), *n));
            output.gauge(name, about, values)?;
        }
        Ok(())
    }

    /// Every counter of the controller, with its meaning.
    fn counters(&self, output: &mut Output<'_, '_>) -> fmt::Result {
        let Readings { counters, meanings, .. } = &self.readings;
        for row in meanings.iter().filter(|row| row.part == CounterPart::Switches) {
            let values = counters.switches.iter().filter_map(|switch| {
                let value = *switch.counters.get(&row.name)?;
                Some((of_switch(switch.dpid.0, switch.name.as_deref()), value))
            });
            output.counter(&format!("of_{}", row.name), &row.meaning, values)?;
        }
        for row in meanings.iter().filter(|row| row.part != CounterPart::Apps) {
            let (prefix, values): (_, Vec<_>) = match row.part {
                CounterPart::Workers => {
                    let workers = counters.workers.iter().enumerate();
                    let value = |(worker, counters): (usize, &BTreeMap<String, u64>)| {
                        Some((vec![("worker", worker.to_string())], *counters.get(&row.name)?))
                    };
                    ("", workers.filter_map(value).collect())
                }
                CounterPart::Tasks => {
                    let value = counters.tasks.get(&row.name);
                    ("", value.map(|value| (Vec::new(), *value)).into_iter().collect())
                }
                CounterPart::Http => {
                    let value = counters.http.get(&row.name);
                    ("http_", value.map(|value| (Vec::new(), *value)).into_iter().collect())
                }
                _ => continue,
            };
            output.counter(&format!("bellrock_{prefix}{}", row.name), &row.meaning, values)?;
        }
        self.counters_of_apps(output)
    }

    /// How long things take, as histograms.
    fn latencies(&self, output: &mut Output<'_, '_>) -> fmt::Result {
        for row in &self.readings.latencies {
            let name = format!("bellrock_{}_seconds", metric_name(&row.name));
            let histogram = [(Vec::new(), HistogramOf(row))].into_iter();
            output.family(&name, &row.meaning, MetricType::Histogram, histogram)?;
        }
        Ok(())
    }

    /// The same counter of several apps is one family, with the first meaning that is known.
    /// How often apps have exceeded their budgets, and what they have used.
    fn budgets_of_apps(&self, output: &mut Output<'_, '_>) -> fmt::Result {
        type Field = fn(&AppRow) -> Option<u64>;
        let families: [(&str, &str, Field); 5] = [
            (
                "bellrock_app_events_late",
                "Events for which the app's handlers took longer than handler_time.",
                |app| Some(app.blocked),
            ),
            (
                "bellrock_app_refused",
                "Messages and tasks that the app is not allowed to send or run.",
                |app| Some(app.refused),
            ),
            ("bellrock_app_messages", "Messages that the app has sent to switches.", |app| {
                Some(app.messages)
            }),
            (
                "bellrock_app_message_excess_seconds",
                "Seconds in which the app sent more messages than its budget allows.",
                |app| Some(app.message_excesses),
            ),
            (
                "bellrock_app_table_memory_refusals",
                "How often a table of the app got no more memory.",
                |app| app.tables.map(|tables| tables.refusals),
            ),
        ];
        let apps = &self.readings.apps;
        for (name, help, field) in families {
            let values = apps.iter().filter_map(|app| {
                let labels = vec![("app", app.name.clone())];
                Some((labels, field(app)?))
            });
            output.counter(name, help, values)?;
        }
        let used = apps.iter().filter_map(|app| {
            let labels = vec![("app", app.name.clone())];
            Some((labels, app.tables?.used_bytes))
        });
        output.gauge(
            "bellrock_app_table_memory_used_bytes",
            "Memory that the tables of the app have.",
            used,
        )
    }

    fn counters_of_apps(&self, output: &mut Output<'_, '_>) -> fmt::Result {
        let Readings { counters, meanings, .. } = &self.readings;
        let mut families = BTreeMap::<&str, Vec<(Labels, u64)>>::new();
        for (app, values) in &counters.apps {
            for (name, value) in values {
                families.entry(name).or_default().push((vec![("app", app.clone())], *value));
            }
        }
        for (name, values) in families {
            let meaning = |row: &&CounterMeaning| row.part == CounterPart::Apps && row.name == name;
            let meaning = meanings.iter().find(meaning).map(|row| row.meaning.as_str());
            let help = meaning.unwrap_or("A counter that its app does not describe.");
            output.counter(&format!("bellrock_app_{}", metric_name(name)), help, values)?;
        }
        Ok(())
    }
}

/// The histogram of a row.
struct HistogramOf<'r>(&'r LatencyRow);

impl EncodeMetric for HistogramOf<'_> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let HistogramOf(row) = self;
        let mut before = 0;
        // Each bucket has what the previous one does not have.
        let mut own = |count: u64| count.saturating_sub(std::mem::replace(&mut before, count));
        let mut buckets: Vec<(f64, u64)> =
            row.buckets.iter().map(|bucket| (bucket.le_seconds, own(bucket.count))).collect();
        buckets.push((f64::INFINITY, own(row.count)));
        encoder.encode_histogram::<NoLabelSet>(row.sum_seconds, row.count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

/// A name with only what Prometheus allows in names.
fn metric_name(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.chars().map(allowed).collect()
}
