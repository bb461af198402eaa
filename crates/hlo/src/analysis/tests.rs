//! Loops whose trip counts were computed by hand, and programs whose rows do or do not mix.

mod independence;
mod needed;
mod small_loops;

use super::*;
use crate::{Module, parse};
use std::collections::BTreeMap;

/// The state: a counter, a limit, a flag, a long counter, an unsigned counter, a second counter.
const STATE: &str = "(s32[], s32[], pred[], s64[], u32[], s32[])";

/// Builds a module whose loop has this condition and body. Both have the state's elements i, n, f,
/// l, u, and k in scope.
fn module(condition: &str, body: &str, results: [&str; 6]) -> Module {
    let elements = "
  s = STATE parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  f = pred[] get-tuple-element(s), index=2
  l = s64[] get-tuple-element(s), index=3
  u = u32[] get-tuple-element(s), index=4
  k = s32[] get-tuple-element(s), index=5
  zero = s32[] constant(0)
  one = s32[] constant(1)
  two = s32[] constant(2)
  three = s32[] constant(3)
  ten = s32[] constant(10)
  yes = pred[] constant(true)
  no = pred[] constant(false)
  long_one = s64[] constant(1)
  long_ten = s64[] constant(10)
  natural_one = u32[] constant(1)
  all_ones = u32[] constant(4294967295)";
    let text = format!(
        "HloModule m
condition {{{elements}
{condition}
}}
body {{{elements}
{body}
  ROOT r = STATE tuple({})
}}
ENTRY main {{
  s = STATE parameter(0)
  ROOT w = STATE while(s), condition=condition, body=body
}}",
        results.join(", ")
    );
    let module = parse(&text.replace("STATE", STATE)).unwrap_or_else(|e| panic!("{e}\n{text}"));
    crate::verify(&module).unwrap();
    module
}

/// Ranges of the elements before the loop: i, n, f, l, u, k.
type Initial = [Range; 6];

fn exactly(value: i64) -> Range {
    Range::exactly(value)
}

fn between(low: i64, high: i64) -> Range {
    Range { low: Some(low), high: Some(high) }
}

const ANY: Range = Range::UNKNOWN;

fn count_of(module: &Module, initial: Initial) -> TripCount {
    let find = |name| module.computations().find(|(_, c)| c.name() == name).unwrap().1;
    trip_count(module, find("condition"), find("body"), &|k| initial[k])
}

fn from_zero() -> Initial {
    [exactly(0), exactly(10), ANY, exactly(0), exactly(0), exactly(0)]
}

/// The trip count of a loop with the next value `j` of i from `next`; other elements are kept.
fn count(condition: &str, next: &str, initial: Initial) -> TripCount {
    count_of(&module(condition, next, ["j", "n", "f", "l", "u", "k"]), initial)
}

fn exact(count: u64) -> TripCount {
    TripCount { exact: Some(count), bound: Some(count) }
}

fn at_most(bound: u64) -> TripCount {
    TripCount { exact: None, bound: Some(bound) }
}

const NONE: TripCount = TripCount { exact: None, bound: None };
const UP: &str = "  j = s32[] add(i, one)";
const UP_BY_THREE: &str = "  j = s32[] add(three, i)";
const DOWN: &str = "  j = s32[] subtract(i, one)";
const DOWN_BY_THREE: &str = "  minus = s32[] negate(three)\n  j = s32[] add(i, minus)";

fn compare(a: &str, direction: &str, b: &str) -> String {
    format!("  ROOT p = pred[] compare({a}, {b}), direction={direction}")
}

#[test]
fn all_directions_operand_orders_and_signs_of_steps() {
    let start = |i, n| [exactly(i), exactly(n), ANY, ANY, ANY, ANY];
    let rows = [
        // The direction, the step, i, n, and the trip count.
        ("LT", UP, 0, 10, exact(10)),
        ("LT", UP_BY_THREE, 0, 10, exact(4)),
        ("LT", UP_BY_THREE, 0, 9, exact(3)),
        ("LT", UP, 10, 10, exact(0)),
        ("LT", UP, 11, 10, exact(0)),
        ("LT", UP, -3, 2, exact(5)),
        ("LE", UP, 0, 10, exact(11)),
        ("LE", UP_BY_THREE, 0, 9, exact(4)),
        ("LE", UP, 11, 10, exact(0)),
        ("GT", DOWN, 10, 0, exact(10)),
        ("GT", DOWN_BY_THREE, 10, 0, exact(4)),
        ("GE", DOWN, 10, 1, exact(10)),
        ("GE", DOWN_BY_THREE, 9, 0, exact(4)),
        ("GE", DOWN, 0, 1, exact(0)),
        ("NE", UP, 0, 10, exact(10)),
        ("NE", UP_BY_THREE, 1, 10, exact(3)),
        ("NE", DOWN, 10, 0, exact(10)),
        ("NE", UP, 10, 10, exact(0)),
        ("EQ", UP, 10, 10, exact(1)),
        ("EQ", UP, 9, 10, exact(0)),
        // These step over the limit or away from it: they would only end by wrapping.
        ("NE", UP_BY_THREE, 0, 10, NONE),
        ("NE", DOWN, 0, 10, NONE),
        ("LT", DOWN, 0, 10, NONE),
        ("GT", UP, 10, 0, NONE),
        ("GE", UP, 10, 0, NONE),
        ("LE", DOWN, 0, 10, NONE),
    ];
    for (direction, next, i, n, expected) in rows {
        let swapped = match direction {
            "LT" => "GT",
            "LE" => "GE",
            "GT" => "LT",
            "GE" => "LE",
            other => other,
        };
        assert_eq!(
            count(&compare("i", direction, "n"), next, start(i, n)),
            expected,
            "{i} {direction} {n}, {next}"
        );
        assert_eq!(
            count(&compare("n", swapped, "i"), next, start(i, n)),
            expected,
            "{n} {swapped} {i}, {next}"
        );
    }
}

#[test]
fn integers_that_would_wrap_have_no_trip_count() {
    let limits = |i: i64, n: i64| [exactly(i), exactly(n), ANY, ANY, ANY, ANY];
    let most = i64::from(i32::MAX);
    assert_eq!(count(&compare("i", "LT", "n"), UP, limits(most - 5, most)), exact(5));
    assert_eq!(count(&compare("i", "LE", "n"), UP, limits(most - 5, most)), NONE);
    assert_eq!(count(&compare("i", "LT", "n"), UP_BY_THREE, limits(most - 5, most)), NONE);
    assert_eq!(count(&compare("i", "LT", "n"), UP_BY_THREE, limits(most - 6, most)), exact(2));
    let least = i64::from(i32::MIN);
    assert_eq!(count(&compare("i", "GT", "n"), DOWN, limits(0, least)), exact(1 << 31));
    assert_eq!(count(&compare("i", "GE", "n"), DOWN, limits(0, least)), NONE);
    // i + 1 wraps one iteration earlier than i.
    let next_less = "  next = s32[] add(i, one)\n  ROOT p = pred[] compare(next, n), direction=LT";
    assert_eq!(count(next_less, UP, limits(most - 5, most)), exact(4));
    let next_at_most = "  next = s32[] add(i, one)\n  ROOT p = pred[] compare(next, n), direction=LE";
    assert_eq!(count(next_at_most, UP, limits(most - 5, most)), NONE);
}

#[test]
fn steps_through_tuples_copies_conversions_and_reshapes() {
    let chain = "  copied = s32[] copy(i)
  wide = s64[] convert(copied)
  more = s64[] add(wide, long_one)
  vector = s64[1] reshape(more)
  scalar = s64[] reshape(vector)
  pair = (s64[], s32[]) tuple(scalar, two)
  taken = s64[] get-tuple-element(pair), index=0
  narrow = s32[] convert(taken)
  j = s32[] add(narrow, one)";
    assert_eq!(count(&compare("i", "LT", "n"), chain, from_zero()), exact(5));
    // A select is not an induction step, and depends on data.
    let select = "  more = s32[] add(i, one)\n  j = s32[] select(f, more, i)";
    assert_eq!(count(&compare("i", "LT", "n"), select, from_zero()), NONE);
    // A step that is unknown before the loop.
    let unknown = "  j = s32[] add(i, k)";
    let mut initial = from_zero();
    initial[5] = ANY;
    assert_eq!(count(&compare("i", "LT", "n"), unknown, initial), NONE);
    initial[5] = exactly(4);
    assert_eq!(count(&compare("i", "LT", "n"), unknown, initial), exact(3));
    // 2 * i < 10, 20 - i > 10.
    let doubled = "  d = s32[] multiply(two, i)\n  ROOT p = pred[] compare(d, n), direction=LT";
    assert_eq!(count(doubled, UP, from_zero()), exact(5));
    let mirrored = "  twenty = s32[] constant(20)\n  d = s32[] subtract(twenty, i)\n  ROOT p = pred[] compare(d, n), direction=GT";
    assert_eq!(count(mirrored, UP, from_zero()), exact(10));
}

#[test]
fn other_integer_types() {
    let long = "  more = s64[] add(l, long_one)";
    let results = ["i", "n", "f", "more", "u", "k"];
    assert_eq!(count_of(&module(&compare("l", "LT", "long_ten"), long, results), from_zero()), exact(10));
    let mut initial = from_zero();
    initial[3] = exactly(i64::MAX - 1);
    let to_end =
        "  end = s64[] constant(9223372036854775807)\n  ROOT p = pred[] compare(l, end), direction=LT";
    assert_eq!(count_of(&module(to_end, long, results), initial), exact(1));
    let past_end =
        "  end = s64[] constant(9223372036854775807)\n  ROOT p = pred[] compare(l, end), direction=LE";
    assert_eq!(count_of(&module(past_end, long, results), initial), NONE);

    // Unsigned: counts down by adding 2^32 - 1. u >= 0 never fails.
    let less = "  less = u32[] add(u, all_ones)";
    let results = ["i", "n", "f", "l", "less", "k"];
    initial[4] = exactly(7);
    assert_eq!(count_of(&module(&compare("u", "GE", "natural_one"), less, results), initial), exact(7));
    let never = "  none = u32[] constant(0)\n  ROOT p = pred[] compare(u, none), direction=GE";
    assert_eq!(count_of(&module(never, less, results), initial), NONE);
    // 0 - 1 would wrap to the largest number, but u != 0 fails before.
    let ne = "  none = u32[] constant(0)\n  ROOT p = pred[] compare(u, none), direction=NE";
    assert_eq!(count_of(&module(ne, less, results), initial), exact(7));
}

#[test]
fn conjunctions_disjunctions_and_data() {
    let both = |op: &str, second: &str| {
        format!("  a = pred[] compare(i, n), direction=LT\n  {second}\n  ROOT p = pred[] {op}(a, b)")
    };
    let less = |limit: &str| format!("b = pred[] compare(i, {limit}), direction=LT");
    assert_eq!(count(&both("and", &less("three")), UP, from_zero()), exact(3));
    assert_eq!(count(&both("or", &less("three")), UP, from_zero()), exact(10));
    // Data can end the loop early or keep it running.
    assert_eq!(count(&both("and", "b = pred[] copy(f)"), UP, from_zero()), at_most(10));
    assert_eq!(count(&both("or", "b = pred[] copy(f)"), UP, from_zero()), NONE);
    // A known invariant flag decides.
    let mut initial = from_zero();
    initial[2] = exactly(1);
    assert_eq!(count(&both("and", "b = pred[] copy(f)"), UP, initial), exact(10));
    initial[2] = exactly(0);
    assert_eq!(count(&both("and", "b = pred[] copy(f)"), UP, initial), exact(0));
    assert_eq!(count(&both("or", "b = pred[] copy(f)"), UP, initial), exact(10));
    // The body never runs, regardless of the data.
    let mut started = from_zero();
    started[0] = exactly(10);
    assert_eq!(count(&both("and", "b = pred[] copy(f)"), UP, started), exact(0));
    // not (i >= n or f), by De Morgan's laws.
    let negated = "  a = pred[] compare(i, n), direction=GE
  o = pred[] or(a, f)
  ROOT p = pred[] not(o)";
    assert_eq!(count(negated, UP, from_zero()), at_most(10));
    // If the first side of a disjunction fails only once, the loop continues afterwards.
    assert_eq!(count(&both("or", "b = pred[] compare(i, three), direction=NE"), UP, from_zero()), NONE);
    // select(a, b, false) is a conjunction.
    let select = "  a = pred[] compare(i, n), direction=LT
  ROOT p = pred[] select(a, f, no)";
    assert_eq!(count(select, UP, from_zero()), at_most(10));
    let equal = "  a = pred[] compare(i, n), direction=GE
  ROOT p = pred[] compare(a, no), direction=EQ";
    assert_eq!(count(equal, UP, from_zero()), exact(10));
    assert_eq!(count("  ROOT p = pred[] copy(yes)", UP, from_zero()), NONE);
    assert_eq!(count("  ROOT p = pred[] copy(no)", UP, from_zero()), exact(0));
    assert_eq!(count("  ROOT p = pred[] copy(f)", UP, from_zero()), NONE);
}

#[test]
fn ranges_bound_a_loop() {
    let mut initial = from_zero();
    initial[1] = between(2, 7);
    assert_eq!(count(&compare("i", "LT", "n"), UP, initial), at_most(7));
    assert_eq!(count(&compare("i", "NE", "n"), UP, initial), at_most(7));
    assert_eq!(count(&compare("i", "NE", "n"), UP_BY_THREE, initial), NONE);
    initial[1] = ANY;
    assert_eq!(count(&compare("i", "LT", "n"), UP, initial), NONE);
    // min(n, max(1, k)), as for sequences of different lengths.
    let limit = "  least = s32[] maximum(one, k)
  limit = s32[] minimum(ten, least)
  ROOT p = pred[] compare(i, limit), direction=LT";
    initial[5] = ANY;
    assert_eq!(count(limit, UP, initial), at_most(10));
    let clamp = "  limit = s32[] clamp(one, k, ten)\n  ROOT p = pred[] compare(i, limit), direction=LE";
    assert_eq!(count(clamp, UP, initial), at_most(11));
    let select = "  limit = s32[] select(f, ten, three)\n  ROOT p = pred[] compare(i, limit), direction=LT";
    assert_eq!(count(select, UP, initial), at_most(10));
    // A loop that counts down from the final value of another loop.
    let mut back = from_zero();
    back[0] = between(0, 100);
    assert_eq!(count(&compare("i", "GE", "one"), DOWN, back), at_most(100));
    back[0] = Range { low: None, high: Some(100) };
    assert_eq!(count(&compare("i", "GE", "one"), DOWN, back), at_most(100));
    back[0] = ANY;
    assert_eq!(count(&compare("i", "GE", "one"), DOWN, back).exact, None);
    // A limit that changes within a range.
    let changing = module(&limit.replace("one, k", "one, n"), UP, ["j", "k", "f", "l", "u", "n"]);
    assert_eq!(count_of(&changing, initial), at_most(10));
    let changing = module(
        "  limit = s32[] minimum(n, ten)\n  ROOT p = pred[] compare(i, limit), direction=NE",
        UP,
        ["j", "k", "f", "l", "u", "n"],
    );
    assert_eq!(count_of(&changing, initial), NONE);
}

#[test]
fn two_variables_meet() {
    let body = "  j = s32[] add(i, two)\n  less = s32[] subtract(k, one)";
    let results = ["j", "n", "f", "l", "u", "less"];
    let mut initial = from_zero();
    initial[5] = exactly(10);
    assert_eq!(count_of(&module(&compare("i", "LT", "k"), body, results), initial), exact(4));
    assert_eq!(count_of(&module(&compare("k", "GE", "i"), body, results), initial), exact(4));
    initial[5] = exactly(9);
    assert_eq!(count_of(&module(&compare("i", "LE", "k"), body, results), initial), exact(4));
    assert_eq!(count_of(&module(&compare("i", "GT", "k"), body, results), initial), exact(0));
    assert_eq!(count_of(&module(&compare("i", "NE", "k"), body, results), initial), NONE);
    initial[5] = between(3, 30);
    assert_eq!(count_of(&module(&compare("i", "LT", "k"), body, results), initial), at_most(10));
}

#[test]
fn invariants_and_induction_variables_of_a_body() {
    let text = "HloModule m
keep {
  p = (s32[], s32[]) parameter(0)
  a = s32[] get-tuple-element(p), index=0
  b = s32[] get-tuple-element(p), index=1
  one = s32[] constant(1)
  c = s32[] add(b, one)
  ROOT r = (s32[], s32[]) tuple(a, c)
}
few {
  p = (s32[], s32[]) parameter(0)
  b = s32[] get-tuple-element(p), index=1
  five = s32[] constant(5)
  ROOT r = pred[] compare(b, five), direction=LT
}
body {
  s = (s32[], f32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[] get-tuple-element(s), index=1
  y = s32[] get-tuple-element(s), index=2
  zero = s32[] constant(0)
  t = (s32[], s32[]) tuple(i, zero)
  w = (s32[], s32[]) while(t), condition=few, body=keep
  kept = s32[] get-tuple-element(w), index=0
  inner = s32[] get-tuple-element(w), index=1
  two = s32[] constant(2)
  j = s32[] subtract(kept, two)
  copied = f32[] copy(x)
  ROOT r = (s32[], f32[], s32[]) tuple(j, copied, inner)
}
condition {
  s = (s32[], f32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  zero = s32[] constant(0)
  ROOT r = pred[] compare(i, zero), direction=GT
}
ENTRY main {
  s = (s32[], f32[], s32[]) parameter(0)
  x = f32[] get-tuple-element(s), index=1
  nine = s32[] constant(9)
  t = (s32[], f32[], s32[]) tuple(nine, x, nine)
  w = (s32[], f32[], s32[]) while(t), condition=condition, body=body
  i = s32[] get-tuple-element(w), index=0
  y = s32[] get-tuple-element(w), index=2
  ROOT r = (s32[], s32[]) tuple(i, y)
}";
    let module = parse(text).unwrap();
    let find = |name| module.computations().find(|(_, c)| c.name() == name).unwrap().1;
    let body = find("body");
    assert_eq!(induction_variables(&module, body).into_iter().collect::<Vec<_>>(), [(0, -2)]);
    assert_eq!(invariant_elements(&module, body).into_iter().collect::<Vec<_>>(), [1]);
    let main = find("main");
    let after = |name| range_in(&module, main, main.find(name).unwrap(), &|_| None);
    // 9, 7, 5, 3, 1, -1. The inner loop ends at 5, but may not run at all.
    assert_eq!(after("i"), exactly(-1));
    assert_eq!(after("y"), between(5, 9));
    let initial = |k: usize| if k == 1 { ANY } else { exactly(9) };
    assert_eq!(state_ranges(&module, find("condition"), body, &initial), [between(1, 9), ANY, between(5, 9)]);
}

#[test]
fn interval_arithmetic() {
    let text = "HloModule m
max { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] maximum(a, b) }
sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }
ENTRY main {
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  v = s32[4] parameter(2)
  z = s32[] parameter(3)
  seven = s32[] constant(7)
  minus_two = s32[] constant(-2)
  zero = s32[] constant(0)
  five = s32[] constant(5)
  table = s32[3] constant({4, -6, 2})
  sum = s32[] add(x, y)
  difference = s32[] subtract(x, y)
  product = s32[] multiply(x, y)
  negated = s32[] negate(x)
  quotient = s32[] divide(x, minus_two)
  by_unknown = s32[] divide(x, x)
  rest = s32[] remainder(x, seven)
  wraps = s32[] add(z, seven)
  larger = s32[] maximum(z, seven)
  clamped = s32[] clamp(zero, z, seven)
  narrow = s8[] convert(y)
  too_narrow = u8[] convert(x)
  wide = u64[] convert(y)
  asked = pred[] compare(y, five), direction=GE
  number = s32[] convert(asked)
  third = s32[1] slice(v), slice={[2:3]}
  largest = s32[] reduce(v, zero), dimensions={0}, to_apply=max
  total = s32[] reduce(v, five), dimensions={0}, to_apply=sum
  totals = s32[4] reduce-window(v, five), window={size=3 pad=2_0}, to_apply=sum
  largest_two = s32[3] reduce-window(v, zero), window={size=2}, to_apply=max
  row = s32[1] dynamic-slice(table, z), dynamic_slice_sizes={1}
  absolute = s32[] abs(x)
  line = s32[2,6] iota(), iota_dimension=1
  f = pred[] compare(x, y), direction=LT
  chosen = s32[] select(f, x, seven)
  left = s32[] shift-left(x, five)
  far_left = s32[] shift-left(x, z)
  right = s32[] shift-right-arithmetic(x, five)
  far_right = s32[] shift-right-arithmetic(x, z)
  ROOT r = (s32[]) tuple(sum)
}";
    let module = parse(text).unwrap();
    let main = module.entry_computation();
    // x in -3..4, y in 10..20, elements of v in 1..9.
    let leaf = |id| match main[id].name() {
        "x" => Some(between(-3, 4)),
        "y" => Some(between(10, 20)),
        "v" => Some(between(1, 9)),
        _ => None,
    };
    let rows = [
        ("sum", between(7, 24)),
        ("difference", between(-23, -6)),
        ("product", between(-60, 80)),
        ("negated", between(-4, 3)),
        ("quotient", between(-2, 1)),
        ("by_unknown", ANY),
        ("rest", between(-3, 4)),
        ("wraps", ANY),
        ("larger", Range { low: Some(7), high: None }),
        ("clamped", between(0, 7)),
        ("narrow", between(10, 20)),
        ("too_narrow", Range { low: Some(0), high: None }),
        ("wide", between(10, 20)),
        ("asked", exactly(1)),
        ("number", exactly(1)),
        ("third", between(1, 9)),
        ("largest", between(1, 9)),
        ("total", between(9, 41)),
        // The window at the edge has fewer elements.
        ("totals", between(5, 32)),
        ("largest_two", between(0, 9)),
        ("row", between(-6, 4)),
        ("absolute", between(0, 4)),
        ("line", between(0, 5)),
        ("f", exactly(1)),
        ("chosen", between(-3, 4)),
        ("z", ANY),
        ("left", between(-96, 128)),
        ("far_left", ANY),
        ("right", between(-1, 0)),
        ("far_right", ANY),
    ];
    for (name, expected) in rows {
        let id = main.find(name).unwrap();
        assert_eq!(range_in(&module, main, id, &leaf), expected, "{name}");
        if !["largest", "total", "totals", "largest_two"].contains(&name) {
            assert_eq!(range(main, id, &leaf), expected, "{name}");
        }
    }
    assert_eq!(range(main, main.find("largest").unwrap(), &leaf), ANY);
}

#[test]
fn flags_fail_one_iteration_after_their_source() {
    let start = |i, flag| [exactly(i), exactly(10), flag, ANY, ANY, ANY];
    let count = |condition: &str, next: &str, initial| {
        let body = format!("{UP}\n{next}");
        count_of(&module(condition, &body, ["j", "n", "g", "l", "u", "k"]), initial)
    };
    let (runs, done) = ("  ROOT p = pred[] copy(f)", "  ROOT p = pred[] not(f)");
    let (yes, no) = (exactly(1), exactly(0));
    // do { i = i + 1; f = i < n; } while (f)
    let below = "  g = pred[] compare(j, n), direction=LT";
    assert_eq!(count(runs, below, start(0, yes)), exact(10));
    assert_eq!(count(runs, below, start(0, no)), exact(0));
    assert_eq!(count(runs, below, start(0, ANY)), at_most(10));
    // The old value decides, which adds one iteration.
    assert_eq!(count(runs, "  g = pred[] compare(i, n), direction=LT", start(0, yes)), exact(11));
    // while (true) { i = i + 1; if (i >= n) break; }
    let reached = "  g = pred[] compare(j, n), direction=GE";
    assert_eq!(count(done, reached, start(0, no)), exact(10));
    // Once set, the flag stays set.
    let stays = "  q = pred[] compare(j, n), direction=GE\n  g = pred[] or(f, q)";
    assert_eq!(count(done, stays, start(0, no)), exact(10));
    // Other data can set it earlier.
    let data = "  d = pred[] compare(k, n), direction=GE\n  q = pred[] compare(j, n), direction=GE\n  \
                g = pred[] or(d, q)";
    let changing = |next: &str, initial| {
        let body = format!("{UP}\n  m = s32[] multiply(k, k)\n{next}");
        count_of(&module(done, &body, ["j", "n", "g", "l", "u", "m"]), initial)
    };
    assert_eq!(changing(data, start(0, no)), at_most(10));
    // These never end.
    assert_eq!(
        count(runs, "  q = pred[] compare(j, n), direction=LT\n  g = pred[] or(f, q)", start(0, yes)),
        NONE
    );
    assert_eq!(count(runs, "  g = pred[] copy(f)", start(0, yes)), NONE);
    // It negates itself, so it ends after one iteration.
    assert_eq!(count(runs, "  g = pred[] not(f)", start(0, yes)), exact(1));
    // Alternates between true and false: a false value need not persist.
    let turns = "  q = pred[] compare(j, n), direction=LT\n  o = pred[] not(f)\n  g = pred[] or(o, q)";
    assert_eq!(count(runs, turns, start(0, yes)), NONE);
}

#[test]
fn a_counter_that_wraps_in_a_narrower_type_keeps_its_range() {
    // i is truncated to 8 bits: after 127 comes 128, which becomes -128, then -127.
    let body = "  short = s8[] convert(i)\n  same = s32[] convert(short)\n  j = s32[] add(same, one)\n  \
                m = s32[] add(k, one)";
    let long = module(&compare("k", "LT", "n"), body, ["j", "n", "f", "l", "u", "m"]);
    let find = |name| long.computations().find(|(_, c)| c.name() == name).unwrap().1;
    let (condition, body) = (find("condition"), find("body"));
    assert_eq!(induction_variables(&long, body), BTreeMap::from([(5, 1)]));
    let initial = |k: usize| [exactly(0), exactly(1000), ANY, ANY, ANY, exactly(0)][k];
    let ranges = state_ranges(&long, condition, body, &initial);
    assert_eq!(ranges[5], between(0, 999));
    assert_eq!(ranges[0], between(-127, 128), "the range of 8 bits plus one");
    // An index that was truncated to 8 bits equals i only while i fits.
    let same = body.find("same").unwrap();
    let identity = Some(Affine { element: 0, multiplier: 1, offset: 0 });
    assert_eq!(affine(&long, body, same, &|_| between(0, 127)), identity);
    assert_eq!(affine(&long, body, same, &|_| between(0, 128)), None);
    assert_eq!(affine(&long, body, same, &|_| ANY), None);
}

#[test]
fn ranges_bound_sums_of_products() {
    let text = "HloModule sums\n\nENTRY main {\n  x = s8[2,9,9,5] parameter(0)\n  w = s8[3,3,5,4] parameter(1)\n  \
                wide = s32[2,9,9,5] convert(x)\n  zero = s32[] constant(-100)\n  \
                zeros = s32[2,9,9,5] broadcast(zero), dimensions={}\n  centered = s32[2,9,9,5] subtract(wide, zeros)\n  \
                kernel = s32[3,3,5,4] convert(w)\n  c = s32[2,9,9,4] convolution(centered, kernel), \
                window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f\n  a = s16[7,1000] parameter(2)\n  \
                b = s16[1000,6] parameter(3)\n  d = s16[7,6] dot(a, b), lhs_contracting_dims={1}, \
                rhs_contracting_dims={0}\n  ROOT r = (s32[2,9,9,4], s16[7,6]) tuple(c, d)\n}\n";
    let module = crate::parse(text).expect("a module");
    let entry = module.entry_computation();
    let operands = entry[entry.root()].operands();
    let of = |id| super::range(entry, id, &|_| None);
    // 45 products of a number from -28 to 227 and one from -128 to 127.
    let (low, high) = (Some(45 * 227 * -128), Some(45 * 227 * 127));
    assert_eq!(of(operands[0]), Range { low, high });
    // A sum that may wrap has any value.
    assert_eq!(of(operands[1]), Range { low: None, high: None });
}
