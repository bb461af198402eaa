//! Packs requests into one block.

use crate::ALIGNMENT;
use crate::timeline::Interval;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A request for bytes during some intervals.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) size: u64,
    /// Disjoint, in ascending order.
    pub(crate) intervals: Vec<Interval>,
}

impl Request {
    /// True if both need their bytes at the same tick.
    fn meets(&self, other: &Self) -> bool {
        let (mut i, mut j) = (0, 0);
        while let (Some(x), Some(y)) = (self.intervals.get(i), other.intervals.get(j)) {
            if x.overlaps(y) {
                return true;
            }
            if x.end < y.end { i += 1 } else { j += 1 }
        }
        false
    }

    fn begin(&self) -> usize {
        self.intervals.first().map_or(0, |interval| interval.begin)
    }

    fn length(&self) -> usize {
        self.intervals.last().map_or(0, |interval| interval.end) - self.begin()
    }
}

/// Rounds up to the alignment.
pub(crate) fn aligned(size: u64) -> u64 {
    size.div_ceil(ALIGNMENT).saturating_mul(ALIGNMENT)
}

/// Maximum of the bytes that are needed at one tick, which is a lower bound of the block's size.
pub(crate) fn lower_bound(requests: &[Request]) -> u64 {
    let mut changes: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for request in requests {
        for interval in &request.intervals {
            let size = aligned(request.size);
            let begin = changes.entry(interval.begin).or_default();
            begin.0 = begin.0.saturating_add(size);
            let after = changes.entry(interval.end + 1).or_default();
            after.1 = after.1.saturating_add(size);
        }
    }
    let (mut live, mut maximum) = (0u64, 0);
    for (begun, ended) in changes.into_values() {
        live = live.saturating_sub(ended).saturating_add(begun);
        maximum = maximum.max(live);
    }
    maximum
}

/// Returns an offset from `base` for each request, such that no two requests that are live at the
/// same time overlap, and the end of the block. Each request is placed greedily in the lowest gap
/// that fits. The largest comes first; if that leaves gaps, other orders are tried and the best
/// result is used. Each order is improved step by step: the request that ended up last is placed
/// first.
pub(crate) fn pack(base: u64, requests: &[Request]) -> (Vec<u64>, u64) {
    let lower_limit = base.saturating_add(lower_bound(requests));
    let size = |i: usize| u128::from(requests[i].size);
    let length = |i: usize| requests[i].length() as u128;
    let keys: [&dyn Fn(usize) -> u128; 4] =
        [&|i| size(i), &|i| size(i) * (length(i) + 1), &|i| length(i), &|_| 0];
    let mut best: Option<(Vec<u64>, u64)> = None;
    let mut steps = MAX_STEPS;
    for key in keys {
        let mut order: Vec<usize> = (0..requests.len()).collect();
        order.sort_by_key(|&i| (Reverse(key(i)), requests[i].begin(), i));
        for _ in 0..MAX_IMPROVEMENTS {
            let packed = pack_in_order(base, requests, &order);
            let ends_last = |&i: &usize| packed.0[i].saturating_add(aligned(requests[i].size)) == packed.1;
            let last = order.iter().position(ends_last);
            if best.as_ref().is_none_or(|best| packed.1 < best.1) {
                best = Some(packed);
            }
            steps = steps.saturating_sub(requests.len().saturating_mul(requests.len()));
            if steps == 0 || best.as_ref().is_some_and(|best| best.1 <= lower_limit) {
                return best.unwrap_or_default();
            }
            match last {
                Some(last) if last > 0 => order[..=last].rotate_right(1),
                _ => break,
            }
        }
    }
    best.unwrap_or((Vec::new(), base))
}

/// Upper bound of the improvements of one order.
const MAX_IMPROVEMENTS: usize = 24;

/// Approximate number of pairs of requests to examine before the best result so far is used.
const MAX_STEPS: usize = 60_000_000;

fn pack_in_order(base: u64, requests: &[Request], order: &[usize]) -> (Vec<u64>, u64) {
    let mut offsets = vec![base; requests.len()];
    let mut placed: Vec<usize> = Vec::new();
    let mut end = base;
    for &i in order {
        let size = aligned(requests[i].size);
        if size == 0 {
            continue;
        }
        let mut neighbors: Vec<(u64, u64)> = placed
            .iter()
            .filter(|&&j| requests[j].meets(&requests[i]))
            .map(|&j| (offsets[j], offsets[j] + aligned(requests[j].size)))
            .collect();
        neighbors.sort_unstable();
        let mut offset = base;
        for (begin, after) in neighbors {
            if begin >= offset.saturating_add(size) {
                break;
            }
            offset = offset.max(after);
        }
        offsets[i] = offset;
        end = end.max(offset.saturating_add(size));
        placed.push(i);
    }
    (offsets, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(size: u64, begin: usize, end: usize) -> Request {
        Request { size, intervals: vec![Interval { begin, end }] }
    }

    #[test]
    fn values_that_never_live_together_share_bytes() {
        let (offsets, end) = pack(0, &[request(100, 0, 1), request(60, 1, 2), request(128, 2, 3)]);
        assert_eq!(offsets, [0, 128, 0]);
        assert_eq!(end, 192);
    }

    #[test]
    fn a_gap_between_two_others_is_used() {
        // 256 bytes that die early leave a gap below the later request.
        let requests = [request(256, 0, 1), request(192, 0, 5), request(64, 2, 5), request(128, 2, 5)];
        let (offsets, end) = pack(64, &requests);
        assert_eq!(offsets, [64, 320, 192, 64]);
        assert_eq!(end, 512);
    }

    #[test]
    fn a_value_lends_its_bytes_between_its_intervals() {
        let mut twice = request(192, 0, 1);
        twice.intervals.push(Interval { begin: 6, end: 7 });
        let requests = [twice, request(128, 2, 5), request(64, 2, 7)];
        let (offsets, end) = pack(0, &requests);
        assert_eq!(offsets, [0, 0, 192]);
        assert_eq!((end, lower_bound(&requests)), (256, 256));
    }

    #[test]
    fn another_order_is_taken_where_it_leaves_no_gap() {
        // Ordered by size, the fourth request finds no room below the third.
        let requests = [
            request(320, 0, 0),
            request(256, 0, 1),
            request(256, 2, 3),
            request(192, 1, 2),
            request(128, 3, 4),
            request(384, 4, 4),
        ];
        assert_packs_into(&requests, 576);
    }

    /// Packs requests into as many bytes as are live at one tick, without overlaps.
    fn assert_packs_into(requests: &[Request], bytes: u64) {
        let (offsets, end) = pack(0, requests);
        assert_eq!(end, bytes, "{offsets:?}");
        for (i, x) in requests.iter().enumerate() {
            for (j, y) in requests.iter().enumerate().skip(i + 1) {
                let apart = offsets[i] + x.size <= offsets[j] || offsets[j] + y.size <= offsets[i];
                assert!(apart || !x.meets(y), "{i} and {j}: {offsets:?}");
            }
        }
    }

    #[test]
    fn an_order_improves_when_the_last_request_comes_first() {
        // Tick 0 needs 320, 192, and 64 bytes. Each order alone ends at 640.
        let requests = [
            request(320, 4, 4),
            request(128, 3, 5),
            request(192, 0, 3),
            request(320, 0, 0),
            request(64, 0, 1),
        ];
        assert_packs_into(&requests, 576);
    }

    #[test]
    fn requests_that_are_large_and_long_come_first_where_that_leaves_no_gap() {
        // Tick 4 needs 128, 192, 256, and 192 bytes.
        let requests = [
            request(128, 1, 4),
            request(192, 4, 5),
            request(256, 3, 5),
            request(320, 1, 3),
            request(192, 4, 5),
        ];
        assert_packs_into(&requests, 768);
    }

    #[test]
    fn long_requests_come_first_where_that_leaves_no_gap() {
        // Tick 1 needs all except the third.
        let requests = [
            request(128, 1, 3),
            request(256, 0, 1),
            request(320, 3, 5),
            request(192, 1, 1),
            request(320, 1, 3),
            request(256, 1, 4),
        ];
        assert_packs_into(&requests, 1152);
    }

    #[test]
    fn the_last_tick_of_a_value_counts() {
        // Both are live at tick 3, in 64 and 128 bytes.
        assert_eq!(lower_bound(&[request(64, 0, 3), request(100, 3, 5)]), 192);
        assert_eq!(lower_bound(&[request(64, 0, 3), request(100, 4, 5)]), 128);
        assert_eq!(lower_bound(&[]), 0);
    }
}
