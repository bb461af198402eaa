//! Numbers with units.

/// Formats a time in seconds with three digits and a suitable unit.
pub fn seconds(value: f64) -> String {
    match value {
        v if v < 1e-6 => format!("{:.0} ns", v * 1e9),
        v if v < 1e-3 => format!("{} us", digits(v * 1e6)),
        v if v < 1.0 => format!("{} ms", digits(v * 1e3)),
        v => format!("{} s", digits(v)),
    }
}

/// Formats a number with three digits and a decimal prefix, such as `612 M`.
pub fn count(value: f64) -> String {
    match value {
        v if v < 1e3 => format!("{v:.0}"),
        v if v < 1e6 => format!("{} k", digits(v / 1e3)),
        v if v < 1e9 => format!("{} M", digits(v / 1e6)),
        v if v < 1e12 => format!("{} G", digits(v / 1e9)),
        v => format!("{} T", digits(v / 1e12)),
    }
}

/// Formats a size in bytes with a unit.
pub fn bytes(value: u64) -> String {
    match value {
        0..1000 => format!("{value} B"),
        1000..1_000_000 => format!("{:.1} kB", value as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", value as f64 / 1e6),
        _ => format!("{:.2} GB", value as f64 / 1e9),
    }
}

/// Formats a share of 1 in percent.
pub fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn digits(value: f64) -> String {
    match value {
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 100.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_few_digits_and_a_unit() {
        assert_eq!(seconds(3.4567e-6), "3.46 us");
        assert_eq!(seconds(0.0456), "45.6 ms");
        assert_eq!(seconds(12e-9), "12 ns");
        assert_eq!(count(612_345_678.0), "612 M");
        assert_eq!(count(7.0), "7");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(2048), "2.0 kB");
        assert_eq!(bytes(14_161_000), "14.2 MB");
        assert_eq!(percent(0.25), "25.0%");
    }
}
