//! Loops over 8-bit counters, with trip counts from simulation.

use super::{between, exactly, trip_count};
use crate::analysis::Range;
use crate::{Module, parse};

/// A loop over an 8-bit counter, which wraps soon: `i` changes by `step` while `i direction n`.
fn small_loop(element_type: &str, direction: &str, step: i64) -> Module {
    let step = if element_type == "u8" { step.rem_euclid(256) } else { step };
    let text = format!(
        "HloModule m
condition {{
  s = (T[], T[]) parameter(0)
  i = T[] get-tuple-element(s), index=0
  n = T[] get-tuple-element(s), index=1
  ROOT p = pred[] compare(i, n), direction={direction}
}}
body {{
  s = (T[], T[]) parameter(0)
  i = T[] get-tuple-element(s), index=0
  n = T[] get-tuple-element(s), index=1
  step = T[] constant({step})
  j = T[] add(i, step)
  ROOT r = (T[], T[]) tuple(j, n)
}}
ENTRY main {{
  s = (T[], T[]) parameter(0)
  ROOT w = (T[], T[]) while(s), condition=condition, body=body
}}"
    );
    parse(&text.replace("T[]", &format!("{element_type}[]"))).unwrap()
}

/// Returns the trip count and whether the counter wraps before the loop ends; `None` if it never
/// ends.
fn simulate(is_signed: bool, direction: &str, step: i64, start: i64, limit: i64) -> Option<(u64, bool)> {
    let (low, high) = if is_signed { (-128, 127) } else { (0, 255) };
    let (mut i, mut wraps) = (start, false);
    for count in 0..2000 {
        let continues = match direction {
            "LT" => i < limit,
            "LE" => i <= limit,
            "GT" => i > limit,
            "GE" => i >= limit,
            "NE" => i != limit,
            _ => i == limit,
        };
        if !continues {
            return Some((count, wraps));
        }
        let next = i + step;
        wraps |= next < low || next > high;
        i = (next - low).rem_euclid(256) + low;
    }
    None
}

#[test]
fn trip_counts_match_simulation() {
    for element_type in ["s8", "u8"] {
        let is_signed = element_type == "s8";
        let (low, high) = if is_signed { (-128, 127) } else { (0, 255) };
        for direction in ["LT", "LE", "GT", "GE", "NE", "EQ"] {
            for step in [-7, -3, -1, 1, 2, 5] {
                let module = small_loop(element_type, direction, step);
                let find = |name| module.computations().find(|(_, c)| c.name() == name).unwrap().1;
                let (condition, body) = (find("condition"), find("body"));
                let count_of = |start: Range, limit: Range| {
                    trip_count(&module, condition, body, &|k| if k == 0 { start } else { limit })
                };
                let values: Vec<i64> = (low..=high).step_by(17).chain([low + 1, high - 1, high]).collect();
                for &start in &values {
                    for &limit in &values {
                        let what = format!("{element_type} {start} {direction} {limit} by {step}");
                        let runs = simulate(is_signed, direction, step, start, limit);
                        let expected = runs.filter(|&(_, wraps)| !wraps).map(|(count, _)| count);
                        assert_eq!(count_of(exactly(start), exactly(limit)).exact, expected, "{what}");
                        // Bounds hold for each value of a range.
                        let near = |value: i64| between((value - 2).max(low), (value + 3).min(high));
                        let bound = count_of(near(start), near(limit)).bound;
                        let fits = |bound: u64| runs.is_some_and(|(count, _)| count <= bound);
                        assert!(bound.is_none_or(fits), "{what}: {runs:?} within {bound:?}");
                    }
                }
            }
        }
    }
}
