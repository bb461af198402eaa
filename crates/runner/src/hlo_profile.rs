//! Formats the counters of a profiled program in the style of XLA's execution profile.

use compiler::ProfileCounter;
use std::fmt::Write as _;

/// Formats the counters of `runs` runs that took `seconds` in total: one line for the whole
/// program, then one for each instruction with a nonzero time, longest first. The first counter is
/// that of the whole program. It determines the length of a tick.
pub fn hlo_profile(counters: &[ProfileCounter], ticks: &[i64], runs: u64, seconds: f64) -> String {
    let (Some(total), Some(&all)) = (counters.first(), ticks.first()) else { return String::new() };
    let second = all as f64 / seconds;
    let mut instructions: Vec<(&ProfileCounter, i64)> =
        counters.iter().zip(ticks.iter().copied()).skip(1).filter(|(_, ticks)| *ticks > 0).collect();
    instructions.sort_by_key(|(_, ticks)| std::cmp::Reverse(*ticks));
    let whole = instructions.iter().fold(total.clone(), |sum, (counter, _)| ProfileCounter {
        flops: sum.flops.saturating_add(counter.flops),
        transcendentals: sum.transcendentals.saturating_add(counter.transcendentals),
        bytes: sum.bytes.saturating_add(counter.bytes),
        ..sum
    });
    let mut out = format!(
        "Execution profile: {runs} runs in {:.1} us, {:.3} ticks a nanosecond\n",
        seconds * 1e6,
        second / 1e9
    );
    line(&mut out, &whole, all, "100.% 100Σ", second, runs);
    let mut so_far = 0i64;
    for (counter, ticks) in instructions {
        so_far = so_far.saturating_add(ticks);
        let percent = |part: i64| 100.0 * part as f64 / all as f64;
        let share = format!("{:5.2}% {:2.0}Σ", percent(ticks), percent(so_far));
        line(&mut out, counter, ticks, &share, second, runs);
    }
    out
}

fn line(out: &mut String, counter: &ProfileCounter, ticks: i64, share: &str, second: f64, runs: u64) {
    let seconds = ticks as f64 / second;
    let per_second = |count: u64, unit: &str| match count {
        0 => String::new(),
        count => format!("{}{unit}", with_prefix(count as f64 * runs as f64 / seconds)),
    };
    let _ = writeln!(
        out,
        "{ticks:15} cycles ({share}) :: {:12.1} usec :: {:>18} :: {:>18} :: {:>14} :: {}",
        seconds * 1e6,
        per_second(counter.flops, "FLOP/s"),
        per_second(counter.transcendentals, "TROP/s"),
        per_second(counter.bytes, "B/s"),
        counter.name
    );
}

/// Formats a number with a decimal prefix.
fn with_prefix(mut number: f64) -> String {
    let mut prefixes = ["", "K", "M", "G", "T", "P"].into_iter();
    let mut prefix = prefixes.next().unwrap_or_default();
    for next in prefixes {
        if number < 1000.0 {
            break;
        }
        (number, prefix) = (number / 1000.0, next);
    }
    format!("{number:.2}{prefix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_comes_first_and_rates_are_those_of_all_runs() {
        let counter = |name: &str, flops: u64, bytes: u64| ProfileCounter {
            name: name.to_owned(),
            flops,
            bytes,
            ..ProfileCounter::default()
        };
        let counters = [
            counter("[total]", 0, 0),
            counter("%a", 0, 5),
            counter("%tuple", 0, 7),
            counter("%dot", 1_000_000, 100),
        ];
        let text = hlo_profile(&counters, &[4000, 500, 0, 3000], 10, 2e-6);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Execution profile: 10 runs in 2.0 us, 2.000 ticks a nanosecond");
        let fields = |line: &str| line.split(" :: ").map(|f| f.trim().to_owned()).collect::<Vec<_>>();
        assert_eq!(
            fields(lines[1]),
            ["4000 cycles (100.% 100Σ)", "2.0 usec", "5.00TFLOP/s", "", "525.00MB/s", "[total]"]
        );
        assert_eq!(
            fields(lines[2]),
            ["3000 cycles (75.00% 75Σ)", "1.5 usec", "6.67TFLOP/s", "", "666.67MB/s", "%dot"]
        );
        assert_eq!(fields(lines[3]), ["500 cycles (12.50% 88Σ)", "0.2 usec", "", "", "200.00MB/s", "%a"]);
        assert_eq!(lines.len(), 4, "instructions without time have no line");
    }
}
