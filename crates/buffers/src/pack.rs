//! Places intervals in one block.

use crate::ALIGNMENT;
use crate::timeline::Interval;

/// Something that needs bytes for a while.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) size: u64,
    pub(crate) interval: Interval,
}

/// Rounds up to the alignment.
pub(crate) fn aligned(size: u64) -> u64 {
    size.div_ceil(ALIGNMENT).saturating_mul(ALIGNMENT)
}

/// An offset from `base` for each request such that no two that live at the same time overlap; and the end of the block.
/// Greedy: the largest first, each at the lowest gap where it fits.
pub(crate) fn pack(base: u64, requests: &[Request]) -> (Vec<u64>, u64) {
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(requests[i].size), requests[i].interval.begin, i));
    let mut offsets = vec![base; requests.len()];
    let mut placed: Vec<usize> = Vec::new();
    let mut end = base;
    for &i in &order {
        let size = aligned(requests[i].size);
        if size == 0 {
            continue;
        }
        let mut neighbours: Vec<(u64, u64)> = placed
            .iter()
            .filter(|&&j| requests[j].interval.overlaps(&requests[i].interval))
            .map(|&j| (offsets[j], offsets[j] + aligned(requests[j].size)))
            .collect();
        neighbours.sort_unstable();
        let mut offset = base;
        for (begin, after) in neighbours {
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
        Request { size, interval: Interval { begin, end } }
    }

    #[test]
    fn values_that_never_live_together_share_bytes() {
        let (offsets, end) = pack(0, &[request(100, 0, 1), request(60, 1, 2), request(128, 2, 3)]);
        assert_eq!(offsets, [0, 128, 0]);
        assert_eq!(end, 192);
    }

    #[test]
    fn a_gap_between_two_others_is_used() {
        // 256 bytes that die early leave a gap under the later one.
        let requests = [request(256, 0, 1), request(192, 0, 5), request(64, 2, 5), request(128, 2, 5)];
        let (offsets, end) = pack(64, &requests);
        assert_eq!(offsets, [64, 320, 192, 64]);
        assert_eq!(end, 512);
    }
}
