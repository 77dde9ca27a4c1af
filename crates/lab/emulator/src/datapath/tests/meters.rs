//! Meters: rates, bursts, bands.

use bellrock_openflow::{Band, BandType, Field, Meter, MeterCommand, MeterFlags, MeterMod};

use super::*;

fn band(rate: u32, burst_size: u32, kind: BandType<'static>) -> Band<'static> {
    Band { rate, burst_size, kind }
}

fn drop_above(rate: u32, burst: u32) -> Band<'static> {
    band(rate, burst, BandType::Drop)
}

impl Lab {
    fn meter(&mut self, flags: MeterFlags, bands: &[Band<'_>]) -> Result<(), ErrorCode> {
        self.meter_mod(MeterCommand::Add, 3, flags, bands)
    }

    fn meter_mod(
        &mut self,
        command: MeterCommand,
        meter: u32,
        flags: MeterFlags,
        bands: &[Band<'_>],
    ) -> Result<(), ErrorCode> {
        let request = MeterMod { command, flags, meter, bands: List::of(bands) };
        self.datapath.meter_mod(&request, self.now, &mut self.effects)
    }

    /// Passes all packets through meter 3, then outputs to port 2.
    fn metered(&mut self) {
        let leave = [out(2)];
        let leave = Instruction::ApplyActions(List::of(&leave));
        self.flow(0, &Match::any(), &[leave, Instruction::Meter(3)]);
    }

    /// Number of packets that leave, of `packets` that arrive at once.
    fn passed(&mut self, packets: usize, frame: &EthernetFrame) -> usize {
        (0..packets).filter(|_| !self.send(frame).is_empty()).count()
    }
}

const PACKETS: MeterFlags = MeterFlags::PKTPS.union(MeterFlags::BURST);

#[test]
fn a_burst_passes_and_then_as_many_packets_as_the_rate_says() {
    let mut lab = Lab::new(V13);
    lab.meter(PACKETS, &[drop_above(10, 25)]).unwrap();
    lab.metered();
    assert_eq!(lab.passed(100, &frame()), 25);
    lab.now += Duration::from_millis(500);
    assert_eq!(lab.passed(100, &frame()), 5);
    lab.now += Duration::from_secs(3_600);
    assert_eq!(lab.passed(100, &frame()), 25);
    let meter = lab.datapath.meters().get(3).unwrap();
    assert_eq!(meter.counter.packet_count, 300);
    assert_eq!(meter.bands[0].counter.packet_count, 300 - 55);
    assert_eq!(lab.datapath.meter_flows().get(&3), Some(&1));
}

#[test]
fn without_a_burst_one_second_of_the_rate_passes() {
    let mut lab = Lab::new(V13);
    lab.meter(MeterFlags::PKTPS, &[drop_above(10, 0)]).unwrap();
    lab.metered();
    assert_eq!(lab.passed(100, &frame()), 10);
}

#[test]
fn kilobits_are_counted_by_the_length_of_packets() {
    let mut lab = Lab::new(V13);
    lab.meter(MeterFlags::KBPS | MeterFlags::BURST, &[drop_above(80, 16)]).unwrap();
    lab.metered();
    // 1,000 bytes are 8 kb: a burst is two packets, the rate is ten a second.
    let big = eth().payload(0x1234, &[0; 986]);
    assert_eq!(lab.passed(10, &big), 2);
    let later = (0..100).filter(|_| {
        lab.now += Duration::from_millis(50);
        !lab.send(&big).is_empty()
    });
    assert_eq!(later.count(), 50);
}

#[test]
fn of_the_bands_that_are_exceeded_the_one_with_the_highest_rate_acts() {
    let mut lab = Lab::new(V13);
    let remark = band(10, 10, BandType::DscpRemark(1));
    lab.meter(PACKETS, &[drop_above(20, 20), remark]).unwrap();
    lab.metered();
    // AF11 becomes AF12 above ten packets, and is dropped above twenty.
    let af11 = eth().ip(&ip().dscp(10, 0).udp(1, 2, b""));
    let af12 = eth().ip(&ip().dscp(12, 0).udp(1, 2, b""));
    for number in 0..30 {
        lab.send(&af11);
        let want: Vec<(u32, &[u8])> = match number {
            0..10 => vec![(2, &af11)],
            10..20 => vec![(2, &af12)],
            _ => vec![],
        };
        assert_eq!(lab.frames(), want, "packet {number}");
    }
    let counts = lab.datapath.meters().get(3).unwrap().bands.iter();
    assert_eq!(counts.map(|band| band.counter.packet_count).collect::<Vec<_>>(), [10, 10]);
}

#[test]
fn remarking_raises_the_drop_precedence_of_assured_forwarding_only() {
    for (old, levels, new) in
        [(10, 1, 12), (10, 2, 14), (14, 1, 14), (12, 9, 14), (46, 1, 46), (0, 1, 0)]
    {
        let mut lab = Lab::new(V13);
        lab.meter(PACKETS, &[band(0, 0, BandType::DscpRemark(levels))]).unwrap();
        lab.metered();
        let next = [out(2)];
        let remarked = Match::any().eth_type(0x0800).ip_dscp(new);
        lab.flow(0, &Match::any(), &[Instruction::Meter(3), Instruction::GotoTable(1)]);
        lab.flow(1, &remarked, &[Instruction::ApplyActions(List::of(&next))]);
        assert_eq!(lab.send(&eth().ip(&ip().dscp(old, 0).udp(1, 2, b""))), [2], "{old}");
    }
    // A packet without a DSCP passes unchanged.
    let mut lab = Lab::new(V13);
    lab.meter(PACKETS, &[band(0, 0, BandType::DscpRemark(1))]).unwrap();
    lab.metered();
    assert_eq!(lab.send(&eth().payload(0x1234, b"")), [2]);
}

#[test]
fn a_meter_acts_before_the_actions_of_its_flow() {
    let mut lab = Lab::new(V13);
    lab.meter(PACKETS, &[drop_above(0, 0)]).unwrap();
    let set = [Action::SetField(Field::EthDst, 1), out(2)];
    let apply = Instruction::ApplyActions(List::of(&set));
    lab.flow(0, &Match::any(), &[apply, Instruction::Meter(3)]);
    assert!(lab.send(&frame()).is_empty());
}

#[test]
fn a_meter_that_goes_takes_its_flows_with_it_and_one_that_changes_keeps_its_count() {
    let mut lab = Lab::new(V13);
    lab.meter(PACKETS, &[drop_above(1, 1)]).unwrap();
    lab.metered();
    assert_eq!(lab.passed(5, &frame()), 1);
    lab.meter_mod(MeterCommand::Modify, 3, PACKETS, &[drop_above(3, 3)]).unwrap();
    assert_eq!(lab.passed(5, &frame()), 3);
    assert_eq!(lab.datapath.meters().get(3).unwrap().counter.packet_count, 10);
    lab.meter_mod(MeterCommand::Delete, Meter::ALL, PACKETS, &[]).unwrap();
    assert_eq!(lab.datapath.tables().table(0).unwrap().len(), 0);
    assert_eq!(lab.meter_mod(MeterCommand::Delete, 3, PACKETS, &[]), Ok(()));
}

#[test]
fn meter_mods_that_cannot_be_done_are_refused_by_name() {
    let mut lab = Lab::new(V13);
    lab.meter(PACKETS, &[]).unwrap();
    let both = MeterFlags::KBPS | MeterFlags::PKTPS;
    let unknown = MeterFlags::from_bits_retain(1 << 7);
    let odd = band(1, 1, BandType::Experimenter { experimenter: 1, data: Bytes(&[]) });
    let no_level = band(1, 1, BandType::DscpRemark(0));
    let many = vec![drop_above(1, 1); 17];
    use MeterCommand::{Add, Modify};
    for (command, meter, flags, bands, error) in [
        (Add, 3, PACKETS, &[][..], ErrorCode::MeterModExists),
        (Modify, 4, PACKETS, &[], ErrorCode::MeterModUnknownMeter),
        (Add, 0, PACKETS, &[], ErrorCode::MeterModInvalid),
        (Add, Meter::CONTROLLER, PACKETS, &[], ErrorCode::MeterModInvalid),
        (Add, 4, both, &[], ErrorCode::MeterModBadFlags),
        (Add, 4, unknown, &[], ErrorCode::MeterModBadFlags),
        (Add, 4, PACKETS, &[odd], ErrorCode::MeterModBadBand),
        (Add, 4, PACKETS, &[no_level], ErrorCode::MeterModBadBandValue),
        (Add, 4, PACKETS, &many, ErrorCode::MeterModOutOfBands),
    ] {
        assert_eq!(lab.meter_mod(command, meter, flags, bands), Err(error), "{error}");
    }
}
