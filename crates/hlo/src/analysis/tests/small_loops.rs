//! Loops over counters of 8 bits, counted by simulation.

use super::{between, exactly, trip_count};
use crate::analysis::Range;
use crate::{Module, parse};

/// A loop over a counter of 8 bits, which wraps soon: the counter `i` moves by `step` while `i direction n`.
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

/// How often such a loop runs, and whether its counter wraps before it ends; `None` if it never does.
fn simulated(is_signed: bool, direction: &str, step: i64, start: i64, limit: i64) -> Option<(u64, bool)> {
    let (low, high) = if is_signed { (-128, 127) } else { (0, 255) };
    let (mut i, mut wraps) = (start, false);
    for count in 0..2000 {
        let goes_on = match direction {
            "LT" => i < limit,
            "LE" => i <= limit,
            "GT" => i > limit,
            "GE" => i >= limit,
            "NE" => i != limit,
            _ => i == limit,
        };
        if !goes_on {
            return Some((count, wraps));
        }
        let next = i + step;
        wraps |= next < low || next > high;
        i = (next - low).rem_euclid(256) + low;
    }
    None
}

#[test]
fn small_loops_run_as_often_as_is_promised() {
    for element_type in ["s8", "u8"] {
        let is_signed = element_type == "s8";
        let (low, high) = if is_signed { (-128, 127) } else { (0, 255) };
        for direction in ["LT", "LE", "GT", "GE", "NE", "EQ"] {
            for step in [-7, -3, -1, 1, 2, 5] {
                let module = small_loop(element_type, direction, step);
                let find = |name| module.computations().find(|(_, c)| c.name() == name).unwrap().1;
                let (condition, body) = (find("condition"), find("body"));
                let of = |start: Range, limit: Range| {
                    trip_count(&module, condition, body, &|k| if k == 0 { start } else { limit })
                };
                let values: Vec<i64> = (low..=high).step_by(17).chain([low + 1, high - 1, high]).collect();
                for &start in &values {
                    for &limit in &values {
                        let what = format!("{element_type} {start} {direction} {limit} by {step}");
                        let runs = simulated(is_signed, direction, step, start, limit);
                        let expected = runs.filter(|&(_, wraps)| !wraps).map(|(count, _)| count);
                        assert_eq!(of(exactly(start), exactly(limit)).exact, expected, "{what}");
                        // Bounds hold for each value of a range.
                        let near = |value: i64| between((value - 2).max(low), (value + 3).min(high));
                        let bound = of(near(start), near(limit)).bound;
                        let fits = |bound: u64| runs.is_some_and(|(count, _)| count <= bound);
                        assert!(bound.is_none_or(fits), "{what}: {runs:?} within {bound:?}");
                    }
                }
            }
        }
    }
}
