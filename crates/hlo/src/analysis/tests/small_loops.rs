//! Loops over 8-bit counters, with trip counts from simulation.

use super::{ANY, NONE, UP, between, count, exact, exactly, from_zero, module, trip_count};
use crate::analysis::{Range, induction_variables, state_ranges};
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

/// Returns an integer as the nearest `bf16`, which has eight digits.
fn rounded(integer: i64) -> i64 {
    let digits = i64::BITS - integer.unsigned_abs().leading_zeros();
    let unit = 1i64 << digits.saturating_sub(8);
    let (quotient, rest) = (integer.div_euclid(unit), integer.rem_euclid(unit));
    let is_up = 2 * rest > unit || (2 * rest == unit && quotient % 2 != 0);
    (quotient + i64::from(is_up)) * unit
}

/// Converters of models write comparisons of integers as those of floats. From 257 on, `bf16` does
/// not have all integers: the count is unknown there, or still right.
#[test]
fn converted_integers_are_compared_as_integers() {
    let values: Vec<i64> = (-259..=259).filter(|v: &i64| v.abs() > 252 || v % 63 == 0).collect();
    let mut known = 0;
    for direction in ["LT", "LE", "GT", "GE", "NE", "EQ"] {
        for step in [-5, -1, 1, 3] {
            let text = small_loop("s16", direction, step).to_text();
            let compare = format!("compare(i, n), direction={direction}");
            assert!(text.contains(&compare), "{text}");
            let text = text.replace(&compare, &format!("compare(a, b), direction={direction}"));
            let text =
                text.replace("  ROOT p =", "  a = bf16[] convert(i)\n  b = bf16[] convert(n)\n  ROOT p =");
            let module = parse(&text).unwrap();
            let find = |name| module.computations().find(|(_, c)| c.name() == name).unwrap().1;
            for &start in &values {
                for &limit in &values {
                    let initial = |k| exactly(if k == 0 { start } else { limit });
                    let count = trip_count(&module, find("condition"), find("body"), &initial);
                    let goes_on = |runs: &i64| {
                        let (i, limit) = (rounded(start + runs * step), rounded(limit));
                        match direction {
                            "LT" => i < limit,
                            "LE" => i <= limit,
                            "GT" => i > limit,
                            "GE" => i >= limit,
                            "NE" => i != limit,
                            _ => i == limit,
                        }
                    };
                    let runs = (0..2000i64).find(|runs| !goes_on(runs)).map(|runs| runs as u64);
                    let what = format!("{start} {direction} {limit} by {step}");
                    match count.exact {
                        Some(exact) => assert_eq!(Some(exact), runs, "{what}"),
                        None => assert!(runs.is_none() || limit.abs() > 255, "{what}: {runs:?}"),
                    }
                    known += usize::from(count.exact.is_some());
                }
            }
        }
    }
    assert!(known > 1000, "{known}");
}

/// A counter that becomes a float, grows, and becomes an integer again, as exports of PaddlePaddle
/// count. `f32` has no 2^24 + 1: such a counter never gets there.
#[test]
fn counters_may_be_floats_between_iterations() {
    let up =
        "  f1 = f32[] constant(1)\n  a = f32[] convert(i)\n  b = f32[] add(a, f1)\n  j = s32[] convert(b)";
    let below_limit = "  ROOT p = pred[] compare(i, n), direction=LT";
    assert_eq!(count(below_limit, up, from_zero()), count(below_limit, UP, from_zero()));
    assert_eq!(count(below_limit, up, from_zero()), exact(10));
    let with_limit = |limit: i64| {
        let [i, _, f, l, u, k] = from_zero();
        [i, exactly(limit), f, l, u, k]
    };
    assert_eq!(count(below_limit, up, with_limit(16_000_000)), exact(16_000_000));
    assert_eq!(count(below_limit, up, with_limit(16_800_000)), NONE);
    // 2^24 - 1 is the last number that this analysis takes for exact.
    let parts =
        "  f1 = f32[] constant(0.5)\n  a = f32[] convert(i)\n  b = f32[] add(a, f1)\n  j = s32[] convert(b)";
    assert_eq!(count(below_limit, parts, from_zero()), NONE);

    let module = module(below_limit, up, ["j", "n", "f", "l", "u", "k"]);
    let find = |name| module.computations().find(|(_, c)| c.name() == name).unwrap().1;
    let initial = from_zero();
    let ranges = state_ranges(&module, find("condition"), find("body"), &|k| initial[k]);
    assert_eq!(ranges[..3], [between(0, 9), exactly(10), ANY]);
    // Where the sum rounds, the steps differ.
    assert!(induction_variables(&module, find("body")).is_empty());
}
