//! The checks, and what to do.

use bellrock_config::Config;
use bellrock_engine::Pinning;

use super::machine::{ClockState, Machine};
use super::{Finding, addresses, private, python};
use crate::python::interpreter;

/// Open files of the controller beside the connections of switches: listeners, pollers, sockets of
/// operators, files.
const OTHER_FILES: u64 = 1024;

/// Clock sources that a process reads without a system call.
const FAST_CLOCKS: &[&str] =
    &["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

/// All checks, in the order of the output.
pub(super) fn all(machine: &Machine, config: &Config) -> Vec<Finding> {
    let mut findings = vec![versions(machine), files(machine, config)];
    findings.extend(cores(machine, config));
    findings.push(interrupts(machine));
    findings.push(clock(machine));
    findings.push(clock_synchronisation(machine));
    findings.push(memory(machine, config));
    findings.push(huge_pages(machine));
    let running = addresses::running(config);
    findings.extend(addresses::ports(machine, config, running.as_ref()));
    findings.extend(addresses::control(config, running.as_ref()));
    findings.extend(private::files(config));
    findings.extend(private::state(config));
    findings.extend(python::package(config, &interpreter()));
    findings
}

fn versions(machine: &Machine) -> Finding {
    let kernel = machine.read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned());
    Finding::good("versions", format!("bellrock {}, Linux {kernel}", env!("CARGO_PKG_VERSION")))
}

fn files(machine: &Machine, config: &Config) -> Finding {
    let connections = config.limits.connections as u64;
    let (needed, max) = (connections + OTHER_FILES, machine.max_files);
    let found = format!("a process may open {max} files; max_connections is {connections}");
    match max >= needed {
        true => Finding::good("open files", found),
        false => Finding::note(
            "open files",
            found,
            format!(
                "raise the limit to {needed} (LimitNOFILE= of the unit, or `ulimit -Hn`), or lower max_connections"
            ),
        ),
    }
}

fn cores(machine: &Machine, config: &Config) -> Vec<Finding> {
    let allowed = machine.allowed_cores();
    let workers = config.workers.unwrap_or(allowed.len());
    let found = format!("this process may run on {} cores; workers: {workers}", allowed.len());
    let mut findings = vec![match workers <= allowed.len() {
        true => Finding::good("cores", found),
        false => Finding::note(
            "cores",
            found,
            "two workers on one core wait for each other; lower `workers`, or leave it at auto",
        ),
    }];
    if let Some(quota) = machine.core_quota().filter(|quota| *quota < workers as f64) {
        findings.push(Finding::note(
            "cores",
            format!("the control group may use {quota:.1} cores"),
            "raise CPUQuota= of the unit (or the container's limit), or lower `workers`: a worker that is paused delays its switches",
        ));
    }
    if let Pinning::Cores(cores) = &config.pin {
        let missing: Vec<_> = cores.iter().filter(|core| !allowed.contains(core)).collect();
        if !missing.is_empty() {
            findings.push(Finding::problem(
                "pinning",
                format!("this process may not run on the cores {missing:?} of `pin`"),
                "name cores that it may use, or change its affinity (CPUAffinity= of the unit, taskset)",
            ));
        }
    }
    findings
}

fn interrupts(machine: &Machine) -> Finding {
    let cards = machine.card_interrupts();
    let crowded = cards.iter().find(|(_, cores)| cores.len() == 1);
    match crowded {
        _ if cards.is_empty() => {
            Finding::good("interrupts", "no network card has interrupts of its own")
        }
        Some((card, cores)) if machine.allowed_cores().len() > 1 => Finding::note(
            "interrupts",
            format!("all interrupts of {card} go to core {cores:?}"),
            "spread them (irqbalance, or /proc/irq/N/smp_affinity_list); else the worker on that core does the network's work too",
        ),
        _ => Finding::good("interrupts", "those of the network cards are spread over the cores"),
    }
}

fn clock(machine: &Machine) -> Finding {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let Some(source) = machine.read(path) else {
        return Finding::note(
            "clock",
            "the kernel does not name its clock source",
            "nothing, if the machine is fast enough",
        );
    };
    let is_fast = FAST_CLOCKS.contains(&source.as_str());
    match is_fast {
        true => Finding::good("clock", format!("the clock source is {source}")),
        false => Finding::note(
            "clock",
            format!("the clock source is {source}, which takes a system call for each look"),
            "use tsc, if the machine has one (clocksource=tsc on the kernel's command line)",
        ),
    }
}

/// Whether the time of day is right: the log, the expiry of tokens and the ends of static entries
/// use it.
fn clock_synchronisation(machine: &Machine) -> Finding {
    let topic = "time of day";
    match machine.clock_state() {
        ClockState::Synchronised => Finding::good(topic, "the clock is synchronised"),
        ClockState::Free => Finding::note(
            topic,
            "the clock is not synchronised",
            "run a time service (systemd-timesyncd, chrony): tokens and static entries end by this clock",
        ),
        ClockState::Unknown => Finding::note(
            topic,
            "it is unknown whether the clock is synchronised",
            "compare `date` with another machine: tokens and static entries end by this clock",
        ),
    }
}

fn memory(machine: &Machine, config: &Config) -> Finding {
    const MIB: u64 = 1 << 20;
    let limit = config.table_memory_bytes as u64;
    let Some(available) = machine.available_memory() else {
        return Finding::note(
            "memory",
            "the kernel does not say how much is available",
            "compare table_memory_bytes with the machine's memory",
        );
    };
    let found =
        format!("{} MiB are available; table_memory_bytes is {} MiB", available / MIB, limit / MIB);
    match available >= limit {
        true => Finding::good("memory", found),
        false => Finding::note(
            "memory",
            found,
            "lower table_memory_bytes: the kernel ends a process when memory is gone",
        ),
    }
}

fn huge_pages(machine: &Machine) -> Finding {
    let text = machine.read("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let chosen = text.split(['[', ']']).nth(1).unwrap_or("not there");
    match chosen {
        "always" | "madvise" => {
            Finding::good("huge pages", format!("transparent huge pages: {chosen}"))
        }
        _ => Finding::note(
            "huge pages",
            format!("transparent huge pages: {chosen}"),
            "write `madvise` to /sys/kernel/mm/transparent_hugepage/enabled: tables of millions of hosts are faster then",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::{SocketAddr, TcpListener};
    use std::path::PathBuf;

    use bellrock_config::Control;

    use super::super::Verdict;
    use super::super::machine::put;
    use super::*;

    /// A machine where all is well, in a directory that is removed at the end.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let root = crate::test_directory(&format!("doctor-{name}"));
            put(&root, "/proc/self/status", "Name:\tbellrock\nCpus_allowed_list:\t0-3\n");
            put(&root, "/proc/meminfo", "MemTotal: 9 kB\nMemAvailable:   8388608 kB\n");
            put(&root, "/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
            let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
            put(&root, clock, "tsc\n");
            put(&root, "/run/systemd/timesync/synchronized", "");
            put(&root, "/sys/class/net/eth0/device/msi_irqs/30", "");
            put(&root, "/sys/class/net/eth0/device/msi_irqs/31", "");
            put(&root, "/proc/irq/30/smp_affinity_list", "0\n");
            put(&root, "/proc/irq/31/smp_affinity_list", "1-2\n");
            Place(root)
        }

        fn verdicts(&self, max_files: u64, config: &Config) -> Vec<(&'static str, Verdict)> {
            let machine = Machine::at(&self.0, max_files);
            let findings = all(&machine, config).into_iter();
            findings.map(|finding| (finding.topic, finding.verdict)).collect()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn config() -> Config {
        let control = Control::None;
        Config { listen: vec![SocketAddr::from(([127, 0, 0, 1], 0))], control, ..Config::default() }
    }

    #[test]
    fn a_good_machine_has_no_advice() {
        let place = Place::new("good");
        let verdicts = place.verdicts(1 << 20, &config());
        assert!(verdicts.iter().all(|(_, verdict)| *verdict == Verdict::Good), "{verdicts:?}");
        assert_eq!(verdicts.len(), 9);
    }

    #[test]
    fn each_fault_is_found() {
        let place = Place::new("faults");
        put(&place.0, "/proc/self/status", "Cpus_allowed_list:\t1-2\n");
        put(&place.0, "/sys/fs/cgroup/cpu.max", "150000 100000\n");
        put(&place.0, "/proc/irq/31/smp_affinity_list", "0\n");
        put(&place.0, "/proc/meminfo", "MemAvailable: 1024 kB\n");
        put(&place.0, "/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
        let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        put(&place.0, clock, "hpet\n");
        fs::remove_file(place.0.join("run/systemd/timesync/synchronized")).unwrap();
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let config = Config {
            workers: Some(3),
            pin: Pinning::Cores(vec![0, 1, 2]),
            listen: vec![taken.local_addr().unwrap()],
            control: Control::Path("/no/such/place/socket".into()),
            ..Config::default()
        };
        use Verdict::{Good, Note, Problem};
        let expected = [
            ("versions", Good),
            ("open files", Note),
            ("cores", Note),
            ("cores", Note),
            ("pinning", Problem),
            ("interrupts", Note),
            ("clock", Note),
            ("time of day", Note),
            ("memory", Note),
            ("huge pages", Note),
            ("ports", Problem),
            ("control socket", Problem),
        ];
        assert_eq!(place.verdicts(1024, &config), expected);
    }

    #[test]
    fn a_machine_that_says_nothing_is_no_problem() {
        let root = crate::test_directory("doctor-silent");
        let machine = Machine::at(&root, u64::MAX);
        let mut config = config();
        config.workers = Some(1);
        let findings = all(&machine, &config);
        assert!(findings.iter().all(|finding| finding.verdict < Verdict::Problem), "{findings:?}");
        fs::remove_dir_all(root).unwrap();
    }
}
