//! What every later answer must agree with: the cluster's id, and revisions that only grow.

use super::Error;
use super::answers::Header;

/// What answers have shown so far.
#[derive(Debug, Default)]
pub(super) struct History {
    cluster: Option<u64>,
    revision: i64,
    /// After an answer with an earlier revision, nothing that was read before may be relied on.
    broken: Option<Error>,
}

impl History {
    /// The newest revision that an answer had. Ask before a request, and give it to
    /// [`History::check`].
    pub(super) fn revision(&self) -> Result<i64, Error> {
        self.broken.clone().map_or(Ok(self.revision), Err)
    }

    /// Id of the cluster, once an answer has named it.
    pub(super) fn cluster(&self) -> Option<u64> {
        self.cluster
    }

    /// Remembers a revision that a watch has shown.
    pub(super) fn seen(&mut self, revision: i64) {
        self.revision = self.revision.max(revision);
    }

    /// Checks that an answer is of the same cluster.
    pub(super) fn check_cluster(&mut self, endpoint: &str, header: Header) -> Result<(), Error> {
        let found = header.cluster_id;
        if found == 0 {
            let why = "it names no cluster".into();
            return Err(Error::Malformed { endpoint: endpoint.into(), why });
        }
        let expected = *self.cluster.get_or_insert(found);
        if expected == found {
            return Ok(());
        }
        Err(Error::OtherCluster { endpoint: endpoint.into(), expected, found })
    }

    /// Checks the answer to a linearizable request that was sent when the newest revision was
    /// `before`.
    ///
    /// Answers that overlap may come in any order. And a member that lags behind may show an
    /// earlier revision in answers that are not linearizable: those of a status, of a watch and
    /// about leases.
    pub(super) fn check(
        &mut self,
        endpoint: &str,
        header: Header,
        before: i64,
    ) -> Result<(), Error> {
        self.check_cluster(endpoint, header)?;
        // It may have been forgotten in the meantime.
        if header.revision < before.min(self.revision) {
            let (seen, found) = (self.revision, header.revision);
            let error = Error::WentBack { endpoint: endpoint.into(), seen, found };
            self.broken = Some(error.clone());
            return Err(error);
        }
        self.revision = self.revision.max(header.revision);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(cluster_id: u64, revision: i64) -> Header {
        Header { cluster_id, revision, ..Header::default() }
    }

    #[test]
    fn the_first_answer_names_the_cluster() {
        let mut history = History::default();
        history.check("a", header(7, 1), 0).unwrap();
        history.check_cluster("b", header(7, 0)).unwrap();
        let error = history.check("b", header(8, 2), 1).unwrap_err();
        let expected = Error::OtherCluster { endpoint: "b".into(), expected: 7, found: 8 };
        assert_eq!(error, expected);
        assert!(history.check("a", header(7, 2), 1).is_ok(), "other addresses still answer");
        assert!(History::default().check("a", header(0, 2), 1).is_err(), "no cluster");
    }

    #[test]
    fn a_revision_that_went_back_is_remembered() {
        let mut history = History::default();
        history.check("a", header(7, 9), 0).unwrap();
        assert!(history.check("a", header(7, 8), 8).is_ok(), "it was sent before 9 was seen");
        let before = history.revision().unwrap();
        let error = history.check("b", header(7, 8), before).unwrap_err();
        assert_eq!(error, Error::WentBack { endpoint: "b".into(), seen: 9, found: 8 });
        assert_eq!(history.revision(), Err(error), "also when the revision has grown again");
    }
}
