//! The groups and meters of a switch.

use bellrock_api::openflow::{
    Band, BandType, Bucket, Group, GroupDesc, GroupStats, GroupType, Meter, MeterConfig,
    MeterStats, PacketByteCount, ReplyBody, RequestBody,
};
use serde_json::{Value, json};

use super::numbers::{GROUPS, METERS};
use super::stats::Asked;
use super::switch::Switch;
use super::{Failure, actions};

pub(super) fn meter(switch: &Switch<'_>, asked: &Asked) -> Result<Value, Failure> {
    /// Length of a meter's counters without those of its bands, and of a band's (1.3.5 §7.3.5.11).
    const METER_BYTES: usize = 40;
    const BAND_BYTES: usize = 16;
    let request = RequestBody::Meter(asked.number("meter_id")?.unwrap_or(Meter::ALL));
    switch.multipart(request, |reply| {
        let ReplyBody::Meter(meters) = reply else { return None };
        let show = |meter: MeterStats<'_>| {
            let band = |band: PacketByteCount| {
                json!({"packet_band_count": band.packet_count, "byte_band_count": band.byte_count})
            };
            json!({
                "meter_id": METERS.show(meter.meter),
                "len": METER_BYTES + BAND_BYTES * meter.bands.len(),
                "flow_count": meter.flow_count,
                "packet_in_count": meter.packet_in_count,
                "byte_in_count": meter.byte_in_count,
                "duration_sec": meter.duration_sec,
                "duration_nsec": meter.duration_nsec,
                "band_stats": meter.bands.iter().map(band).collect::<Vec<_>>(),
            })
        };
        Some(meters.iter().map(show).collect())
    })
}

/// The flags of meters, by their bits.
pub(super) const METER_FLAGS: &[(&str, u32)] =
    &[("KBPS", 1), ("PKTPS", 1 << 1), ("BURST", 1 << 2), ("STATS", 1 << 3)];

/// The names of the bits that are set.
fn names(bits: u32, known: &[(&'static str, u32)]) -> Vec<&'static str> {
    known.iter().filter(|(_, bit)| bits & bit != 0).map(|(name, _)| *name).collect()
}

pub(super) fn meter_config(switch: &Switch<'_>, asked: &Asked) -> Result<Value, Failure> {
    let request = RequestBody::MeterConfig(asked.number("meter_id")?.unwrap_or(Meter::ALL));
    switch.multipart(request, |reply| {
        let ReplyBody::MeterConfig(meters) = reply else { return None };
        let show = |meter: MeterConfig<'_>| {
            json!({
                "flags": names(meter.flags.bits().into(), METER_FLAGS),
                "meter_id": METERS.show(meter.meter),
                "bands": meter.bands.iter().map(|band| show_band(&band)).collect::<Vec<_>>(),
            })
        };
        Some(meters.iter().map(show).collect())
    })
}

fn show_band(band: &Band<'_>) -> Value {
    let mut shown = json!({"rate": band.rate, "burst_size": band.burst_size});
    let (kind, more): (_, Option<(&str, u32)>) = match band.kind {
        BandType::Drop => ("DROP", None),
        BandType::DscpRemark(levels) => ("DSCP_REMARK", Some(("prec_level", levels.into()))),
        BandType::Experimenter { experimenter, .. } => {
            ("EXPERIMENTER", Some(("experimenter", experimenter)))
        }
        BandType::Unknown { .. } => ("", None),
    };
    if let Some(shown) = shown.as_object_mut() {
        shown.insert("type".to_owned(), kind.into());
        shown.extend(more.map(|(name, value)| (name.to_owned(), value.into())));
    }
    shown
}

pub(super) fn meter_features(switch: &Switch<'_>, _: &Asked) -> Result<Value, Failure> {
    const BANDS: &[(&str, u32)] = &[("DROP", 1 << 1), ("DSCP_REMARK", 1 << 2)];
    switch.multipart(RequestBody::MeterFeatures, |reply| match reply {
        ReplyBody::MeterFeatures(features) => Some(json!([{
            "max_meter": features.max_meter,
            "band_types": names(features.band_types, BANDS),
            "capabilities": names(features.capabilities, METER_FLAGS),
            "max_bands": features.max_bands,
            "max_color": features.max_color,
        }])),
        _ => None,
    })
}

pub(super) fn group(switch: &Switch<'_>, asked: &Asked) -> Result<Value, Failure> {
    /// Length of a group's counters without those of its buckets, and of a bucket's (1.3.5
    /// §7.3.5.7).
    const GROUP_BYTES: usize = 40;
    const BUCKET_BYTES: usize = 16;
    let request = RequestBody::Group(asked.number("group_id")?.unwrap_or(Group::ALL));
    switch.multipart(request, |reply| {
        let ReplyBody::Group(groups) = reply else { return None };
        let show = |group: GroupStats<'_>| {
            let bucket = |bucket: PacketByteCount| {
                json!({"packet_count": bucket.packet_count, "byte_count": bucket.byte_count})
            };
            json!({
                "group_id": GROUPS.show(group.group),
                "length": GROUP_BYTES + BUCKET_BYTES * group.buckets.len(),
                "ref_count": group.ref_count,
                "packet_count": group.packet_count,
                "byte_count": group.byte_count,
                "duration_sec": group.duration_sec,
                "duration_nsec": group.duration_nsec,
                "bucket_stats": group.buckets.iter().map(bucket).collect::<Vec<_>>(),
            })
        };
        Some(groups.iter().map(show).collect())
    })
}

/// The types of groups, by their numbers.
pub(super) const GROUP_TYPES: &[(&str, GroupType)] = &[
    ("ALL", GroupType::All),
    ("SELECT", GroupType::Select),
    ("INDIRECT", GroupType::Indirect),
    ("FF", GroupType::FastFailover),
];

pub(super) fn group_description(switch: &Switch<'_>, _: &Asked) -> Result<Value, Failure> {
    let version = switch.version;
    switch.multipart(RequestBody::GroupDesc, |reply| {
        let ReplyBody::GroupDesc(groups) = reply else { return None };
        let show_bucket = |bucket: Bucket<'_>| {
            let actions = bucket.actions.iter().map(|action| actions::show(version, &action));
            json!({
                "weight": bucket.weight,
                "watch_port": bucket.watch_port.0,
                "watch_group": bucket.watch_group,
                "actions": actions.collect::<Vec<_>>(),
            })
        };
        let show = |group: GroupDesc<'_>| {
            let kind = GROUP_TYPES.iter().find(|(_, kind)| *kind == group.kind);
            json!({
                "group_id": GROUPS.show(group.group),
                "type": kind.map(|(name, _)| *name),
                "buckets": group.buckets.iter().map(show_bucket).collect::<Vec<_>>(),
            })
        };
        Some(groups.iter().map(show).collect())
    })
}

pub(super) fn group_features(switch: &Switch<'_>, _: &Asked) -> Result<Value, Failure> {
    const CAPABILITIES: &[(&str, u32)] = &[
        ("SELECT_WEIGHT", 1),
        ("SELECT_LIVENESS", 1 << 1),
        ("CHAINING", 1 << 2),
        ("CHAINING_CHECKS", 1 << 3),
    ];
    const ACTIONS: &[(&str, u32)] = &[
        ("OUTPUT", 1),
        ("COPY_TTL_OUT", 1 << 11),
        ("COPY_TTL_IN", 1 << 12),
        ("SET_MPLS_TTL", 1 << 15),
        ("DEC_MPLS_TTL", 1 << 16),
        ("PUSH_VLAN", 1 << 17),
        ("POP_VLAN", 1 << 18),
        ("PUSH_MPLS", 1 << 19),
        ("POP_MPLS", 1 << 20),
        ("SET_QUEUE", 1 << 21),
        ("GROUP", 1 << 22),
        ("SET_NW_TTL", 1 << 23),
        ("DEC_NW_TTL", 1 << 24),
        ("SET_FIELD", 1 << 25),
        ("PUSH_PBB", 1 << 26),
        ("POP_PBB", 1 << 27),
    ];
    const TYPES: &[(&str, u32)] =
        &[("ALL", 1), ("SELECT", 1 << 1), ("INDIRECT", 1 << 2), ("FF", 1 << 3)];
    switch.multipart(RequestBody::GroupFeatures, |reply| {
        let ReplyBody::GroupFeatures(features) = reply else { return None };
        let kinds = || TYPES.iter().map(|(name, _)| (*name).to_owned());
        let max: Vec<Value> =
            kinds().zip(features.max_groups).map(|(kind, max)| json!({kind: max})).collect();
        let actions: Vec<Value> = kinds()
            .zip(features.actions)
            .map(|(kind, bits)| json!({kind: names(bits, ACTIONS)}))
            .collect();
        Some(json!([{
            "types": names(features.types, TYPES),
            "capabilities": names(features.capabilities, CAPABILITIES),
            "max_groups": max,
            "actions": actions,
        }]))
    })
}
