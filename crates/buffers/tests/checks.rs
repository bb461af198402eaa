//! The checker rejects assignments that differ in one place from a correct one.

use crate::{Assigned, assigned};
use buffers::{Allocation, CopyPair, Slice};

impl Assigned {
    /// Moves a leaf to other memory and returns the message of the checker.
    fn message_after_move(mut self, computation: &str, name: &str, index: &[usize], to: Slice) -> String {
        let leaf = (self.computation(computation), self.instruction(computation, name), index.to_vec());
        self.assignment.slices.insert(leaf, to);
        self.message()
    }

    fn message(&self) -> String {
        self.check().expect_err("a wrong assignment").to_string()
    }
}

fn temps(offset: u64, size: u64) -> Slice {
    Slice { allocation: Allocation::Temps, offset, size }
}

/// `a` and `b` are live together.
const TWO: &str = "HloModule m
    ENTRY main {
      x = f32[16] parameter(0)
      a = f32[16] negate(x)
      b = f32[16] exponential(x)
      j = f32[32] concatenate(a, b), dimensions={0}
      ROOT out = (f32[32]) tuple(j)
    }";

#[test]
fn values_that_overlap_in_part_are_an_error() {
    // `a` has the bytes from 64 to 128; the other value overlaps the first or the last of them.
    for (offset, is_wrong) in [(0, false), (4, true), (60, true), (64, true), (124, true), (128, false)] {
        let mut a = assigned(TWO);
        let (first, second) = (
            (a.computation("main"), a.instruction("main", "a"), Vec::new()),
            (a.computation("main"), a.instruction("main", "b"), Vec::new()),
        );
        a.assignment.slices.insert(first, temps(64, 64));
        a.assignment.slices.insert(second, temps(offset, 64));
        assert_eq!(a.check().is_err(), is_wrong, "at {offset}");
    }
}

#[test]
fn a_larger_value_overwrites_several_smaller_ones() {
    // `c` covers both `a` and `b`, or only one of them.
    let text = "HloModule m
        ENTRY main {
          x = f32[16] parameter(0)
          y = f32[64] parameter(1)
          a = f32[16] negate(x)
          b = f32[16] exponential(x)
          c = f32[64] sine(y)
          j = f32[96] concatenate(a, b, c), dimensions={0}
          ROOT out = (f32[96]) tuple(j)
        }";
    for (offset, expected) in [(0, Some("a")), (128, Some("b")), (192, None)] {
        let mut a = assigned(text);
        for (name, slice) in [("a", temps(0, 64)), ("b", temps(128, 64)), ("c", temps(offset, 256))] {
            let leaf = (a.computation("main"), a.instruction("main", name), Vec::new());
            a.assignment.slices.insert(leaf, slice);
        }
        match expected {
            Some(name) => assert!(a.message().contains(&format!("j expects {name}[]")), "{}", a.message()),
            None => assert!(a.check().is_ok()),
        }
    }
}

#[test]
fn an_operand_may_be_overwritten_only_where_the_plan_allows_it() {
    let text = |op: &str| {
        format!(
            "HloModule m
            ENTRY main {{
              x = f32[16] parameter(0)
              a = f32[16] negate(x)
              b = f32[16] {op}
              c = f32[16] exponential(b)
              ROOT out = (f32[16], f32[16]) tuple(c, b)
            }}"
        )
    };
    let of_a = |op: &str| {
        let a = assigned(&text(op));
        let slice = a.slice("a");
        (a, slice)
    };
    // A reversal reads elements after others have been written.
    let (a, slice) = of_a("reverse(a), dimensions={0}");
    let message = a.message_after_move("main", "b", &[], slice);
    assert!(message.contains("b overwrites"), "{message}");
    // An elementwise operation may take the operand's whole memory, but no other part of it.
    let (mut a, slice) = of_a("sine(a)");
    let leaf = (a.computation("main"), a.instruction("main", "a"), Vec::new());
    a.assignment.slices.insert(leaf, temps(0, 64));
    let message = a.message_after_move("main", "b", &[], temps(4, 64));
    assert!(message.contains("b overwrites"), "{message} {slice}");
}

#[test]
fn an_operand_that_is_read_in_another_way_too_is_not_overwritten() {
    let a = assigned(
        "HloModule m
        both {
          p = f32[16] parameter(0)
          q = f32[16] parameter(1)
          r = f32[16] reverse(q), dimensions={0}
          ROOT s = f32[16] add(p, r)
        }
        ENTRY main {
          x = f32[16] parameter(0)
          a = f32[16] negate(x)
          b = f32[16] fusion(a, a), kind=kLoop, calls=both
          c = f32[16] exponential(b)
          ROOT out = (f32[16], f32[16]) tuple(c, b)
        }",
    );
    assert_ne!(a.slice("b"), a.slice("a"));
    let slice = a.slice("a");
    let message = a.message_after_move("main", "b", &[], slice);
    assert!(message.contains("b overwrites"), "{message}");
}

#[test]
fn constants_are_never_written() {
    let a = assigned(TWO);
    let constants = Slice { allocation: Allocation::Constants, offset: 0, size: 64 };
    let message = a.message_after_move("main", "a", &[], constants);
    assert!(message.contains("a overwrites constants[0..64]"), "{message}");
}

const SORT: &str = "HloModule m
    less {
      x = f32[] parameter(0)
      y = f32[] parameter(1)
      ROOT p = pred[] compare(x, y), direction=LT
    }
    ENTRY main {
      x = f32[100] parameter(0)
      a = f32[100] negate(x)
      b = f32[100] sine(x)
      s = f32[100] sort(a), dimensions={0}, to_apply=less
      r = f32[100] add(b, s)
      ROOT out = (f32[100], f32[100]) tuple(r, s)
    }";

#[test]
fn scratch_is_apart_from_operands_results_and_other_values() {
    let with_scratch_at = |name: &str| {
        let mut a = assigned(SORT);
        let place = (a.computation("main"), a.instruction("main", "s"));
        let scratch = a.assignment.scratch[&place];
        assert!(scratch.size >= 400, "a copy of the row");
        let Slice { allocation, offset, .. } = a.slice(name);
        a.assignment.scratch.insert(place, Slice { allocation, offset, ..scratch });
        a.message()
    };
    let message = with_scratch_at("s");
    assert!(message.contains("s overwrites"), "{message}");
    let mut a = assigned(SORT);
    // `a`, then `b`, and the scratch after them.
    for (name, offset) in [("a", 0), ("b", 448)] {
        let leaf = (a.computation("main"), a.instruction("main", name), Vec::new());
        a.assignment.slices.insert(leaf, temps(offset, 400));
    }
    let place = (a.computation("main"), a.instruction("main", "s"));
    assert_eq!(a.assignment.scratch.len(), 1, "the sort alone needs scratch");
    let size = a.assignment.scratch[&place].size;
    for (offset, expected) in
        [(896, None), (848, None), (847, Some("r expects b")), (0, Some("scratch of s overlaps an operand"))]
    {
        a.assignment.scratch.insert(place, temps(offset, size));
        match expected {
            Some(text) => assert!(a.message().contains(text), "{} at {offset}", a.message()),
            None => assert!(a.check().is_ok(), "at {offset}"),
        }
    }
}

#[test]
fn two_results_of_one_kernel_are_apart() {
    let a = assigned(
        "HloModule m
        both {
          p = f32[16] parameter(0)
          n = f32[16] negate(p)
          s = f32[16] sine(p)
          ROOT t = (f32[16], f32[16]) tuple(n, s)
        }
        ENTRY main {
          x = f32[16] parameter(0)
          b = (f32[16], f32[16]) fusion(x), kind=kLoop, calls=both
          n = f32[16] get-tuple-element(b), index=0
          s = f32[16] get-tuple-element(b), index=1
          ROOT out = (f32[16], f32[16]) tuple(n, s)
        }",
    );
    let first = a.slice("n");
    let message = a.message_after_move("main", "b", &[1], first);
    assert!(message.contains("b overwrites"), "{message}");
}

const LOOP: &str = "HloModule m
    below {
      p = (s32[], f32[16], f32[16]) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      n = s32[] constant(10)
      ROOT c = pred[] compare(i, n), direction=LT
    }
    step {
      p = (s32[], f32[16], f32[16]) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      x = f32[16] get-tuple-element(p), index=1
      k = f32[16] get-tuple-element(p), index=2
      one = s32[] constant(1)
      next = s32[] add(i, one)
      a = f32[16] add(x, k)
      b = f32[16] reverse(a), dimensions={0}
      ROOT t = (s32[], f32[16], f32[16]) tuple(next, b, k)
    }
    ENTRY main {
      x = f32[16] parameter(0)
      k = f32[16] exponential(x)
      l = f32[16] sine(x)
      zero = s32[] constant(0)
      start = (s32[], f32[16], f32[16]) tuple(zero, x, k)
      w = (s32[], f32[16], f32[16]) while(start), condition=below, body=step
      last = f32[16] get-tuple-element(w), index=1
      m = f32[16] add(last, l)
      ROOT out = (f32[16]) tuple(m)
    }";

#[test]
fn what_every_iteration_reads_stays_intact() {
    // `a` is written after the last reader of `k` in an iteration, but before that of the next one.
    let a = assigned(LOOP);
    let k = a.slice("k");
    let message = a.message_after_move("step", "b", &[], k);
    assert!(message.contains("expects"), "{message}");
    // `l` is read after the loop.
    let a = assigned(LOOP);
    let l = a.slice("l");
    let message = a.message_after_move("step", "a", &[], l);
    assert!(message.contains("m expects l"), "{message}");
    let a = assigned(LOOP);
    let l = a.slice("l");
    let message = a.message_after_move("below", "c", &[], Slice { size: 1, ..l });
    assert!(message.contains("m expects l"), "{message}");
}

#[test]
fn a_loop_begins_and_ends_with_its_state_in_place() {
    let mut a = assigned(LOOP);
    a.assignment.start_copies.clear();
    let message = a.message();
    assert!(message.contains("w expects"), "{message}");
    // The body leaves its result elsewhere.
    let a = assigned(LOOP);
    let message = a.message_after_move("step", "b", &[], temps(1 << 20, 64));
    assert!(message.contains("step expects b"), "{message}");
    let a = assigned(LOOP);
    let message = a.message_after_move("step", "next", &[], temps(1 << 20, 4));
    assert!(message.contains("step expects next"), "{message}");
}

#[test]
fn a_copy_at_the_start_of_a_loop_overwrites_its_destination() {
    let mut a = assigned(LOOP);
    let l = a.slice("l");
    let place = (a.computation("main"), a.instruction("main", "w"));
    let copies = a.assignment.start_copies.get_mut(&place).expect("the counter's copy");
    let counter = copies[0].from;
    copies.push(CopyPair { from: counter, to: Slice { size: counter.size, ..l } });
    assert!(a.message().contains("m expects l"), "{}", a.message());
}

/// A loop that multiplies its state by itself, in two places by turns, and a value beside it.
const ALTERNATING: &str = "HloModule m
    below {
      p = (s32[], f32[9,9], f32[9,9]) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      n = s32[] constant(10)
      ROOT c = pred[] compare(i, n), direction=LT
    }
    step {
      p = (s32[], f32[9,9], f32[9,9]) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      x = f32[9,9] get-tuple-element(p), index=1
      y = f32[9,9] get-tuple-element(p), index=2
      one = s32[] constant(1)
      next = s32[] add(i, one)
      d = f32[9,9] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT t = (s32[], f32[9,9], f32[9,9]) tuple(next, y, d)
    }
    ENTRY main {
      x = f32[9,9] parameter(0)
      l = f32[9,9] sine(x)
      zero = s32[] constant(0)
      start = (s32[], f32[9,9], f32[9,9]) tuple(zero, x, x)
      w = (s32[], f32[9,9], f32[9,9]) while(start), condition=below, body=step
      first = f32[9,9] get-tuple-element(w), index=1
      second = f32[9,9] get-tuple-element(w), index=2
      m = f32[9,9] add(first, l)
      ROOT out = (f32[9,9], f32[9,9]) tuple(m, second)
    }";

#[test]
fn exchanged_places_are_overwritten_by_the_loop() {
    let a = assigned(ALTERNATING);
    let place = (a.computation("main"), a.instruction("main", "w"));
    let rotation = a.assignment.rotations[&place][0].clone();
    assert_eq!(a.assignment.rotations[&place].len(), 1);
    assert_eq!(rotation.places.len(), 3, "both states, and the product");
    assert_eq!(rotation.state.len(), 2);
    assert_eq!(rotation.stages.len(), 2);
    // Without the exchange, the body leaves its results in other places.
    let mut broken = assigned(ALTERNATING);
    broken.assignment.rotations.clear();
    assert!(broken.message().contains("step expects"), "{}", broken.message());
    // In the other direction, each state gets the wrong value.
    let mut broken = assigned(ALTERNATING);
    broken.assignment.rotations.get_mut(&place).expect("a rotation")[0].places.reverse();
    assert!(broken.message().contains("step expects"), "{}", broken.message());
    // The value beside the loop is in one of its places or stages.
    for taken in rotation.places.iter().chain(&rotation.stages) {
        let broken = assigned(ALTERNATING);
        let message = broken.message_after_move("main", "l", &[], *taken);
        assert!(message.contains("expects") || message.contains("overwrites"), "{taken}: {message}");
    }
    // A stage is written when the loop ends; the value is a stage's only neighbor in time.
    let mut broken = assigned(ALTERNATING);
    let l = broken.slice("l");
    broken.assignment.rotations.get_mut(&place).expect("a rotation")[0].stages[1] = l;
    assert!(broken.message().contains("m expects l"), "{}", broken.message());
}

#[test]
fn after_a_conditional_memory_holds_what_every_branch_leaves() {
    let text = "HloModule m
        changed {
          p = f32[16] parameter(0)
          n = f32[16] negate(p)
          r = f32[16] reverse(n), dimensions={0}
          ROOT t = (f32[16]) tuple(r)
        }
        passed {
          q = f32[16] parameter(0)
          s = f32[16] sine(q)
          ROOT t = (f32[16]) tuple(s)
        }
        ENTRY main {
          c = pred[] parameter(0)
          x = f32[16] parameter(1)
          l = f32[16] exponential(x)
          r = (f32[16]) conditional(c, x, x), true_computation=changed, false_computation=passed
          s = f32[16] get-tuple-element(r), index=0
          m = f32[16] add(l, s)
          ROOT out = (f32[16]) tuple(m)
        }";
    let reversed = text.replace(
        "true_computation=changed, false_computation=passed",
        "true_computation=passed, false_computation=changed",
    );
    for text in [text, &reversed] {
        // One branch overwrites a value that is read after the conditional.
        let a = assigned(text);
        let l = a.slice("l");
        let message = a.message_after_move("changed", "n", &[], l);
        assert!(message.contains("m expects l"), "{message}");
        // One branch leaves its result elsewhere.
        let a = assigned(text);
        let message = a.message_after_move("passed", "s", &[], temps(1 << 20, 64));
        assert!(message.contains("passed expects s"), "{message}");
    }
}

#[test]
fn results_end_in_their_places() {
    let text = "HloModule m, input_output_alias={ {1}: (0, {}, must-alias) }
        ENTRY main {
          v = f32[16] parameter(0)
          new = f32[16] negate(v)
          other = f32[16] exponential(new)
          ROOT out = (f32[16], f32[16]) tuple(other, new)
        }";
    let a = assigned(text);
    assert_eq!(a.allocation("new"), Allocation::Parameter(0));
    for name in ["new", "other"] {
        let message = assigned(text).message_after_move("main", name, &[], temps(1 << 20, 64));
        assert!(message.contains(&format!("the end of the entry expects {name}")), "{message}");
    }
}

#[test]
fn a_value_without_bytes_may_be_anywhere() {
    let mut a = assigned(
        "HloModule m
        ENTRY main {
          x = f32[0] parameter(0)
          a = f32[0] negate(x)
          b = f32[0] exponential(a)
          ROOT out = (f32[0], f32[0]) tuple(a, b)
        }",
    );
    for slice in a.assignment.slices.values_mut() {
        *slice = Slice { allocation: Allocation::Constants, offset: 0, size: 0 };
    }
    assert!(a.check().is_ok());
}

#[test]
fn a_constant_is_read_from_the_block_of_constants() {
    let a = assigned(
        "HloModule m
        ENTRY main {
          x = f32[16] parameter(0)
          c = f32[16] constant({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
          y = f32[16] add(x, c)
          ROOT out = (f32[16]) tuple(y)
        }",
    );
    let message = a.message_after_move("main", "c", &[], temps(0, 64));
    assert!(message.contains("y expects c[] in temps[0..64]"), "{message}");
}

#[test]
fn what_a_conditional_left_can_be_overwritten() {
    let a = assigned(
        "HloModule m
        negated {
          p = f32[16] parameter(0)
          n = f32[16] negate(p)
          ROOT t = (f32[16]) tuple(n)
        }
        changed {
          q = f32[16] parameter(0)
          s = f32[16] sine(q)
          ROOT t = (f32[16]) tuple(s)
        }
        ENTRY main {
          c = pred[] parameter(0)
          x = f32[16] parameter(1)
          l = f32[16] exponential(x)
          r = (f32[16]) conditional(c, x, x), true_computation=negated, false_computation=changed
          s = f32[16] get-tuple-element(r), index=0
          p = f32[16] add(l, s)
          o = f32[16] cosine(x)
          q = f32[16] add(p, o)
          z = f32[16] add(q, l)
          ROOT out = (f32[16]) tuple(z)
        }",
    );
    assert!(a.position("r") < a.position("o") && a.position("o") < a.position("z"));
    let l = a.slice("l");
    let message = a.message_after_move("main", "o", &[], l);
    assert!(message.contains("z expects l"), "{message}");
}
