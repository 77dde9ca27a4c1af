//! Values that one part of the controller publishes and all others read.

use std::fmt;
use std::future::poll_fn;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use arc_swap::ArcSwap;
use arc_swap::cache::Cache;

use crate::waiting::{WakerList, wake};

/// Reads a value that its owner publishes as a whole. Readers take no lock, and a value never
/// changes under them. Tasks can wait for the next value. Cheap to clone: all clones read one
/// value.
///
/// Only the [`Publisher`] changes the value, as with `Receiver` and `Sender` of tokio's `watch`.
/// An app reads the switches, the topology and the hosts, and cannot replace them:
///
/// ```
/// # use bellrock_api::Network;
/// fn start(network: &Network) {
///     println!("{} links", network.topology().load().links.len());
/// }
/// ```
///
/// ```compile_fail,E0599
/// # use bellrock_api::{Network, Topology};
/// fn start(network: &Network) {
///     network.topology().publish(Topology::default());
/// }
/// ```
///
/// The default is a watch without a publisher: its value never changes.
pub struct Watch<T>(Arc<WatchState<T>>);

/// Publishes a value, for all its [`Watch`]es. Who holds the publisher owns the value.
///
/// It fits values that are read far more often than they change. Each publication replaces the
/// whole value, so versions of a large value should share their parts.
///
/// ```
/// use bellrock_api::Publisher;
///
/// let limit = Publisher::new(100);
/// let watch = limit.watch().clone();
/// let mut reader = watch.reader();
/// assert_eq!(**reader.get(), 100);
/// limit.publish(200);
/// assert_eq!(**reader.get(), 200);
/// assert_eq!(watch.load().version(), 1);
/// ```
pub struct Publisher<T>(Watch<T>);

struct WatchState<T> {
    value: Arc<ArcSwap<Published<T>>>,
    /// Tasks that wait for the next version. Publishing holds this lock, so versions come one by
    /// one.
    wakers: Mutex<WakerList>,
}

/// A published value, with its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published<T> {
    version: u64,
    value: T,
}

/// A published value that a reader holds. Later publications do not change it.
pub type Snapshot<T> = Arc<Published<T>>;

impl<T> Published<T> {
    /// Number of values published before it.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }
}

impl<T> Deref for Published<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Publisher<T> {
    /// Makes a publisher with this first value.
    #[must_use]
    pub fn new(value: T) -> Self {
        Publisher(Watch::of(value))
    }

    /// The watch for readers.
    #[must_use]
    pub fn watch(&self) -> &Watch<T> {
        &self.0
    }

    /// Publishes the next value.
    pub fn publish(&self, value: T) {
        self.update(|_| value);
    }

    /// Publishes `next` of the current value. No other publication happens meanwhile.
    pub fn update(&self, next: impl FnOnce(&T) -> T) {
        let inner = &*self.0.0;
        let mut wakers = lock(&inner.wakers);
        let present = inner.value.load();
        let version = present.version + 1;
        let value = next(&present.value);
        inner.value.store(Arc::new(Published { version, value }));
        let woken_tasks = wakers.take();
        drop(wakers);
        woken_tasks.for_each(wake);
    }
}

impl<T> Watch<T> {
    fn of(value: T) -> Self {
        let value = Arc::new(ArcSwap::from_pointee(Published { version: 0, value }));
        Watch(Arc::new(WatchState { value, wakers: Mutex::default() }))
    }

    /// The current value.
    #[must_use]
    pub fn load(&self) -> Snapshot<T> {
        self.0.value.load_full()
    }

    /// Makes a reader for frequent reads, such as in a handler. While nothing is published, a read
    /// compares two addresses and writes nothing.
    #[must_use]
    pub fn reader(&self) -> WatchReader<T> {
        WatchReader(Cache::new(Arc::clone(&self.0.value)))
    }

    /// Waits until the version is greater than `version`, and returns the latest value. Values in
    /// between are skipped.
    ///
    /// ```
    /// # async fn example(limit: bellrock_api::Watch<u32>) {
    /// let mut now = limit.load();
    /// loop {
    ///     now = limit.changed(now.version()).await;
    /// }
    /// # }
    /// ```
    pub async fn changed(&self, version: u64) -> Snapshot<T> {
        let mut wait = WatchWait { wakers: &self.0.wakers, number: None };
        poll_fn(|context| {
            let mut wakers = lock(&self.0.wakers);
            let value = self.load();
            if value.version > version {
                return Poll::Ready(value);
            }
            wakers.wait(&mut wait.number, context.waker());
            Poll::Pending
        })
        .await
    }

    /// Waits until the version is greater than `version`. For a task that waits for several things:
    ///
    /// ```
    /// # use bellrock_api::Network;
    /// use futures_lite::FutureExt;
    ///
    /// # async fn example(network: &Network) {
    /// let (switches, hosts) = (network.watch_switches(), network.hosts());
    /// let (up, known) = (switches.load(), hosts.load());
    /// switches.newer(up.version()).or(hosts.newer(known.version())).await;
    /// # }
    /// ```
    pub async fn newer(&self, version: u64) {
        self.changed(version).await;
    }
}

/// A waiting task. When dropped early, it removes its waker.
struct WatchWait<'a> {
    wakers: &'a Mutex<WakerList>,
    number: Option<u64>,
}

impl Drop for WatchWait<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            lock(self.wakers).forget(number);
        }
    }
}

/// A panic under this lock has published nothing, and leaves the list consistent.
fn lock(wakers: &Mutex<WakerList>) -> MutexGuard<'_, WakerList> {
    wakers.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Clone for Watch<T> {
    fn clone(&self) -> Self {
        Watch(Arc::clone(&self.0))
    }
}

impl<T: Default> Default for Watch<T> {
    fn default() -> Self {
        Watch::of(T::default())
    }
}

impl<T: Default> Default for Publisher<T> {
    fn default() -> Self {
        Publisher::new(T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for Watch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&self.load()).finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for Publisher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Publisher").field(&self.0.load()).finish()
    }
}

/// Reads a [`Watch`] frequently. [`Watch::reader`] returns it.
#[derive(Clone)]
pub struct WatchReader<T>(Cache<Arc<ArcSwap<Published<T>>>, Snapshot<T>>);

impl<T> WatchReader<T> {
    /// The current value.
    pub fn get(&mut self) -> &Published<T> {
        self.0.load()
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake, Waker};

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_waiting_task_is_woken_once_and_gets_the_latest_value() {
        let publisher = Publisher::new(1);
        let watch = publisher.watch();
        let woken = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let mut changed = pin!(watch.changed(0));
        assert!(changed.as_mut().poll(&mut context).is_pending());
        assert!(changed.as_mut().poll(&mut context).is_pending());
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        publisher.publish(2);
        publisher.update(|two| two + 1);
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        let Poll::Ready(value) = changed.poll(&mut context) else { panic!("it has changed") };
        assert_eq!((**value, value.version()), (3, 2));
    }

    #[test]
    fn a_dropped_wait_leaves_no_waker_behind() {
        let publisher = Publisher::new(1);
        let watch = publisher.watch();
        let woken = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&woken));
        for _ in 0..3 {
            let mut changed = Box::pin(watch.changed(0));
            assert!(changed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        drop(waker);
        assert_eq!(Arc::strong_count(&woken), 1);
    }

    #[test]
    fn a_snapshot_stays_what_it_was() {
        let publisher = Publisher::new(vec![1]);
        let watch = publisher.watch();
        let (before, mut reader) = (watch.load(), watch.reader());
        publisher.update(|list| [list.as_slice(), &[2]].concat());
        assert_eq!((before.as_slice(), reader.get().as_slice()), (&[1][..], &[1, 2][..]));
    }
}
