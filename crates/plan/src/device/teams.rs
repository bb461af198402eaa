//! Teams: threads of a workgroup that reduce the same elements together.

use crate::device::GroupGrid;

/// Threads of a workgroup that holds several teams.
const GROUP_THREADS: i64 = 128;

/// Largest number of threads in a team.
const MAX_TEAM: i64 = 512;

/// How the threads of workgroups form teams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Teams {
    /// Number of teams that have work.
    pub count: i64,
    /// Teams of a workgroup; a power of two.
    pub per_group: i64,
    /// Threads of a team; a power of two.
    pub size: i64,
    /// True if neighboring threads belong to neighboring teams, false if they belong to the same
    /// one.
    pub is_across: bool,
}

impl Teams {
    /// Teams of neighboring threads for `count` rows of `units` loads each.
    pub(crate) fn of_rows(count: i64, units: i64, processors: i64) -> Self {
        let in_warp = power_of_two_from((units + 1) / 2).min(32);
        let size = if count.saturating_mul(32) < processors * 1024 || units > 512 {
            power_of_two_from(units / 4).clamp(in_warp, if units >= 8192 { MAX_TEAM } else { MAX_TEAM / 2 })
        } else {
            in_warp
        };
        let mut per_group = (GROUP_THREADS / size).max(1).min(power_of_two_from(count));
        // Few rows are spread over more workgroups, of at least a warp.
        while per_group > 1 && per_group * size > 32 && count / per_group < 2 * processors {
            per_group /= 2;
        }
        Self { count, per_group, size, is_across: false }
    }

    /// Teams of threads that stand side by side for `count` columns of `length` elements each.
    pub(crate) fn of_columns(count: i64, length: i64) -> Self {
        let per_group = power_of_two_from(count).min(32);
        let size = power_of_two_to(length / 4).min(2 * GROUP_THREADS / per_group);
        Self { count, per_group, size, is_across: true }
    }

    /// Threads of a workgroup.
    pub const fn threads(&self) -> i64 {
        self.per_group * self.size
    }

    /// Number of workgroups.
    pub const fn groups(&self) -> i64 {
        (self.count + self.per_group - 1) / self.per_group
    }

    /// The grid, if each team's work is divided into `parts`.
    pub(crate) const fn grid(&self, parts: i64) -> GroupGrid {
        GroupGrid { groups: (self.groups() * parts) as u64, threads: self.threads() as u32 }
    }
}

impl std::fmt::Display for Teams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = if self.is_across { "columns" } else { "rows" };
        write!(f, "{} threads for each of {} {what} in {} groups", self.size, self.per_group, self.groups())
    }
}

/// The smallest power of two that is at least `size`.
pub(super) fn power_of_two_from(size: i64) -> i64 {
    size.clamp(1, 1 << 40).unsigned_abs().next_power_of_two() as i64
}

/// The largest power of two that is at most `size`, or 1.
pub(super) fn power_of_two_to(size: i64) -> i64 {
    1 << size.max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teams_grow_with_rows_and_fill_the_processors() {
        // Rows, loads per row; threads per team, teams per group, groups.
        let table = [
            (1, 1, (1, 1, 1)),
            (100_000, 2, (1, 128, 782)),
            (100_000, 12, (8, 16, 6250)),
            (4096, 192, (32, 4, 1024)),
            (64, 192, (64, 1, 64)),
            (8192, 1024, (256, 1, 8192)),
            (1, 1 << 20, (512, 1, 1)),
        ];
        for (count, units, expected) in table {
            let teams = Teams::of_rows(count, units, 108);
            assert_eq!((teams.size, teams.per_group, teams.groups()), expected, "{count} rows of {units}");
        }
    }

    #[test]
    fn teams_of_columns_stand_side_by_side() {
        let table =
            [(1000, 500, (8, 32, 32)), (3, 1 << 20, (64, 4, 1)), (64, 9, (2, 32, 2)), (1, 2, (1, 1, 1))];
        for (count, length, expected) in table {
            let teams = Teams::of_columns(count, length);
            assert_eq!(
                (teams.size, teams.per_group, teams.groups()),
                expected,
                "{count} columns of {length}"
            );
        }
    }
}
