//! When each value is live, in moments: the kernels, calls, and loops of a run, counted from 0.

use crate::assigned;

/// The intervals of a leaf of an instruction.
fn live(text: &str, computation: &str, name: &str, index: &[usize]) -> Vec<(usize, usize)> {
    let a = assigned(text);
    let leaf = (a.computation(computation), a.instruction(computation, name), index.to_vec());
    let all = a.liveness().values;
    all.into_iter().find(|(other, _)| *other == leaf).expect("a value").1
}

fn moments(text: &str) -> Vec<String> {
    let a = assigned(text);
    let names = a.liveness().moments.into_iter().map(|(c, i)| a.module[c][i].name().to_owned());
    names.collect()
}

const STRAIGHT: &str = "HloModule m
    ENTRY main {
      x = f32[4] parameter(0)
      a = f32[4] negate(x)
      b = f32[4] sine(a)
      c = f32[4] cosine(a)
      d = f32[4] add(b, c)
      e = f32[4] exponential(d)
      ROOT out = (f32[4], f32[4]) tuple(e, b)
    }";

#[test]
fn a_value_is_live_from_its_kernel_to_its_last_reader() {
    assert_eq!(moments(STRAIGHT), ["a", "b", "c", "d", "e"]);
    assert_eq!(live(STRAIGHT, "main", "x", &[]), [(0, 0)]);
    assert_eq!(live(STRAIGHT, "main", "a", &[]), [(0, 2)]);
    assert_eq!(live(STRAIGHT, "main", "b", &[]), [(1, 4)], "a result is live to the end");
    assert_eq!(live(STRAIGHT, "main", "c", &[]), [(2, 3)]);
    assert_eq!(live(STRAIGHT, "main", "d", &[]), [(3, 4)]);
    assert_eq!(live(STRAIGHT, "main", "e", &[]), [(4, 4)]);
}

/// Each branch reads one of two values.
const BRANCHES: &str = "HloModule m
    first {
      p = f32[4] parameter(0)
      n = f32[4] negate(p)
      m = f32[4] sine(n)
      ROOT t = (f32[4]) tuple(m)
    }
    second {
      q = f32[4] parameter(0)
      o = f32[4] cosine(q)
      ROOT t = (f32[4]) tuple(o)
    }
    ENTRY main {
      c = pred[] parameter(0)
      x = f32[4] parameter(1)
      d = f32[4] exponential(x)
      e = f32[4] log(x)
      r = (f32[4]) conditional(c, d, e), true_computation=first, false_computation=second
      s = f32[4] get-tuple-element(r), index=0
      t = f32[4] tanh(s)
      ROOT out = (f32[4]) tuple(t)
    }";

#[test]
fn a_branch_keeps_what_it_reads_and_nothing_of_the_other() {
    assert_eq!(moments(BRANCHES), ["d", "e", "r", "n", "m", "o", "t"]);
    assert_eq!(live(BRANCHES, "main", "c", &[]), [(0, 2)]);
    assert_eq!(live(BRANCHES, "main", "d", &[]), [(0, 2), (3, 3)], "read in the first branch");
    assert_eq!(live(BRANCHES, "main", "e", &[]), [(1, 2), (5, 5)], "read in the second branch");
    assert_eq!(live(BRANCHES, "first", "n", &[]), [(3, 4)]);
    assert_eq!(live(BRANCHES, "first", "m", &[]), [(4, 4)]);
    assert_eq!(live(BRANCHES, "second", "o", &[]), [(5, 5)]);
    assert_eq!(live(BRANCHES, "main", "r", &[0]), [(6, 6)]);
}

/// The body doubles one value and reads another from outside the loop.
const LOOP: &str = "HloModule m
    below {
      p = (s32[], f32[4], f32[4]) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      n = s32[] constant(10)
      ROOT c = pred[] compare(i, n), direction=LT
    }
    step {
      p = (s32[], f32[4], f32[4]) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      x = f32[4] get-tuple-element(p), index=1
      k = f32[4] get-tuple-element(p), index=2
      one = s32[] constant(1)
      next = s32[] add(i, one)
      a = f32[4] add(x, k)
      b = f32[4] sine(a)
      ROOT t = (s32[], f32[4], f32[4]) tuple(next, b, k)
    }
    ENTRY main {
      x = f32[4] parameter(0)
      k = f32[4] exponential(x)
      zero = s32[] constant(0)
      start = (s32[], f32[4], f32[4]) tuple(zero, x, k)
      w = (s32[], f32[4], f32[4]) while(start), condition=below, body=step
      last = f32[4] get-tuple-element(w), index=1
      m = f32[4] negate(last)
      ROOT out = (f32[4]) tuple(m)
    }";

#[test]
fn a_loop_keeps_its_state_and_what_every_iteration_reads() {
    assert_eq!(moments(LOOP), ["k", "w", "c", "next", "a", "b", "m"]);
    assert_eq!(live(LOOP, "main", "k", &[]), [(0, 5)], "read in every iteration");
    assert_eq!(live(LOOP, "main", "x", &[]), [(0, 1)], "copied to the state");
    assert_eq!(live(LOOP, "main", "w", &[0]), [(1, 2), (3, 3)]);
    assert_eq!(live(LOOP, "main", "w", &[1]), [(1, 2), (3, 4), (6, 6)]);
    assert_eq!(live(LOOP, "step", "next", &[]), [(3, 5)]);
    assert_eq!(live(LOOP, "step", "a", &[]), [(4, 5)]);
    assert_eq!(live(LOOP, "step", "b", &[]), [(5, 5)]);
    assert_eq!(live(LOOP, "below", "c", &[]), [(2, 2)]);
}

/// A branch within a loop reads a value from outside the loop.
const BRANCH_IN_LOOP: &str = "HloModule m
    below {
      p = (s32[], f32[4], f32[4]) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      n = s32[] constant(10)
      ROOT c = pred[] compare(i, n), direction=LT
    }
    add_k {
      p = (f32[4], f32[4]) parameter(0)
      x = f32[4] get-tuple-element(p), index=0
      k = f32[4] get-tuple-element(p), index=1
      s = f32[4] add(x, k)
      ROOT t = (f32[4]) tuple(s)
    }
    negated {
      x = f32[4] parameter(0)
      n = f32[4] negate(x)
      ROOT t = (f32[4]) tuple(n)
    }
    step {
      p = (s32[], f32[4], f32[4]) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      x = f32[4] get-tuple-element(p), index=1
      k = f32[4] get-tuple-element(p), index=2
      one = s32[] constant(1)
      next = s32[] add(i, one)
      five = s32[] constant(5)
      early = pred[] compare(next, five), direction=LT
      both = (f32[4], f32[4]) tuple(x, k)
      r = (f32[4]) conditional(early, both, x), true_computation=add_k, false_computation=negated
      y = f32[4] get-tuple-element(r), index=0
      ROOT t = (s32[], f32[4], f32[4]) tuple(next, y, k)
    }
    ENTRY main {
      x = f32[4] parameter(0)
      k = f32[4] exponential(x)
      zero = s32[] constant(0)
      start = (s32[], f32[4], f32[4]) tuple(zero, x, k)
      w = (s32[], f32[4], f32[4]) while(start), condition=below, body=step
      last = f32[4] get-tuple-element(w), index=1
      ROOT out = (f32[4]) tuple(last)
    }";

#[test]
fn what_a_branch_reads_from_outside_a_loop_stays_for_the_next_iteration() {
    assert_eq!(moments(BRANCH_IN_LOOP), ["k", "w", "c", "next", "early", "r", "s", "n"]);
    assert_eq!(live(BRANCH_IN_LOOP, "main", "k", &[]), [(0, 7)]);
    assert_eq!(live(BRANCH_IN_LOOP, "main", "w", &[1]), [(1, 2), (3, 5), (6, 6), (7, 7)]);
    assert_eq!(live(BRANCH_IN_LOOP, "step", "early", &[]), [(4, 5)]);
}

#[test]
fn an_operand_that_the_branch_ignores_is_not_kept_for_it() {
    let text = "HloModule m
        first {
          p = (f32[4], f32[4]) parameter(0)
          x = f32[4] get-tuple-element(p), index=0
          n = f32[4] negate(x)
          ROOT t = (f32[4]) tuple(n)
        }
        second {
          q = f32[4] parameter(0)
          o = f32[4] cosine(q)
          ROOT t = (f32[4]) tuple(o)
        }
        ENTRY main {
          c = pred[] parameter(0)
          x = f32[4] parameter(1)
          u = f32[4] exponential(x)
          d = f32[4] log(x)
          both = (f32[4], f32[4]) tuple(d, u)
          r = (f32[4]) conditional(c, both, x), true_computation=first, false_computation=second
          s = f32[4] get-tuple-element(r), index=0
          ROOT out = (f32[4]) tuple(s)
        }";
    let order = moments(text);
    let u = order.iter().position(|name| name == "u").expect("a moment");
    assert_eq!(live(text, "main", "u", &[]), [(u, u)]);
}
