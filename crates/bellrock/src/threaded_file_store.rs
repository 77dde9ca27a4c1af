//! A store of named entries in a file that a thread of its own writes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;

use bellrock_api::runtime::{Promise, promise};
use bellrock_services::store::{
    CommitFuture, EntryStore, NotStored, StoreChange, StoreEvents, StoreLimits,
};

use crate::file_store::{FileStore, FileStoreError, NamedValues};

/// A store in a file that a thread of its own writes: for tasks, which run on workers, where
/// nothing waits for a disk. The thread ends with the store.
#[derive(Debug)]
pub(crate) struct ThreadedFileStore {
    store: Arc<FileStore>,
    jobs: Sender<WriteJob>,
}

/// Changes, and who waits for them.
type WriteJob = (Vec<StoreChange>, Promise<Result<u64, NotStored>>);

impl ThreadedFileStore {
    /// Opens a file as [`FileStore::create`] does, and starts the thread.
    pub(crate) fn create(path: PathBuf, entries: NamedValues) -> Result<Self, FileStoreError> {
        let store = Arc::new(FileStore::create(path.clone(), entries)?);
        let (jobs, waiting) = mpsc::channel::<WriteJob>();
        let written = Arc::clone(&store);
        let run = move || {
            for (changes, answer) in waiting {
                answer.resolve(written.commit_now(changes));
            }
        };
        let thread = thread::Builder::new().name("file-store".into()).spawn(run);
        match thread {
            Ok(_) => Ok(ThreadedFileStore { store, jobs }),
            Err(error) => Err(FileStoreError::Io { path, error }),
        }
    }
}

impl EntryStore for ThreadedFileStore {
    fn limits(&self) -> StoreLimits {
        self.store.limits()
    }

    fn commit(&self, changes: Vec<StoreChange>) -> CommitFuture {
        let (answer, answered) = promise();
        let ended = || NotStored::Unavailable("the thread that writes the file has ended".into());
        if self.jobs.send((changes, answer)).is_err() {
            return Box::pin(std::future::ready(Err(ended())));
        }
        Box::pin(async move { answered.await.unwrap_or_else(|| Err(ended())) })
    }

    fn follow(&self) -> StoreEvents {
        self.store.follow()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::pin::pin;
    use std::task::{Context, Poll, Wake, Waker};

    use super::*;
    use crate::file_store::read;

    /// Waits for a future in this thread.
    fn block_on<F: Future>(future: F) -> F::Output {
        struct Unpark(thread::Thread);
        impl Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut future = pin!(future);
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(value) => return value,
                Poll::Pending => thread::park(),
            }
        }
    }

    /// Tasks wait for it without a worker's thread.
    #[test]
    fn a_thread_writes_the_file_and_answers() {
        let place = crate::configured::test_directory("threaded-store");
        let path = place.join("store.json");
        let store = ThreadedFileStore::create(path.clone(), Vec::new()).unwrap();
        let put = |value: &str, expected| StoreChange::Put {
            name: "k".into(),
            value: value.into(),
            expected,
        };
        let revision = block_on(store.commit(vec![put("1", 0)])).unwrap();
        let written = read(&path, |_| panic!("it is not of version 1")).unwrap();
        assert_eq!(written, [("k".into(), "1".into())]);
        let conflict = block_on(store.commit(vec![put("2", revision + 1)]));
        assert_eq!(conflict, Err(NotStored::Conflict { name: "k".into() }));
        fs::remove_dir_all(place).unwrap();
    }
}
