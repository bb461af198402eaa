//! The order of execution, where it differs from the graph's own order.

use crate::{assigned, planned};
use buffers::schedule;

/// Positions of two instructions in a computation's sequence.
fn comes_before(text: &str, computation: &str, first: &str, second: &str) -> bool {
    let a = assigned(text);
    let sequence = a.sequence(computation);
    let place = |name: &str| sequence.iter().position(|other| *other == name).expect("scheduled");
    place(first) < place(second)
}

#[test]
fn an_update_comes_after_the_other_readers_of_the_array() {
    let module = |update: &str| {
        format!(
            "HloModule m
            second {{
              p = f32[] parameter(0)
              ROOT q = f32[] parameter(1)
            }}
            ENTRY main {{
              x = f32[6] parameter(0)
              u = f32[1] parameter(1)
              i = s32[1] parameter(2)
              j = s32[] reshape(i)
              a = f32[6] exponential(x)
              new = f32[6] {update}
              read = f32[6] negate(a)
              ROOT out = (f32[6], f32[6]) tuple(new, read)
            }}"
        )
    };
    for update in [
        "dynamic-update-slice(a, u, j)",
        "scatter(a, i, u), update_window_dims={0}, inserted_window_dims={}, \
         scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=second",
    ] {
        let text = module(update);
        assert!(comes_before(&text, "main", "read", "new"), "{update}");
        let a = assigned(&text);
        assert_eq!(a.slice("new"), a.slice("a"), "{update}");
    }
    assert!(comes_before(&module("add(a, a)"), "main", "new", "read"), "otherwise as in the graph");
}

#[test]
fn a_kernel_that_updates_one_of_its_results_in_place_comes_after_other_readers() {
    let text = "HloModule m
        rows {
          x = f32[6,40] parameter(0)
          buffer = f32[9,6,40] parameter(1)
          i = s32[] parameter(2)
          n = f32[6,40] negate(x)
          line = f32[1,6,40] reshape(n)
          zero = s32[] constant(0)
          kept = f32[9,6,40] dynamic-update-slice(buffer, line, i, zero, zero)
          ROOT r = (f32[6,40], f32[9,6,40]) tuple(n, kept)
        }
        ENTRY main {
          x = f32[6,40] parameter(0)
          y = f32[9,6,40] parameter(1)
          i = s32[] parameter(2)
          a = f32[9,6,40] exponential(y)
          both = (f32[6,40], f32[9,6,40]) fusion(x, a, i), kind=kLoop, calls=rows
          n = f32[6,40] get-tuple-element(both), index=0
          kept = f32[9,6,40] get-tuple-element(both), index=1
          read = f32[9,6,40] sine(a)
          ROOT out = (f32[6,40], f32[9,6,40], f32[9,6,40]) tuple(n, kept, read)
        }";
    assert!(comes_before(text, "main", "read", "both"));
    let a = assigned(text);
    assert_eq!(a.slice("kept"), a.slice("a"), "updated in place");
}

/// A loop over a value that changes and one that does not, and a reader of one of them.
fn loop_and_reader(read: &str) -> String {
    format!(
        "HloModule m
        below {{
          p = (s32[], f32[4], f32[4]) parameter(0)
          i = s32[] get-tuple-element(p), index=0
          n = s32[] constant(10)
          ROOT c = pred[] compare(i, n), direction=LT
        }}
        step {{
          p = (s32[], f32[4], f32[4]) parameter(0)
          i = s32[] get-tuple-element(p), index=0
          x = f32[4] get-tuple-element(p), index=1
          k = f32[4] get-tuple-element(p), index=2
          one = s32[] constant(1)
          next = s32[] add(i, one)
          y = f32[4] add(x, k)
          ROOT t = (s32[], f32[4], f32[4]) tuple(next, y, k)
        }}
        ENTRY main {{
          x = f32[4] parameter(0)
          a = f32[4] exponential(x)
          k = f32[4] sine(x)
          zero = s32[] constant(0)
          start = (s32[], f32[4], f32[4]) tuple(zero, a, k)
          w = (s32[], f32[4], f32[4]) while(start), condition=below, body=step
          last = f32[4] get-tuple-element(w), index=1
          read = f32[4] negate({read})
          ROOT out = (f32[4], f32[4]) tuple(last, read)
        }}"
    )
}

#[test]
fn a_loop_comes_after_the_readers_of_the_state_that_it_changes() {
    assert!(comes_before(&loop_and_reader("a"), "main", "read", "w"));
    assert!(comes_before(&loop_and_reader("k"), "main", "w", "read"), "k does not change");
    let a = assigned(&loop_and_reader("a"));
    assert!(
        a.assignment.start_copies.values().flatten().all(|copy| copy.from.size == 4),
        "only the counter is copied"
    );
}

#[test]
fn a_body_reads_its_state_before_it_replaces_it() {
    let text = "HloModule m
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
          f = f32[] convert(i)
          all = f32[4] broadcast(f), dimensions={}
          y = f32[4] add(x, all)
          ROOT t = (s32[], f32[4]) tuple(next, y)
        }
        ENTRY main {
          x = f32[4] parameter(0)
          zero = s32[] constant(0)
          start = (s32[], f32[4]) tuple(zero, x)
          w = (s32[], f32[4]) while(start), condition=below, body=step
          last = f32[4] get-tuple-element(w), index=1
          ROOT out = (f32[4]) tuple(last)
        }";
    assert!(comes_before(text, "step", "f", "next"));
    assert!(assigned(text).assignment.end_copies.is_empty(), "nothing is copied");
}

#[test]
fn a_read_in_an_inner_computation_counts_as_a_read_by_its_caller() {
    // The conditional's branch reads a; the update of a comes after it.
    let text = "HloModule m
        negated {
          p = f32[6] parameter(0)
          n = f32[6] negate(p)
          ROOT t = (f32[6]) tuple(n)
        }
        passed {
          q = f32[6] parameter(0)
          s = f32[6] sine(q)
          ROOT t = (f32[6]) tuple(s)
        }
        ENTRY main {
          c = pred[] parameter(0)
          x = f32[6] parameter(1)
          u = f32[1] parameter(2)
          j = s32[] parameter(3)
          a = f32[6] exponential(x)
          new = f32[6] dynamic-update-slice(a, u, j)
          r = (f32[6]) conditional(c, a, x), true_computation=negated, false_computation=passed
          s = f32[6] get-tuple-element(r), index=0
          ROOT out = (f32[6], f32[6]) tuple(new, s)
        }";
    assert!(comes_before(text, "main", "r", "new"));
    let a = assigned(text);
    assert_eq!(a.slice("new"), a.slice("a"));
}

/// Loops over arrays of the given sizes, which do not depend on each other.
fn independent_loops(sizes: &[usize], body_op: &str) -> String {
    let mut text = String::from("HloModule m\n");
    let mut entry = String::from("ENTRY main {\n");
    let mut results = (Vec::new(), Vec::new());
    for (k, size) in sizes.iter().enumerate() {
        let state = format!("(s32[], f32[{size}])");
        text += &format!(
            "below{k} {{
              p = {state} parameter(0)
              i = s32[] get-tuple-element(p), index=0
              n = s32[] constant(10)
              ROOT c = pred[] compare(i, n), direction=LT
            }}
            step{k} {{
              p = {state} parameter(0)
              i = s32[] get-tuple-element(p), index=0
              one = s32[] constant(1)
              next = s32[] add(i, one)
              x = f32[{size}] get-tuple-element(p), index=1
              y = f32[{size}] {body_op}(x)
              ROOT t = {state} tuple(next, y)
            }}\n"
        );
        entry += &format!(
            "  x{k} = f32[{size}] parameter({k})
              zero{k} = s32[] constant(0)
              start{k} = {state} tuple(zero{k}, x{k})
              w{k} = {state} while(start{k}), condition=below{k}, body=step{k}
              last{k} = f32[{size}] get-tuple-element(w{k}), index=1
              other{k} = f32[{size}] sine(x{k})
              sum{k} = f32[{size}] add(last{k}, other{k})\n"
        );
        results.0.push(format!("f32[{size}]"));
        results.1.push(format!("sum{k}"));
    }
    entry += &format!("  ROOT out = ({}) tuple({})\n}}\n", results.0.join(", "), results.1.join(", "));
    text + &entry
}

/// The names of the loops of each group.
fn groups(text: &str) -> Vec<Vec<String>> {
    let a = assigned(text);
    let entry = a.module.entry();
    let groups = a.schedule.loop_groups.get(&entry).cloned().unwrap_or_default();
    assert!(!groups.is_empty() || a.schedule.loop_groups.is_empty(), "no empty lists");
    let name = |i: &hlo::InstructionId| a.module[entry][*i].name().to_owned();
    groups.iter().map(|group| group.iter().map(name).collect()).collect()
}

#[test]
fn short_loops_that_do_not_depend_on_each_other_form_a_group() {
    let text = independent_loops(&[8, 16, 24], "negate");
    assert_eq!(groups(&text), [["w0", "w1", "w2"]]);
    let a = assigned(&text);
    let sequence = a.sequence("main");
    let first = sequence.iter().position(|name| *name == "w0").expect("scheduled");
    assert_eq!(sequence[first..first + 3], ["w0", "w1", "w2"], "neighbors");
    for other in ["other0", "other1", "other2"] {
        assert!(a.position(other) < first, "the loops come as late as possible");
    }
}

#[test]
fn long_loops_and_a_single_short_one_form_no_group() {
    assert_eq!(groups(&independent_loops(&[8], "negate")), [[""; 0]; 0]);
    let long = 4_000_000;
    assert_eq!(groups(&independent_loops(&[8, long], "negate")), [[""; 0]; 0]);
    assert_eq!(groups(&independent_loops(&[8, long, 8], "negate")), [["w0", "w2"]]);
}

#[test]
fn a_loop_that_waits_for_another_is_not_in_its_group() {
    let text = independent_loops(&[8, 8], "negate").replace("tuple(zero1, x1)", "tuple(zero1, last0)");
    assert_eq!(groups(&text), [[""; 0]; 0]);
}

#[test]
fn loops_of_a_group_have_temporaries_of_their_own() {
    let a = assigned(&independent_loops(&[8, 8], "negate"));
    let inside = |k: usize| {
        let computations = [format!("below{k}"), format!("step{k}")].map(|name| a.computation(&name));
        let slices = a.assignment.slices.iter().filter(|(leaf, _)| computations.contains(&leaf.0));
        slices.map(|(_, slice)| *slice).collect::<Vec<_>>()
    };
    let written = |slice: &&buffers::Slice| slice.allocation == buffers::Allocation::Temps;
    for x in inside(0).iter().filter(written) {
        for y in inside(1).iter().filter(written) {
            assert!(!x.overlaps(y), "{x} and {y}");
        }
    }
}

#[test]
fn memory_that_is_filled_is_filled_as_late_as_possible() {
    let text = "HloModule m
        zeros {
          z = f32[] constant(0)
          ROOT b = f32[1000] broadcast(z), dimensions={}
        }
        ENTRY main {
          x = f32[1000] parameter(0)
          u = f32[1] parameter(1)
          j = s32[] parameter(2)
          filled = f32[1000] fusion(), kind=kLoop, calls=zeros
          empty = f32[1000] custom-call(), custom_call_target=\"AllocateBuffer\"
          a = f32[1000] exponential(x)
          r = f32[1000] reverse(a), dimensions={0}
          v = f32[1] negate(u)
          w = f32[1] sine(u)
          new = f32[1000] dynamic-update-slice(filled, v, j)
          kept = f32[1000] dynamic-update-slice(empty, w, j)
          s = f32[1000] add(r, new)
          t = f32[1000] add(s, kept)
          ROOT out = (f32[1000]) tuple(t)
        }";
    let (module, plan) = planned(text);
    let order = schedule(&module, &plan);
    let entry = module.entry();
    let names: Vec<&str> = order.sequences[&entry].iter().map(|&i| module[entry][i].name()).collect();
    let place = |name: &str| names.iter().position(|other| *other == name).expect("scheduled");
    assert_eq!(place("filled") + 1, place("new"), "{names:?}");
    assert_eq!(place("empty") + 1, place("kept"), "{names:?}");
    assert_eq!(names.len(), module[entry].post_order().len(), "each instruction once");
}
