//! Assignments of small modules: in-place results, remaining copies, and errors that the checker
//! detects.

use crate::{assigned, planned};
use buffers::{Allocation, ConstantsPool, assign, check, schedule};

use Allocation::{Constants, Parameter, Result, Temps};

#[test]
fn a_variable_is_updated_in_its_own_memory_after_its_readers() {
    let a = assigned(
        "HloModule m, input_output_alias={ {1}: (1, {}, must-alias) }
        ENTRY main {
          x = f32[4] parameter(0)
          v = f32[4] parameter(1)
          new = f32[4] subtract(v, x)
          read = f32[4] multiply(v, v)
          ROOT out = (f32[4], f32[4]) tuple(read, new)
        }",
    );
    assert_eq!(a.allocation("new"), Parameter(1));
    assert_eq!(a.allocation("read"), Result(0));
    assert!(a.position("read") < a.position("new"), "the old value is read before it is overwritten");
    assert_eq!(a.copies(), []);
    assert_eq!(a.assignment.temps_size, 0);
}

#[test]
fn an_old_value_that_a_later_result_needs_is_not_overwritten() {
    let a = assigned(
        "HloModule m, input_output_alias={ {1}: (0, {}, must-alias) }
        ENTRY main {
          v = f32[4] parameter(0)
          new = f32[4] negate(v)
          both = f32[4] add(new, v)
          ROOT out = (f32[4], f32[4]) tuple(both, new)
        }",
    );
    assert_eq!(a.allocation("new"), Temps);
    assert_eq!(a.copies(), [(Temps, Parameter(0))]);
}

#[test]
fn two_variables_swap_through_a_temporary() {
    let a = assigned(
        "HloModule m, input_output_alias={ {0}: (0, {}, must-alias), {1}: (1, {}, must-alias) }
        ENTRY main {
          v = f32[4] parameter(0)
          w = f32[4] parameter(1)
          ROOT out = (f32[4], f32[4]) tuple(w, v)
        }",
    );
    let copies = a.copies();
    assert_eq!(copies, [(Parameter(0), Temps), (Parameter(1), Parameter(0)), (Temps, Parameter(1))]);
    assert_eq!(a.assignment.temps_size, 64);
}

#[test]
fn results_that_no_kernel_computes_are_copied() {
    let a = assigned(
        "HloModule m
        ENTRY main {
          x = f32[4] parameter(0)
          c = f32[4] constant({1, 2, 3, 4})
          y = f32[4] negate(x)
          ROOT out = (f32[4], f32[4], f32[4], f32[4]) tuple(x, c, y, y)
        }",
    );
    assert_eq!(a.allocation("y"), Result(2));
    assert_eq!(a.copies(), [(Parameter(0), Result(0)), (Constants, Result(1)), (Result(2), Result(3))]);
    assert_eq!(a.constants_size, 64);
    assert_eq!(a.assignment.result_count, 4);
}

#[test]
fn equal_constants_are_stored_once_and_unread_ones_not_at_all() {
    let a = assigned(
        "HloModule m
        ENTRY main {
          x = f32[2] parameter(0)
          c = f32[2] constant({1, 2})
          d = f32[2] constant({1, 2})
          e = f32[2] constant({5, 6})
          y = f32[2] add(x, c)
          z = f32[2] multiply(x, d)
          ROOT out = (f32[2], f32[2]) tuple(y, z)
        }",
    );
    assert_eq!(a.slice("c"), a.slice("d"));
    assert_eq!(a.constants_size, 64);
}

#[test]
fn assignments_that_share_a_pool_share_its_constants() {
    let (module, plan) = planned(
        "HloModule m
        ENTRY main {
          x = f32[20] parameter(0)
          c = f32[20] iota(), iota_dimension=0
          d = f32[3] constant({1, 2, 3})
          e = f32[2] constant({4, 5})
          y = f32[20] add(x, c)
          ROOT out = (f32[20], f32[3], f32[2]) tuple(y, d, e)
        }",
    );
    let order = schedule(&module, &plan);
    let mut pool = ConstantsPool::default();
    assert_eq!(pool.size(), 0);
    let first = assign(&module, &plan, &order, &mut pool).expect("an assignment");
    assert_eq!(pool.size(), 128, "one line for each constant");
    let second = assign(&module, &plan, &order, &mut pool).expect("an assignment");
    assert_eq!(pool.size(), 128, "nothing new");
    assert_eq!(first.slices, second.slices);
    let block = pool.finish();
    let offsets: Vec<u64> = block.chunks.iter().map(|(offset, _)| *offset).collect();
    assert_eq!((block.size, &offsets[..]), (128, &[0, 64][..]));
    let bytes: Vec<u8> = [1f32, 2.0, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    assert!(block.chunks.iter().any(|(_, chunk)| chunk[..] == bytes[..]));
}

#[test]
fn a_chain_of_elementwise_operations_stays_in_place() {
    let a = assigned(
        "HloModule m
        ENTRY main {
          x = f32[100] parameter(0)
          a = f32[100] negate(x)
          b = f32[100] exponential(a)
          c = f32[100] log(b)
          d = f32[] constant(0)
          r = f32[100] reverse(c), dimensions={0}
          ROOT out = (f32[100]) tuple(r)
        }",
    );
    assert_eq!(a.allocation("a"), Temps);
    assert_eq!(a.slice("a"), a.slice("b"));
    assert_eq!(a.slice("b"), a.slice("c"));
    assert_eq!(a.allocation("r"), Result(0));
    assert_eq!(a.assignment.temps_size, 448);
}

const CONDITIONAL: &str = "HloModule m
    negated {
      p = (f32[4], f32[4]) parameter(0)
      x = f32[4] get-tuple-element(p), index=0
      n = f32[4] negate(x)
      ROOT t = (f32[4], f32[4]) tuple(n, n)
    }
    passed {
      q = f32[4] parameter(0)
      ROOT t = (f32[4], f32[4]) tuple(q, q)
    }
    ENTRY main {
      c = pred[] parameter(0)
      x = f32[4] parameter(1)
      y = f32[4] parameter(2)
      e = f32[4] exponential(x)
      both = (f32[4], f32[4]) tuple(e, y)
      r = (f32[4], f32[4]) conditional(c, both, y), true_computation=negated, false_computation=passed
      first = f32[4] get-tuple-element(r), index=0
      second = f32[4] get-tuple-element(r), index=1
      s = f32[4] add(first, second)
      ROOT out = (f32[4], f32[4]) tuple(s, first)
    }";

#[test]
fn branches_write_the_conditionals_result() {
    let a = assigned(CONDITIONAL);
    let negated = a.module.computations().find(|(_, c)| c.name() == "negated").expect("a branch").0;
    let n = a.module[negated].find("n").expect("an instruction");
    assert_eq!(
        a.assignment.slice(negated, n, &[]).allocation,
        Result(1),
        "computed where the entry returns it"
    );
    assert_eq!(a.assignment.end_copies[&negated].len(), 1, "the second use is copied");
    let passed = a.module.computations().find(|(_, c)| c.name() == "passed").expect("a branch").0;
    assert_eq!(a.assignment.end_copies[&passed].len(), 2, "a parameter is copied to both places");
}

#[test]
fn a_loops_state_stays_in_place() {
    let a = assigned(
        "HloModule m
        below {
          p = (s32[], f32[4]) parameter(0)
          i = s32[] get-tuple-element(p), index=0
          n = s32[] constant(10)
          ROOT c = pred[] compare(i, n), direction=LT
        }
        step {
          p = (s32[], f32[4]) parameter(0)
          i = s32[] get-tuple-element(p), index=0
          one = s32[] constant(1)
          next = s32[] add(i, one)
          x = f32[4] get-tuple-element(p), index=1
          doubled = f32[4] add(x, x)
          ROOT t = (s32[], f32[4]) tuple(next, doubled)
        }
        ENTRY main {
          x = f32[4] parameter(0)
          zero = s32[] constant(0)
          start = (s32[], f32[4]) tuple(zero, x)
          w = (s32[], f32[4]) while(start), condition=below, body=step
          last = f32[4] get-tuple-element(w), index=1
          ROOT out = (f32[4]) tuple(last)
        }",
    );
    let step = a.module.computations().find(|(_, c)| c.name() == "step").expect("the body").0;
    assert!(!a.assignment.end_copies.contains_key(&step), "no copies in the body");
    let doubled = a.module[step].find("doubled").expect("an instruction");
    assert_eq!(a.assignment.slice(step, doubled, &[]).allocation, Result(0));
    let starts: usize = a.assignment.start_copies.values().map(Vec::len).sum();
    assert_eq!(starts, 2);
}

#[test]
fn the_checker_detects_a_value_that_is_overwritten_too_early() {
    let mut a = assigned(
        "HloModule m
        ENTRY main {
          x = f32[4] parameter(0)
          a = f32[4] negate(x)
          b = f32[4] exponential(x)
          j = f32[8] concatenate(a, b), dimensions={0}
          ROOT out = (f32[8]) tuple(j)
        }",
    );
    let entry = a.module.entry();
    let leaf = |name: &str| (entry, a.module[entry].find(name).expect("an instruction"), Vec::new());
    let (first, second) = (leaf("a"), leaf("b"));
    assert_ne!(a.assignment.slices[&first], a.assignment.slices[&second]);
    let shared = a.assignment.slices[&first];
    a.assignment.slices.insert(second, shared);
    let error = check(&a.module, &a.plan, &a.schedule, &a.assignment).expect_err("a is overwritten by b");
    assert!(error.message().contains("expects a"), "{error}");
}

#[test]
fn the_checker_detects_a_lost_copy() {
    let mut a = assigned(CONDITIONAL);
    a.assignment.end_copies.clear();
    assert!(check(&a.module, &a.plan, &a.schedule, &a.assignment).is_err());
}

/// A loop over `count` matrices, each of which becomes the product of itself and the next one,
/// inside `depth` outer loops.
fn many_states(count: usize, depth: usize) -> String {
    let mut text = String::from("HloModule m\n");
    let state = format!("(s32[]{})", ", f32[9,9]".repeat(count));
    let elements = |text: &mut String| {
        *text += &format!("  p = {state} parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n");
        for k in 0..count {
            *text += &format!("  x{k} = f32[9,9] get-tuple-element(p), index={}\n", k + 1);
        }
    };
    let names = |stem: &str| (0..count).map(|k| format!(", {stem}{k}")).collect::<String>();
    for level in 0..=depth {
        text += &format!(
            "more{level} {{\n  p = {state} parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n"
        );
        text += "  n = s32[] constant(3)\n  ROOT c = pred[] compare(i, n), direction=LT\n}\n";
        text += &format!("step{level} {{\n");
        elements(&mut text);
        text += "  one = s32[] constant(1)\n  j = s32[] add(i, one)\n";
        if level == 0 {
            for k in 0..count {
                let next = (k + 1) % count;
                text += &format!(
                    "  y{k} = f32[9,9] dot(x{k}, x{next}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
                );
            }
        } else {
            let inner = level - 1;
            text += &format!("  z = s32[] constant(0)\n  s = {state} tuple(z{})\n", names("x"));
            text += &format!("  e = {state} while(s), condition=more{inner}, body=step{inner}\n");
            for k in 0..count {
                text += &format!("  y{k} = f32[9,9] get-tuple-element(e), index={}\n", k + 1);
            }
        }
        text += &format!("  ROOT r = {state} tuple(j{})\n}}\n", names("y"));
    }
    text += "ENTRY main {\n";
    for k in 0..count {
        text += &format!("  x{k} = f32[9,9] parameter({k})\n");
    }
    text += &format!("  z = s32[] constant(0)\n  s = {state} tuple(z{})\n", names("x"));
    text += &format!("  e = {state} while(s), condition=more{depth}, body=step{depth}\n");
    text += "  y = f32[9,9] get-tuple-element(e), index=1\n  ROOT out = (f32[9,9]) tuple(y)\n}\n";
    text
}

#[test]
fn hundreds_of_states_alternate_in_nested_loops() {
    let a = assigned(&many_states(200, 20));
    assert!(a.assignment.end_copies.is_empty(), "nothing is copied in any of the loops");
    let rotations: Vec<_> = a.assignment.rotations.values().collect();
    assert_eq!(rotations.len(), 1, "the innermost loop alone exchanges places");
    assert_eq!(rotations[0].len(), 200);
    let starts: Vec<usize> = a.assignment.start_copies.values().map(Vec::len).collect();
    assert_eq!(starts.iter().sum::<usize>(), 200 + 21, "the arguments, once, and the counters");
}

#[test]
fn what_every_branch_passes_on_stays_where_it_is() {
    let a = assigned(
        "HloModule m
        negated {
          p = (f32[4], f32[4]) parameter(0)
          x = f32[4] get-tuple-element(p), index=0
          y = f32[4] get-tuple-element(p), index=1
          n = f32[4] negate(x)
          ROOT t = (f32[4], f32[4]) tuple(n, y)
        }
        passed {
          q = (f32[4], f32[4]) parameter(0)
          x = f32[4] get-tuple-element(q), index=0
          y = f32[4] get-tuple-element(q), index=1
          ROOT t = (f32[4], f32[4]) tuple(x, y)
        }
        ENTRY main {
          c = pred[] parameter(0)
          x = f32[4] parameter(1)
          y = f32[4] parameter(2)
          both = (f32[4], f32[4]) tuple(x, y)
          r = (f32[4], f32[4]) conditional(c, both, both), true_computation=negated, false_computation=passed
          first = f32[4] get-tuple-element(r), index=0
          second = f32[4] get-tuple-element(r), index=1
          s = f32[4] add(first, second)
          ROOT out = (f32[4]) tuple(s)
        }",
    );
    assert_eq!(a.allocation("second"), Parameter(2));
    assert_ne!(a.allocation("first"), Parameter(1), "only one branch passes it on");
    let copies = |name: &str| a.assignment.end_copies.get(&a.computation(name)).map_or(0, Vec::len);
    assert_eq!((copies("negated"), copies("passed")), (0, 1));
}

#[test]
fn a_single_branch_computes_the_conditionals_result() {
    let a = assigned(
        "HloModule m
        only {
          p = f32[4] parameter(0)
          n = f32[4] negate(p)
          ROOT t = (f32[4], f32[4]) tuple(n, p)
        }
        ENTRY main {
          k = s32[] parameter(0)
          x = f32[4] parameter(1)
          r = (f32[4], f32[4]) conditional(k, x), branch_computations={only}
          first = f32[4] get-tuple-element(r), index=0
          y = f32[4] reverse(first), dimensions={0}
          ROOT out = (f32[4], f32[4]) tuple(y, first)
        }",
    );
    assert_eq!(a.allocation("first"), Result(1));
    let only = a.computation("only");
    assert_eq!(a.assignment.slice(only, a.instruction("only", "n"), &[]), a.slice("first"));
}
