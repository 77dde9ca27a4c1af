//! Places for those who have not shown yet who they are.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// A network with so many more places than a newcomer's gives way to it at once, without a pause.
const MANY_MORE: usize = 8;

/// The network that an address counts for: itself, or for IPv6 its /64, since whoever has one
/// address of IPv6 mostly has all of that network (RFC 6177 §2).
#[must_use]
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

/// How many places there are.
#[derive(Clone, Copy, Debug)]
pub struct PlaceLimits {
    /// Number of all places, without the reserved ones.
    pub total: usize,
    /// Number of places of one network.
    pub per_network: usize,
    /// Whether the loopback has no such limit: all users of a machine share it, and so do all
    /// clients behind a proxy.
    pub spares_loopback: bool,
    /// Minimum time without progress before a place is lost to a network that has as many.
    pub quiet: Duration,
}

/// Places for connections whose other end has not shown yet who it is: in a handshake, or before a
/// greeting. They cost a stranger nothing, so they must not keep others out: who makes no progress
/// for longest gives way, first in the network that has most places.
///
/// ```
/// # use std::time::Duration;
/// use bellrock_pace::{PlaceLimits, Places};
///
/// let quiet = Duration::from_millis(50);
/// let limits = PlaceLimits { total: 2, per_network: 2, spares_loopback: false, quiet };
/// let mut places = Places::new(limits, []);
/// let stranger = "192.0.2.1".parse().unwrap();
/// assert_eq!(places.take(1, stranger, Duration::ZERO), Ok(None));
/// assert_eq!(places.take(2, stranger, Duration::ZERO), Ok(None));
/// assert!(places.take(3, stranger, Duration::ZERO).is_err(), "the others have just come");
/// let friend = "192.0.2.2".parse().unwrap();
/// assert_eq!(places.take(4, friend, quiet), Ok(Some(1)));
/// ```
#[derive(Debug)]
pub struct Places<K> {
    limits: PlaceLimits,
    /// Networks whose places are reserved: nobody else can take them.
    reserved: Vec<IpAddr>,
    taken: HashMap<K, Place>,
    /// Number of places by network.
    by_network: HashMap<IpAddr, usize>,
    /// Number of places that are not reserved.
    shared: usize,
}

#[derive(Debug)]
struct Place {
    network: IpAddr,
    /// Whether anything has come from there.
    has_spoken: bool,
    /// Time of its last progress.
    since: Duration,
}

/// All places are taken, by those who have just come or make progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPlace;

impl<K: Copy + Eq + Hash + Ord> Places<K> {
    /// Makes places, with so many as one network has for each of the `reserved` addresses.
    pub fn new(limits: PlaceLimits, reserved: impl IntoIterator<Item = IpAddr>) -> Self {
        Places {
            limits,
            reserved: reserved.into_iter().map(network_of).collect(),
            taken: HashMap::new(),
            by_network: HashMap::new(),
            shared: 0,
        }
    }

    /// Takes a place for `key`. Returns the one that gives way, which its owner ends.
    ///
    /// # Errors
    /// [`NoPlace`]: nobody gives way.
    pub fn take(&mut self, key: K, from: IpAddr, now: Duration) -> Result<Option<K>, NoPlace> {
        let network = network_of(from);
        let own = self.count(network);
        let is_spared = self.limits.spares_loopback && network.is_loopback();
        let is_network_full = own >= self.limits.per_network && !is_spared;
        let is_full =
            is_network_full || !self.is_reserved(network) && self.shared >= self.limits.total;
        let gone = match is_full {
            true => Some(self.gives_way(network, is_network_full, now).ok_or(NoPlace)?),
            false => None,
        };
        if let Some(gone) = &gone {
            self.free(gone);
        }
        // A key that has a place already has one.
        self.free(&key);
        self.taken.insert(key, Place { network, has_spoken: false, since: now });
        *self.by_network.entry(network).or_insert(0) += 1;
        self.shared += usize::from(!self.is_reserved(network));
        Ok(gone)
    }

    /// Something has come from there.
    pub fn progress(&mut self, key: &K, now: Duration) {
        if let Some(place) = self.taken.get_mut(key) {
            place.has_spoken = true;
            place.since = now;
        }
    }

    /// Frees a place.
    pub fn free(&mut self, key: &K) {
        let Some(place) = self.taken.remove(key) else { return };
        self.shared -= usize::from(!self.is_reserved(place.network));
        if let Some(count) = self.by_network.get_mut(&place.network) {
            *count -= 1;
            if *count == 0 {
                self.by_network.remove(&place.network);
            }
        }
    }

    /// Whether `key` has a place.
    #[must_use]
    pub fn has(&self, key: &K) -> bool {
        self.taken.contains_key(key)
    }

    /// Number of places that are taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.taken.len()
    }

    /// Whether no place is taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// Who gives way to a connection from a network.
    fn gives_way(&self, network: IpAddr, only_there: bool, now: Duration) -> Option<K> {
        let own = self.count(network);
        let may_go = |place: &Place| {
            let is_own = place.network == network;
            if !is_own && (only_there || self.is_reserved(place.network)) {
                return false;
            }
            let count = self.count(place.network);
            let is_quiet = now.saturating_sub(place.since) >= self.limits.quiet;
            count > own + MANY_MORE || is_quiet && (is_own || count > own)
        };
        let candidates = self.taken.iter().filter(|(_, place)| may_go(place));
        let order = |(key, place): &(&K, &Place)| {
            let most = std::cmp::Reverse(self.count(place.network));
            (most, place.has_spoken, place.since, **key)
        };
        candidates.min_by_key(order).map(|(key, _)| *key)
    }

    fn count(&self, network: IpAddr) -> usize {
        self.by_network.get(&network).copied().unwrap_or(0)
    }

    fn is_reserved(&self, network: IpAddr) -> bool {
        self.reserved.contains(&network)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails so")]
mod tests {
    use super::*;

    const QUIET: Duration = Duration::from_millis(50);
    const LIMITS: PlaceLimits =
        PlaceLimits { total: 64, per_network: 16, spares_loopback: false, quiet: QUIET };
    const NOW: Duration = Duration::from_secs(1);

    fn ip(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    /// Places that strangers of these addresses have filled, each with its share.
    fn filled(addresses: std::ops::Range<u8>) -> Places<u32> {
        let mut places = Places::new(LIMITS, [ip(200)]);
        for (number, place) in (0..16).flat_map(|_| addresses.clone()).enumerate() {
            let number = u32::try_from(number).unwrap();
            assert_eq!(places.take(number, ip(place), NOW), Ok(None));
        }
        places
    }

    #[test]
    fn a_newcomer_gets_a_place_of_those_who_have_many_even_if_they_have_just_come() {
        let mut places = filled(1..5);
        let switch = 1000;
        for round in 0..100 {
            let gone = places.take(switch, ip(100), NOW).unwrap();
            assert_eq!(gone.is_some(), round == 0, "the strangers have not got it back");
            // A stranger comes again, all the time.
            for number in 0..64 {
                assert_eq!(places.take(2000 + number, ip(1), NOW), Err(NoPlace));
            }
            places.free(&switch);
        }
    }

    #[test]
    fn an_address_displaces_its_own_connections_only() {
        let mut places = filled(1..2);
        let other = 1000;
        places.take(other, ip(2), Duration::ZERO).unwrap();
        assert_eq!(places.take(1001, ip(1), NOW), Err(NoPlace), "its others have just come");
        assert_eq!(places.take(1001, ip(1), NOW + QUIET), Ok(Some(0)));
        assert!(places.has(&other));
    }

    #[test]
    fn connections_with_progress_stay_longer_than_silent_ones() {
        let mut places = filled(1..2);
        places.progress(&0, NOW);
        assert_eq!(places.take(1001, ip(1), NOW + QUIET), Ok(Some(1)));
        for number in 2..16 {
            places.progress(&number, NOW + QUIET);
        }
        places.progress(&1001, NOW + QUIET);
        assert_eq!(places.take(1002, ip(1), NOW + 2 * QUIET), Ok(Some(0)), "it spoke first");
    }

    #[test]
    fn reserved_places_are_nobody_elses() {
        let mut places = filled(1..5);
        for number in 0..16 {
            assert_eq!(places.take(1000 + number, ip(200), NOW), Ok(None));
        }
        // The strangers' newcomers take no place of theirs, though they are silent longest.
        let later = NOW + QUIET;
        for number in 0..64 {
            places.progress(&number, later);
        }
        assert_eq!(places.take(2000, ip(5), later), Ok(Some(0)));
        assert!((1000..1016).all(|number| places.has(&number)));
        // Nor do those of that address displace others.
        assert_eq!(places.take(3000, ip(200), later), Ok(Some(1000)));
    }

    #[test]
    fn addresses_that_have_one_place_each_give_way_after_a_pause_only() {
        let mut places = Places::new(LIMITS, []);
        for number in 0..64_u8 {
            places.take(u32::from(number), ip(number), NOW).unwrap();
        }
        assert_eq!(places.take(100, ip(100), NOW), Err(NoPlace));
        assert_eq!(places.take(100, ip(100), NOW + QUIET), Ok(Some(0)));
        assert_eq!(places.take(101, ip(100), NOW + QUIET), Err(NoPlace), "it has one");
        assert_eq!(places.len(), 64);
        (0..102).for_each(|number| places.free(&number));
        assert!(places.is_empty() && places.by_network.is_empty() && places.shared == 0);
    }

    #[test]
    fn the_addresses_of_a_network_of_ipv6_count_as_one() {
        let of = |text: &str| network_of(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!([of("192.0.2.1"), of("::1"), of("fe80::1")], ["192.0.2.1", "::1", "fe80::"]);
    }

    #[test]
    fn the_loopback_has_no_share_where_it_is_spared() {
        let limits = PlaceLimits { spares_loopback: true, ..LIMITS };
        let mut places = Places::new(limits, []);
        let local = IpAddr::from([127, 0, 0, 1]);
        for number in 0..64 {
            assert_eq!(places.take(number, local, NOW), Ok(None));
        }
        assert_eq!(places.take(64, local, NOW), Err(NoPlace));
        assert_eq!(places.take(64, ip(1), NOW), Ok(Some(0)), "others get theirs");
    }
}
