//! Division of requests into runs.

/// Properties of a request that decide with which others it shares a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Number of rows; `None` if the request must run alone.
    pub rows: Option<i64>,
    /// The sizes of all other named dimensions.
    pub sizes: Vec<i64>,
}

/// Divides requests into runs of at most `largest` rows, in the order of their first requests. The
/// requests of a run have equal sizes.
pub fn runs(loads: &[Load], largest: i64) -> Vec<Vec<usize>> {
    let mut runs: Vec<(i64, Vec<usize>)> = Vec::new();
    for (number, load) in loads.iter().enumerate() {
        let joins = |(rows, run): &&mut (i64, Vec<usize>)| {
            let first = &loads[run[0]];
            first.rows.is_some()
                && first.sizes == load.sizes
                && load.rows.is_some_and(|more| rows.checked_add(more).is_some_and(|all| all <= largest))
        };
        match runs.iter_mut().find(joins) {
            Some((rows, run)) => {
                *rows += load.rows.unwrap_or(0);
                run.push(number);
            }
            None => runs.push((load.rows.unwrap_or(0), vec![number])),
        }
    }
    runs.into_iter().map(|(_, run)| run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(rows: i64, size: i64) -> Load {
        Load { rows: Some(rows), sizes: vec![size] }
    }

    #[test]
    fn runs_are_filled_up_and_sizes_are_not_mixed() {
        let loads = [load(3, 7), load(4, 7), load(1, 9), load(2, 7), load(1, 7), load(9, 7)];
        assert_eq!(runs(&loads, 8), [vec![0, 1, 4], vec![2], vec![3], vec![5]]);
        assert_eq!(runs(&[], 8), Vec::<Vec<usize>>::new());
        assert_eq!(runs(&[load(i64::MAX, 0), load(i64::MAX, 0)], 8), [vec![0], vec![1]]);
    }

    #[test]
    fn requests_without_rows_run_alone() {
        let alone = Load { rows: None, sizes: vec![] };
        assert_eq!(runs(&[alone.clone(), alone], 8), [vec![0], vec![1]]);
    }
}
