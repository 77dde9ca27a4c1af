//! Assigns cores to controller and generator.

/// Threads of the generator per thread of the controller, if there are enough cores.
const GENERATORS_PER_WORKER: usize = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) controller: Vec<usize>,
    pub(super) generator: Vec<usize>,
    /// Whether both share a core, because there are too few.
    pub(super) shared: bool,
}

impl Share {
    /// Gives the first cores to the controller, one per thread, and the next ones to the generator.
    /// If none is left, the generator shares the last one.
    pub(super) fn of(cores: &[usize], workers: usize) -> Self {
        let workers = workers.clamp(1, cores.len().max(1));
        let (controller, rest) = cores.split_at(workers.min(cores.len()));
        let most = workers * GENERATORS_PER_WORKER;
        let generator: Vec<usize> = rest.iter().copied().take(most).collect();
        let shared = generator.is_empty();
        let generator = match shared {
            true => controller.last().copied().into_iter().collect(),
            false => generator,
        };
        Share { controller: controller.to_vec(), generator, shared }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(cores: &[usize], workers: usize) -> (Vec<usize>, Vec<usize>, bool) {
        let Share { controller, generator, shared } = Share::of(cores, workers);
        (controller, generator, shared)
    }

    #[test]
    fn both_have_cores_of_their_own_while_there_are_some() {
        assert_eq!(share(&[0, 1], 1), (vec![0], vec![1], false));
        assert_eq!(share(&[0, 1], 2), (vec![0, 1], vec![1], true));
        assert_eq!(share(&[4, 5, 6, 7], 1), (vec![4], vec![5, 6], false));
        assert_eq!(share(&[4, 5, 6, 7], 3), (vec![4, 5, 6], vec![7], false));
        assert_eq!(share(&[3], 1), (vec![3], vec![3], true));
    }
}
