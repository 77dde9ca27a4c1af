//! The checks, and what to do.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use bellrock_config::{Config, Control};
use bellrock_control::{Client, default_path};
use bellrock_engine::Pinning;
use bellrock_query::GetStatus;

use super::Finding;
use super::machine::Machine;

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
    findings.push(memory(machine, config));
    findings.push(huge_pages(machine));
    findings.extend(ports(config));
    findings.extend(control(config));
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

/// Whether the addresses are free, or a controller of ours has them.
fn ports(config: &Config) -> Vec<Finding> {
    let running = running_controller(config);
    let http = config.http.listen.iter().chain(&config.http.ryu);
    let addresses = config.listen.iter().chain(http);
    addresses.map(|address| port(*address, running)).collect()
}

fn port(address: SocketAddr, running: Option<u32>) -> Finding {
    match (TcpListener::bind(address), running) {
        (Ok(_), _) => Finding::good("ports", format!("{address} is free")),
        (Err(_), Some(process)) => Finding::good(
            "ports",
            format!("{address} is in use; a controller runs as process {process}"),
        ),
        (Err(error), None) => Finding::problem(
            "ports",
            format!("{address}: {error}"),
            "end the other program (`ss -ltnp` names it), or choose another address",
        ),
    }
}

/// The process of a controller that answers at the control socket.
fn running_controller(config: &Config) -> Option<u32> {
    let path = match &config.control {
        Control::None => return None,
        Control::Auto => default_path().ok()?,
        Control::Path(path) => path.clone(),
    };
    Some(Client::new(path).ask(GetStatus {}).ok()?.pid)
}

/// Whether the control socket can be made.
fn control(config: &Config) -> Option<Finding> {
    let path = match &config.control {
        Control::None => return None,
        Control::Auto => match default_path() {
            Ok(path) => path,
            Err(error) => {
                let advice = "choose a place with --control";
                return Some(Finding::problem("control socket", error.to_string(), advice));
            }
        },
        Control::Path(path) => path.clone(),
    };
    let directory = path.parent().unwrap_or(Path::new("/"));
    Some(match fs::metadata(directory) {
        Ok(found) if found.is_dir() => {
            Finding::good("control socket", format!("its place is {}", path.display()))
        }
        _ => Finding::problem(
            "control socket",
            format!("the directory {} does not exist", directory.display()),
            "make it (RuntimeDirectory= of the unit), or choose another place with --control",
        ),
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

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
        assert_eq!(verdicts.len(), 8);
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
