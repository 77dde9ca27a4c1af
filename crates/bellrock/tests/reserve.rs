//! Bandwidth on every link of a path, or on none of them: the manual's example of transactions.

use bellrock::prelude::*;
use bellrock::transaction::TransactionError;

// ANCHOR: reserve
/// Free bandwidth of a link, in Mbit/s.
type Free = TVar<u64>;

/// Takes `rate` from every link of a path, or waits until all of them have enough.
fn reserve(tx: &mut Transaction<'_>, path: &[Free], rate: u64) -> Result<(), Interrupt> {
    for free in path {
        tx.require(tx.read(free)? >= rate)?;
        tx.modify(free, |free| free - rate)?;
    }
    Ok(())
}

/// Does the same on the first of two paths that has enough. Waits if neither has.
fn reserve_either(
    tx: &mut Transaction<'_>,
    [one, other]: [&[Free]; 2],
    rate: u64,
) -> Result<(), Interrupt> {
    tx.or_else(|tx| reserve(tx, one, rate), |tx| reserve(tx, other, rate))
}
// ANCHOR_END: reserve

#[test]
fn a_path_is_taken_whole_or_not_at_all() {
    let links = [10, 2, 8, 8].map(TVar::new);
    let free = || links.each_ref().map(TVar::load);
    let paths = [&links[..2], &links[2..]];
    let reserve = |rate| atomically(|tx| reserve_either(tx, paths, rate));

    assert_eq!((reserve(5), free()), (Ok(()), [10, 2, 3, 3]));
    assert_eq!((reserve(2), free()), (Ok(()), [8, 0, 3, 3]));
    assert_eq!((reserve(5), free()), (Err(TransactionError::WouldWait), [8, 0, 3, 3]));
}
