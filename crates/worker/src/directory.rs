//! Who is connected, and to which worker: what the workers share.
//!
//! Behind a lock, which is taken when a switch comes, goes or changes a port, and when an app
//! looks another switch up; never for a packet.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellrock_api::openflow::MAX_MESSAGE_LEN;
use bellrock_api::openflow::Out;
use bellrock_api::{Directory, Dpid, DynApp, Error, Network, Result, SwitchInfo, ToSwitch};

use crate::counters::Counters;
use crate::mailbox::{ConnectionId, Mail, Mailbox};
use crate::settings::MAIL_BACKLOG_BYTES;

/// What a worker needs besides itself: the apps, and the other workers.
pub struct SharedParts {
    /// The chain of apps, in order.
    pub apps: Vec<Box<dyn DynApp>>,
    /// The mailbox of each worker.
    pub mailboxes: Vec<Mailbox>,
}

/// What all workers share.
pub struct Shared {
    apps: Vec<Box<dyn DynApp>>,
    posts: Arc<Posts>,
    counters: Vec<Arc<Counters>>,
}

/// The part of it that apps reach by [`Network`].
struct Posts {
    mailboxes: Vec<Mailbox>,
    switches: Mutex<BTreeMap<Dpid, Entry>>,
}

struct Entry {
    id: ConnectionId,
    info: Arc<SwitchInfo>,
    /// Bytes that wait for this switch at its worker.
    backlog: Arc<AtomicUsize>,
    /// Its apps have been told of it: it shows, and takes messages.
    up: bool,
}

impl Shared {
    /// Puts the parts together and tells the apps that the controller starts.
    #[must_use]
    pub fn new(parts: SharedParts) -> Arc<Self> {
        let counters = parts.mailboxes.iter().map(|_| Arc::default()).collect();
        let posts = Arc::new(Posts { mailboxes: parts.mailboxes, switches: Mutex::default() });
        let shared = Arc::new(Shared { apps: parts.apps, posts, counters });
        let network = shared.network();
        for app in &shared.apps {
            app.start(&network);
        }
        shared
    }

    /// The network, as apps see it.
    #[must_use]
    pub fn network(&self) -> Network {
        Network::new(Arc::clone(&self.posts) as Arc<dyn Directory>)
    }

    /// The mailbox of a worker.
    #[must_use]
    pub fn mailbox(&self, worker: usize) -> Option<&Mailbox> {
        self.posts.mailboxes.get(worker)
    }

    /// The counters of each worker.
    #[must_use]
    pub fn counters(&self) -> &[Arc<Counters>] {
        &self.counters
    }

    pub(crate) fn apps(&self) -> &[Box<dyn DynApp>] {
        &self.apps
    }

    /// Claims a datapath id for a connection. `Err` tells who has it.
    pub(crate) fn claim(
        &self,
        id: ConnectionId,
        info: &Arc<SwitchInfo>,
        backlog: &Arc<AtomicUsize>,
    ) -> std::result::Result<(), ConnectionId> {
        let mut switches = self.posts.lock();
        if let Some(entry) = switches.get(&info.dpid) {
            return Err(entry.id);
        }
        let entry = Entry { id, info: Arc::clone(info), backlog: Arc::clone(backlog), up: false };
        switches.insert(info.dpid, entry);
        Ok(())
    }

    /// What is known of a switch has changed, or it is up now.
    pub(crate) fn update(&self, id: ConnectionId, info: &Arc<SwitchInfo>) {
        if let Some(entry) = self.posts.lock().get_mut(&info.dpid).filter(|entry| entry.id == id) {
            entry.info = Arc::clone(info);
            entry.up = true;
        }
    }

    /// A connection gives its datapath id back.
    pub(crate) fn release(&self, id: ConnectionId, dpid: Dpid) {
        let mut switches = self.posts.lock();
        if switches.get(&dpid).is_some_and(|entry| entry.id == id) {
            switches.remove(&dpid);
        }
    }

    pub(crate) fn post(&self, worker: usize, mail: Mail) -> bool {
        self.mailbox(worker).is_some_and(|mailbox| mailbox.push(mail))
    }
}

impl Posts {
    /// A panic under this lock leaves the map whole: each change is one call.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Dpid, Entry>> {
        self.switches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Directory for Posts {
    fn switches(&self) -> Vec<Arc<SwitchInfo>> {
        let switches = self.lock();
        switches.values().filter(|entry| entry.up).map(|entry| Arc::clone(&entry.info)).collect()
    }

    fn switch(&self, dpid: Dpid) -> Option<Arc<SwitchInfo>> {
        let switches = self.lock();
        switches.get(&dpid).filter(|entry| entry.up).map(|entry| Arc::clone(&entry.info))
    }

    fn send(&self, dpid: Dpid, message: &ToSwitch<'_>) -> Result<()> {
        let (id, version) = {
            let switches = self.lock();
            let up = switches.get(&dpid).filter(|entry| entry.up);
            let entry = up.ok_or(Error::UnknownSwitch(dpid))?;
            if entry.backlog.load(Ordering::Relaxed) > MAIL_BACKLOG_BYTES {
                return Err(Error::Backlog(dpid));
            }
            (entry.id, entry.info.version)
        };
        let mut out = Out::with_capacity(MAX_MESSAGE_LEN);
        // Nobody asked to hear what becomes of it: no app owns this id.
        message.encode(version, 0, &mut out)?;
        let mail = Mail::Send { to: id, bytes: out.as_slice().into() };
        match self.mailboxes.get(id.worker).is_some_and(|mailbox| mailbox.push(mail)) {
            true => Ok(()),
            false => Err(Error::Backlog(dpid)),
        }
    }
}
