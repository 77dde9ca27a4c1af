//! Members of etcd on loopback addresses of their own, in a temporary folder. They end with the
//! test.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use bellrock_cluster::etcd::{Client, Settings};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::pki::Pki;

/// Time in which anything that is waited for happens, on a machine that is busy with other tests.
pub const LONG: Duration = Duration::from_secs(30);
/// Pause between two looks at something that is waited for.
pub const SHORT: Duration = Duration::from_millis(20);

/// Number of members that this process has started: each has an address of its own.
static STARTED: AtomicU8 = AtomicU8::new(0);

/// Members of one cluster.
pub struct Cluster {
    pub members: Vec<Member>,
    folder: TempDir,
    flags: Vec<String>,
    secure: bool,
}

pub struct Member {
    name: String,
    /// The folder of its data.
    data: PathBuf,
    /// Address for clients, as in errors and events.
    pub address: String,
    peer: String,
    child: Option<Child>,
}

impl Cluster {
    /// Starts this number of members, and waits until they answer.
    pub async fn start(count: usize) -> Self {
        Cluster::with_flags(count, &[]).await
    }

    pub async fn with_flags(count: usize, flags: &[&str]) -> Self {
        Cluster::started(count, flags, None).await
    }

    /// With TLS for clients, whose certificates are required.
    pub async fn secure(count: usize, pki: &Pki) -> Self {
        Cluster::started(count, &[], Some(pki)).await
    }

    async fn started(count: usize, flags: &[&str], pki: Option<&Pki>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let members: Vec<Member> = (0..count).map(|number| Member::new(number, &folder)).collect();
        if let Some(pki) = pki {
            let hosts: Vec<&str> = members.iter().map(Member::host).collect();
            let files = pki.files("etcd", &hosts);
            let (certificate, key) = files.certificate.unwrap();
            flags.push("--client-cert-auth".into());
            for (flag, path) in [
                ("--trusted-ca-file", &files.authorities),
                ("--cert-file", &certificate),
                ("--key-file", &key),
            ] {
                flags.extend([flag.into(), path.display().to_string()]);
            }
        }
        let secure = pki.is_some();
        let mut cluster = Cluster { members, folder, flags, secure };
        for index in 0..count {
            cluster.run(index);
        }
        if !secure {
            cluster.wait_until_ready().await;
        }
        cluster
    }

    /// Waits until every member that runs has answered.
    pub async fn wait_until_ready(&mut self) {
        for index in 0..self.members.len() {
            if self.members[index].child.is_none() {
                continue;
            }
            let client = Client::new(&self.settings_for(&[index])).unwrap();
            let ready = async {
                while client.read("nothing").await.is_err() {
                    self.members[index].check_runs();
                    sleep(SHORT).await;
                }
            };
            within(ready, &format!("member {index} is ready")).await;
        }
    }

    /// Settings for all members, with time for a busy machine.
    pub fn settings(&self) -> Settings {
        let all: Vec<usize> = (0..self.members.len()).collect();
        self.settings_for(&all)
    }

    pub fn settings_for(&self, members: &[usize]) -> Settings {
        let url = |index: &usize| {
            let scheme = if self.secure { "https" } else { "http" };
            format!("{scheme}://{}", self.members[*index].address)
        };
        let mut settings = Settings::new(members.iter().map(url).collect(), "/test/");
        settings.attempt = Duration::from_secs(2);
        settings.total = Duration::from_secs(30);
        settings
    }

    pub fn client(&self) -> Client {
        Client::new(&self.settings()).unwrap()
    }

    /// The default deadlines: silent members are left soon.
    pub fn fast_client(&self) -> Client {
        let mut settings = self.settings();
        let default = Settings::new(Vec::new(), "/");
        settings.attempt = default.attempt;
        Client::new(&settings).unwrap()
    }

    /// Index of the leader.
    pub async fn leader(&self) -> usize {
        let client = self.client();
        let (mut found, mut waited) = (None, 0);
        while found.is_none() {
            assert!(SHORT * waited < LONG, "there is no leader");
            for (index, (_, member)) in client.members().await.into_iter().enumerate() {
                let is_leader = |member: &bellrock_cluster::etcd::Member| {
                    member.leader == Some(member.member_id)
                };
                if member.as_ref().is_ok_and(is_leader) {
                    found = Some(index);
                }
            }
            sleep(SHORT).await;
            waited += 1;
        }
        found.unwrap()
    }

    pub fn index_of(&self, address: &str) -> usize {
        self.members.iter().position(|member| member.address == address).unwrap()
    }

    /// Starts a member, with what is in its folder.
    pub fn run(&mut self, index: usize) {
        let all =
            self.members.iter().map(|member| format!("{}=http://{}", member.name, member.peer));
        let all = all.collect::<Vec<_>>().join(",");
        let log = self.folder.path().join(format!("{}.log", self.members[index].name));
        let log = File::options().create(true).append(true).open(log).unwrap();
        let member = &mut self.members[index];
        let (scheme, address) = (if self.secure { "https" } else { "http" }, &member.address);
        // The kernel ends it if this process ends without doing so.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "etcd", "--name", &member.name]);
        command.arg("--data-dir").arg(&member.data);
        for (flag, scheme, address) in [
            ("--listen-client-urls", scheme, address),
            ("--advertise-client-urls", scheme, address),
            ("--listen-peer-urls", "http", &member.peer),
            ("--initial-advertise-peer-urls", "http", &member.peer),
        ] {
            command.args([flag, &format!("{scheme}://{address}")]);
        }
        command.args(["--initial-cluster", &all]);
        command.args(["--heartbeat-interval", "50", "--election-timeout", "500"]);
        command.args(["--experimental-watch-progress-notify-interval", "1s"]);
        command.args(&self.flags).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        member.child = Some(command.spawn().unwrap_or_else(|error| missing(&error)));
    }

    pub fn kill(&mut self, index: usize) {
        let mut child = self.members[index].child.take().unwrap();
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }

    /// Stops a member, until all its threads stand: it keeps its connections, and is silent.
    pub fn pause(&self, index: usize) {
        let member = &self.members[index];
        member.signal("STOP");
        let tasks = format!("/proc/{}/task", member.child.as_ref().unwrap().id());
        let stands = |task: std::io::Result<fs::DirEntry>| {
            let status = fs::read_to_string(task.unwrap().path().join("status"));
            status.unwrap_or_default().contains("State:\tT")
        };
        while !fs::read_dir(&tasks).unwrap().all(stands) {
            std::thread::sleep(SHORT);
        }
    }

    pub fn resume(&self, index: usize) {
        self.members[index].signal("CONT");
    }

    /// Runs etcdctl on a member.
    pub fn etcdctl(&self, index: usize, arguments: &[&str]) -> String {
        let endpoint = format!("--endpoints=http://{}", self.members[index].address);
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").current_dir(self.folder.path());
        let output = command.arg(endpoint).args(arguments).output();
        let output = output.unwrap_or_else(|error| missing(&error));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "etcdctl {arguments:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Replaces the data of a member that does not run, with those of a snapshot.
    pub fn restore(&mut self, index: usize, snapshot: &str, token: &str) {
        let member = &self.members[index];
        let (name, data, peer) = (member.name.clone(), member.data.clone(), member.peer.clone());
        fs::remove_dir_all(&data).unwrap();
        self.etcdctl(
            index,
            &[
                "snapshot",
                "restore",
                snapshot,
                "--name",
                &name,
                "--initial-cluster",
                &format!("{name}=http://{peer}"),
                "--initial-cluster-token",
                token,
                "--initial-advertise-peer-urls",
                &format!("http://{peer}"),
                "--data-dir",
                data.to_str().unwrap(),
            ],
        );
    }
}

impl Member {
    fn new(number: usize, folder: &TempDir) -> Self {
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let host = format!("127.{}.{high}.{low}", 1 + STARTED.fetch_add(1, Ordering::Relaxed));
        let name = format!("m{number}");
        Member {
            data: folder.path().join(&name),
            address: format!("{host}:2379"),
            peer: format!("{host}:2380"),
            child: None,
            name,
        }
    }

    fn host(&self) -> &str {
        self.address.split(':').next().unwrap()
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        let status = Command::new("kill").args(["-s", signal, &pid]).status().unwrap();
        assert!(status.success());
    }

    fn check_runs(&mut self) {
        let status = self.child.as_mut().unwrap().try_wait().unwrap();
        if let Some(status) = status {
            let log = fs::read_to_string(self.data.with_extension("log")).unwrap_or_default();
            let end: Vec<&str> = log.lines().rev().take(5).collect();
            panic!("etcd ended with {status}: {end:#?}");
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.members.iter_mut().filter_map(|member| member.child.as_mut()) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn missing(error: &std::io::Error) -> ! {
    panic!(
        "etcd cannot be started: {error}: install Debian's packages etcd-server, etcd-client and \
         util-linux (scripts/tools install)"
    )
}

/// Waits for something, and fails the test if it does not happen.
pub async fn within<T>(future: impl Future<Output = T>, what: &str) -> T {
    let waited = tokio::time::timeout(LONG, future).await;
    waited.unwrap_or_else(|_| panic!("not within {} s: {what}", LONG.as_secs()))
}
