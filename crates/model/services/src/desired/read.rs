//! Reads the tables of a switch.
//!
//! A switch may not answer, refuse the request, or send an unreadable answer
//! ([`RequestError::is_none`]). Then it has none of that kind as far as is known: wanted entries
//! are installed, and confirmed ones stay known. Groups and meters are requested only from switches
//! in which the app wants, or has wanted, some: many switches answer no request about them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

use bellrock_api::openflow::{
    Band, FlowStatsRequest, GroupDesc, Meter, MeterConfig, MeterFlags, RequestBody,
};
use bellrock_api::{
    Cookie, Dpid, FlowKey, FlowNormalizer, Match, Network, Reply, ReplyBody, ReportedFlow,
    RequestError, RequestFuture, Version,
};

/// An app's entries in a switch, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct KnownEntries {
    pub(super) flows: HashMap<FlowKey, ReportedFlow>,
    /// All groups and meters, of any app, in the form for comparison.
    pub(super) groups: BTreeMap<u32, String>,
    pub(super) meters: BTreeMap<u32, String>,
    /// Number of flows of no app.
    pub(super) foreign: usize,
    /// Number of flows in the report, of any owner.
    pub(super) in_report: usize,
    /// Flows under other cookies with keys of [`FlowSelection::AllAnd`].
    pub(super) strangers: HashMap<FlowKey, ReportedFlow>,
    /// Why the switch does not report its flows, if it does not.
    pub(super) unreported: Option<RequestError>,
    /// Kinds that were requested besides flows.
    pub(super) requested: Objects,
    /// Kinds of `requested` that the switch has reported.
    pub(super) reported: Objects,
}

impl KnownEntries {
    /// Keeps the entries known before, of kinds that the switch does not report.
    pub(super) fn keep_unreported(&mut self, before: KnownEntries) {
        if self.unreported.is_some() {
            self.flows = before.flows;
        }
        if !self.reported.groups {
            self.groups = before.groups;
        }
        if !self.reported.meters {
            self.meters = before.meters;
        }
    }
}

/// Kinds of entries besides flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Objects {
    pub(super) groups: bool,
    pub(super) meters: bool,
}

impl Objects {
    /// Whether these include all of `others`.
    pub(super) fn include(self, others: Objects) -> bool {
        (self.groups || !others.groups) && (self.meters || !others.meters)
    }
}

/// Which flows to request from a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FlowSelection {
    /// The flows of all apps, to count those of no app.
    All,
    /// The same, and flows with these keys are kept, whatever their cookies.
    AllAnd(Arc<HashSet<FlowKey>>),
    /// The flows of this app, if the version can select them (1.3). In 1.0 a switch reports all.
    Own,
}

/// Returns the flows in a switch that belong to the app of this `network`, by key.
///
/// # Errors
/// [`RequestError`].
pub async fn reported_flows(
    network: &Network,
    dpid: Dpid,
    version: Version,
) -> Result<HashMap<FlowKey, ReportedFlow>, RequestError> {
    let reply = request_flows(network, dpid, version, &FlowSelection::Own).await?;
    let mut known = KnownEntries::default();
    known.read_flows(&reply, network, version, &FlowSelection::Own)?;
    Ok(known.flows)
}

/// Reads the tables of a switch.
pub(super) async fn read(
    network: &Network,
    dpid: Dpid,
    version: Version,
    selection: FlowSelection,
    objects: Objects,
) -> Result<KnownEntries, RequestError> {
    let mut known = KnownEntries { requested: objects, ..KnownEntries::default() };
    let flows = request_flows(network, dpid, version, &selection);
    if version.has_groups() || version.has_meters() {
        // Sends both requests before it waits for the first.
        let has_groups = version.has_groups() && objects.groups;
        let groups = has_groups.then(|| network.request(dpid, RequestBody::GroupDesc));
        let all = RequestBody::MeterConfig(Meter::ALL);
        let has_meters = version.has_meters() && objects.meters;
        let meters = has_meters.then(|| network.request(dpid, all));
        if let Some(groups) = groups
            && let Some(reply) = reply_or_none(groups.await)?
            && let Ok(ReplyBody::GroupDesc(groups)) = reply.body()
        {
            known.reported.groups = true;
            known.groups = groups.iter().map(|group| (group.group, group_text(&group))).collect();
        }
        if let Some(meters) = meters
            && let Some(reply) = reply_or_none(meters.await)?
            && let Ok(ReplyBody::MeterConfig(meters)) = reply.body()
        {
            known.reported.meters = true;
            known.meters = meters.iter().map(|meter| (meter.meter, meter_text(&meter))).collect();
        }
    }
    let reply = match flows.await {
        // There may be very many foreign flows; then they are not counted.
        Err(RequestError::TooLarge)
            if selection != FlowSelection::Own && version.selects_by_cookie() =>
        {
            request_flows(network, dpid, version, &FlowSelection::Own).await?
        }
        Err(why) if why.is_none() => {
            known.unreported = Some(why);
            return Ok(known);
        }
        reply => reply?,
    };
    known.read_flows(&reply, network, version, &selection)?;
    Ok(known)
}

/// Requests flows. The request is sent at once.
fn request_flows(
    network: &Network,
    dpid: Dpid,
    version: Version,
    selection: &FlowSelection,
) -> RequestFuture {
    let any = Match::any();
    let mut request = FlowStatsRequest::all(&any);
    if *selection == FlowSelection::Own && version.selects_by_cookie() {
        (request.cookie, request.cookie_mask) = (network.cookie().with(0), Cookie::MASK);
    }
    network.request(dpid, RequestBody::Flow(request))
}

impl KnownEntries {
    /// Takes the app's flows of a reply, and the number of flows of no app.
    fn read_flows(
        &mut self,
        reply: &Reply,
        network: &Network,
        version: Version,
        selection: &FlowSelection,
    ) -> Result<(), RequestError> {
        let stats = match reply.body() {
            Ok(ReplyBody::Flow(stats)) => stats,
            Ok(_) => return Err(RequestError::Unanswered),
            Err(error) => return Err(RequestError::Unreadable(error)),
        };
        let mut normalizer = FlowNormalizer::new(version);
        for flow in stats {
            self.in_report += 1;
            // An own flow that cannot be compared counts as foreign. The other flows stay known.
            let is_own = network.cookie().owns_flow(&flow);
            match is_own.then(|| normalizer.of_stats(&flow)) {
                Some(Ok(reported)) => {
                    self.flows.insert(reported.key.clone(), reported);
                }
                Some(Err(_)) => self.foreign += 1,
                None => {
                    self.foreign += usize::from(network.app_of_flow(&flow).is_none());
                    if let FlowSelection::AllAnd(keys) = selection
                        && let Ok(other) = normalizer.of_stats(&flow)
                        && keys.contains(&other.key)
                    {
                        self.strangers.insert(other.key.clone(), other);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns a reply, or `None` if the switch gives none.
fn reply_or_none<T>(reply: Result<T, RequestError>) -> Result<Option<T>, RequestError> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(why) if why.is_none() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns a group in the form for comparison: text, because its parts borrow from the message.
fn group_text(group: &GroupDesc<'_>) -> String {
    let mut text = format!("{:?}", group.kind);
    for bucket in group.buckets {
        let _ = write!(text, " [{} {} {:#x}", bucket.weight, bucket.watch_port, bucket.watch_group);
        for action in bucket.actions {
            let _ = write!(text, " {action}");
        }
        if !bucket.actions.unread().is_empty() {
            let _ = write!(text, " unread {:02x?}", bucket.actions.unread());
        }
        text.push(']');
    }
    if !group.buckets.unread().is_empty() {
        let _ = write!(text, " unread {:02x?}", group.buckets.unread());
    }
    text
}

/// Returns a wanted group in the same form.
pub(super) fn wanted_group_text(group: &bellrock_api::GroupEntry) -> String {
    use bellrock_api::openflow::{Bucket, List};

    let buckets: Vec<Bucket<'_>> = group
        .buckets
        .iter()
        .map(|bucket| Bucket {
            weight: bucket.weight,
            watch_port: bucket.watch_port,
            watch_group: bucket.watch_group,
            actions: List::of(&bucket.actions),
        })
        .collect();
    group_text(&GroupDesc { kind: group.kind, group: group.id, buckets: List::of(&buckets) })
}

/// Returns a meter in the form for comparison: by its meaning. Without the flag BURST a burst size
/// means nothing, and a switch reports its own (Open vSwitch: the rate). Without a unit, it is kb/s
/// (1.3.5 §7.3.4.4). Nor does the order of bands count: the highest rate below that of the packets
/// applies.
fn meter_text(meter: &MeterConfig<'_>) -> String {
    let unread = meter.bands.unread();
    let mut text = normalized_meter_text(meter.flags, meter.bands.iter().collect());
    if !unread.is_empty() {
        let _ = write!(text, " unread {unread:02x?}");
    }
    text
}

/// Returns a wanted meter in the same form.
pub(super) fn wanted_meter_text(meter: &bellrock_api::MeterEntry) -> String {
    normalized_meter_text(meter.flags, meter.bands.clone())
}

fn normalized_meter_text(mut flags: MeterFlags, mut bands: Vec<Band<'_>>) -> String {
    if !flags.contains(MeterFlags::PKTPS) {
        flags |= MeterFlags::KBPS;
    }
    if !flags.contains(MeterFlags::BURST) {
        bands.iter_mut().for_each(|band| band.burst_size = 0);
    }
    bands.sort_by_key(|band| (band.rate, format!("{:?}", band.kind)));
    format!("{flags:?} {bands:?}")
}

/// Whether a handler installed a flow for packets that it saw: it has a timeout, or number 0.
pub(super) fn is_reactive(reported: &ReportedFlow) -> bool {
    reported.has_timeout() || reported.cookie & !Cookie::MASK == 0
}

#[cfg(test)]
mod tests {
    use bellrock_api::MeterEntry;
    use bellrock_api::openflow::{BandType, List};

    use super::*;

    fn band(rate: u32, burst_size: u32) -> Band<'static> {
        Band { rate, burst_size, kind: BandType::Drop }
    }

    fn told(flags: MeterFlags, bands: &[Band<'_>]) -> String {
        meter_text(&MeterConfig { flags, meter: 6, bands: List::of(bands) })
    }

    #[test]
    fn a_burst_that_the_switch_has_chosen_is_no_difference() {
        let wanted = wanted_meter_text(&MeterEntry::drop_above_kbps(6, 1000));
        // As Open vSwitch reports it.
        assert_eq!(told(MeterFlags::KBPS, &[band(1000, 1000)]), wanted);
        assert_eq!(told(MeterFlags::empty(), &[band(1000, 7)]), wanted);
        assert_ne!(told(MeterFlags::KBPS, &[band(1001, 1000)]), wanted);
        assert_ne!(told(MeterFlags::PKTPS, &[band(1000, 1000)]), wanted);
        assert_ne!(told(MeterFlags::KBPS | MeterFlags::BURST, &[band(1000, 1000)]), wanted);
        assert_ne!(told(MeterFlags::KBPS, &[band(1000, 0), band(2000, 0)]), wanted);
    }

    #[test]
    fn a_burst_that_was_asked_for_counts() {
        let wanted = wanted_meter_text(&MeterEntry::drop_above_kbps(6, 1000).burst_kbits(500));
        let flags = MeterFlags::KBPS | MeterFlags::BURST;
        assert_eq!(told(flags, &[band(1000, 500)]), wanted);
        assert_ne!(told(flags, &[band(1000, 1000)]), wanted);
        assert_ne!(told(MeterFlags::KBPS, &[band(1000, 500)]), wanted);
    }

    #[test]
    fn the_order_of_bands_is_no_difference() {
        let (low, high) = (band(1000, 0), band(2000, 0));
        let flags = MeterFlags::KBPS;
        assert_eq!(told(flags, &[low, high]), told(flags, &[high, low]));
    }
}
