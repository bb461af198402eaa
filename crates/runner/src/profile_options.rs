//! Options of profiles.

/// Options of a profile.
#[derive(Clone, Debug)]
pub struct ProfileOptions {
    /// Title of the report.
    pub title: String,
    /// Number of measured runs, after one warm-up run.
    pub steps: u64,
    /// Number of threads.
    pub threads: usize,
    /// True to measure the machine's peak.
    pub peak: bool,
}
