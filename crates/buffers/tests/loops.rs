//! Loops that exchange places, and what their copies and stages need.

use crate::{Assigned, assigned};
use buffers::{Allocation, Rotation};

/// A loop that replaces two states of `size` by `size` elements by results of the body.
fn loop_of(size: usize, body: &str, results: &str) -> Assigned {
    let state = format!("(s32[], f32[{size},{size}], f32[{size},{size}])");
    assigned(&format!(
        "HloModule m
        below {{
          p = {state} parameter(0)
          i = s32[] get-tuple-element(p), index=0
          n = s32[] constant(10)
          ROOT c = pred[] compare(i, n), direction=LT
        }}
        step {{
          p = {state} parameter(0)
          i = s32[] get-tuple-element(p), index=0
          x = f32[{size},{size}] get-tuple-element(p), index=1
          y = f32[{size},{size}] get-tuple-element(p), index=2
          one = s32[] constant(1)
          next = s32[] add(i, one)
          {body}
          ROOT t = {state} tuple(next, {results})
        }}
        ENTRY main {{
          x = f32[{size},{size}] parameter(0)
          y = f32[{size},{size}] parameter(1)
          zero = s32[] constant(0)
          start = {state} tuple(zero, x, y)
          w = {state} while(start), condition=below, body=step
          first = f32[{size},{size}] get-tuple-element(w), index=1
          second = f32[{size},{size}] get-tuple-element(w), index=2
          ROOT out = (f32[{size},{size}], f32[{size},{size}]) tuple(first, second)
        }}"
    ))
}

impl Assigned {
    fn rotations(&self) -> Vec<Rotation> {
        self.assignment.rotations.values().flatten().cloned().collect()
    }

    fn end_copies_of(&self, computation: &str) -> usize {
        self.assignment.end_copies.get(&self.computation(computation)).map_or(0, Vec::len)
    }
}

const PRODUCT: &str = "d = f32[N,N] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}";

#[test]
fn large_states_that_change_places_are_exchanged_and_small_ones_are_copied() {
    // 8 * 8 * 4 bytes are 256, the largest state that is copied.
    let small = loop_of(8, "", "y, x");
    assert!(small.assignment.rotations.is_empty());
    assert_eq!(small.end_copies_of("step"), 3, "a swap through a stage");
    let large = loop_of(9, "", "y, x");
    let [rotation] = &large.rotations()[..] else { panic!("one rotation") };
    let results = [0, 1].map(Allocation::Result);
    for places in [&rotation.places, &rotation.state] {
        let mut allocations: Vec<Allocation> = places.iter().map(|place| place.allocation).collect();
        allocations.sort_unstable();
        assert_eq!(allocations, results);
    }
    assert_eq!(large.end_copies_of("step"), 0);
    // After the loop, both go back to their addresses through stages, which are live together.
    let [a, b] = rotation.stages[..] else { panic!("two stages") };
    assert!(!a.overlaps(&b));
    assert_eq!([a, b].map(|stage| (stage.allocation, stage.size)), [(Allocation::Temps, 324); 2]);
}

#[test]
fn a_single_state_alternates_without_a_stage() {
    let a = loop_of(9, &PRODUCT.replace('N', "9"), "d, y");
    let [rotation] = &a.rotations()[..] else { panic!("one rotation") };
    assert_eq!(rotation.places.len(), 2);
    assert_eq!(rotation.state.len(), 1);
    assert!(rotation.stages.is_empty());
    assert_eq!(a.slice("second").allocation, Allocation::Parameter(1), "never changes");
    // One place is the result, the other a temporary, to which nothing else comes during the loop.
    let place = rotation.places.iter().find(|place| place.allocation == Allocation::Temps);
    let place = *place.expect("a temporary");
    for (leaf, slice) in &a.assignment.slices {
        let name = a.module[leaf.0][leaf.1].name();
        assert!(["d", "t"].contains(&name) || !slice.overlaps(&place), "{name} in {slice}");
    }
    // The counter, the condition, and the matrix: 64 + 64 + 384 bytes.
    assert_eq!(a.assignment.temps_size, 512);
}

#[test]
fn exchanged_parameters_pass_their_alignment_on() {
    // An in-out parameter is aligned as its elements; the loop's other place takes its turn there.
    let a = assigned(
        "HloModule m, input_output_alias={ {0}: (0, {}, must-alias) }
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
          ROOT t = (s32[], f32[9,9], f32[9,9]) tuple(next, d, y)
        }
        ENTRY main {
          x = f32[9,9] parameter(0)
          y = f32[9,9] parameter(1)
          zero = s32[] constant(0)
          start = (s32[], f32[9,9], f32[9,9]) tuple(zero, x, y)
          w = (s32[], f32[9,9], f32[9,9]) while(start), condition=below, body=step
          first = f32[9,9] get-tuple-element(w), index=1
          ROOT out = (f32[9,9]) tuple(first)
        }",
    );
    let [rotation] = &a.rotations()[..] else { panic!("one rotation") };
    let mut places = rotation.places.clone();
    places.sort_unstable();
    assert_eq!(a.assignment.weakly_aligned.iter().copied().collect::<Vec<_>>(), places);
    assert!(places.iter().any(|place| place.allocation == Allocation::Parameter(0)));
    assert!(places.iter().any(|place| place.allocation == Allocation::Temps));
    let without = loop_of(9, "", "y, x");
    assert!(without.assignment.weakly_aligned.is_empty(), "results have memory of full alignment");
}

#[test]
fn a_computation_with_two_callers_is_an_error() {
    let text = "HloModule m
        negated {
          p = f32[4] parameter(0)
          ROOT n = f32[4] negate(p)
        }
        other {
          p = f32[4] parameter(0)
          ROOT n = f32[4] sine(p)
        }
        ENTRY main {
          c = pred[] parameter(0)
          x = f32[4] parameter(1)
          r = f32[4] conditional(c, x, x), true_computation=negated, false_computation=other
          ROOT s = f32[4] conditional(c, r, x), true_computation=negated, false_computation=other
        }";
    let (module, plan) = crate::planned(text);
    let schedule = buffers::schedule(&module, &plan);
    let mut pool = buffers::ConstantsPool::default();
    let error = buffers::assign(&module, &plan, &schedule, &mut pool).expect_err("two callers");
    assert!(error.message().contains("computation negated has several callers"), "{error}");
}

#[test]
fn temporaries_beyond_all_machines_are_an_error() {
    let assign = |length: u64| {
        let (module, plan) = crate::planned(
            &format!(
                "HloModule m
            ENTRY main {{
              z = f32[] parameter(0)
              x = s8[{length}] broadcast(z), dimensions={{}}
              r = s8[{length}] reverse(x), dimensions={{0}}
              s = s8[{length}] reverse(r), dimensions={{0}}
              ROOT y = s8[1] slice(s), slice={{[0:1]}}
            }}"
            )
            .replace("z = f32[]", "z = s8[]"),
        );
        let schedule = buffers::schedule(&module, &plan);
        buffers::assign(&module, &plan, &schedule, &mut buffers::ConstantsPool::default())
    };
    // Two arrays live together; 1 << 40 bytes are the limit.
    assert_eq!(assign(1 << 39).expect("just fits").temps_size, 1 << 40);
    let error = assign((1 << 39) + 64).expect_err("too large");
    assert!(error.message().contains("needs 1099511627904 bytes of temporaries"), "{error}");
}

#[test]
fn scratch_of_workers_is_the_largest_request_in_whole_lines() {
    let text = "HloModule m
        ENTRY main {
          x = f32[4] parameter(0)
          a = f32[4] negate(x)
          ROOT b = f32[4] sine(a)
        }";
    let assign = |bytes: [u64; 2]| {
        let (module, mut plan) = crate::planned(text);
        let entry = module.entry();
        for (name, bytes) in ["a", "b"].into_iter().zip(bytes) {
            let id = module[entry].find(name).expect("an instruction");
            let plans = plan.computations.get_mut(&entry).expect("the entry");
            plans.instructions.get_mut(&id).expect("a plan").worker_scratch_bytes = bytes;
        }
        let schedule = buffers::schedule(&module, &plan);
        buffers::assign(&module, &plan, &schedule, &mut buffers::ConstantsPool::default())
    };
    assert_eq!(assign([0, 0]).expect("fits").worker_scratch_size, 0);
    assert_eq!(assign([65, 3]).expect("fits").worker_scratch_size, 128);
    assert_eq!(assign([3, 64]).expect("fits").worker_scratch_size, 64);
    assert_eq!(assign([1 << 40, 0]).expect("just fits").worker_scratch_size, 1 << 40);
    let error = assign([0, (1 << 40) + 1]).expect_err("too large");
    assert!(error.message().contains("bytes of scratch for each worker"), "{error}");
}

#[test]
fn random_states_are_apart_and_come_before_other_temporaries() {
    let a = assigned(
        "HloModule m
        ENTRY main {
          a = u64[2] rng-get-and-update-state(), delta=1
          b = u64[2] rng-get-and-update-state(), delta=1
          x = u64[2] add(a, b)
          y = u64[2] reverse(x), dimensions={0}
          ROOT out = (u64[2]) tuple(y)
        }",
    );
    let entry = a.computation("main");
    let [first, second] = ["a", "b"].map(|name| a.assignment.scratch[&(entry, a.instruction("main", name))]);
    assert_eq!((first.size, second.size), (16, 16));
    let mut offsets = [first.offset, second.offset];
    offsets.sort_unstable();
    assert_eq!(offsets, [0, 64]);
    assert_eq!(a.assignment.persistent_size, 128);
    // Two numbers, and a sum that overwrites one of them.
    assert_eq!(a.assignment.temps_size, 256);
    assert_eq!(a.assignment.temps_lower_bound, 256);
    assert!(a.slice("x").offset >= 128);
}

#[test]
fn a_value_from_outside_the_loop_is_copied_to_the_state() {
    // The other state never changes, and every iteration needs it where it is.
    let a = loop_of(9, "", "y, y");
    assert!(a.assignment.rotations.is_empty());
    assert_eq!(a.end_copies_of("step"), 1);
    let a = assigned(
        "HloModule m
        below {
          p = (s32[], f32[9,9], f32[9,9]) parameter(0)
          i = s32[] get-tuple-element(p), index=0
          n = s32[] constant(10)
          ROOT c = pred[] compare(i, n), direction=LT
        }
        step {
          p = (s32[], f32[9,9], f32[9,9]) parameter(0)
          i = s32[] get-tuple-element(p), index=0
          k = f32[9,9] get-tuple-element(p), index=2
          one = s32[] constant(1)
          next = s32[] add(i, one)
          ROOT t = (s32[], f32[9,9], f32[9,9]) tuple(next, k, k)
        }
        ENTRY main {
          x = f32[9,9] parameter(0)
          k = f32[9,9] exponential(x)
          zero = s32[] constant(0)
          start = (s32[], f32[9,9], f32[9,9]) tuple(zero, x, k)
          w = (s32[], f32[9,9], f32[9,9]) while(start), condition=below, body=step
          first = f32[9,9] get-tuple-element(w), index=1
          sum = f32[9,9] add(first, k)
          ROOT out = (f32[9,9]) tuple(sum)
        }",
    );
    assert!(a.assignment.rotations.is_empty(), "k is read after the loop where it was computed");
    assert_eq!(a.end_copies_of("step"), 1);
}

#[test]
fn arrays_without_bytes_are_not_copied() {
    let a = assigned(
        "HloModule m
        below {
          p = (s32[], f32[0]) parameter(0)
          i = s32[] get-tuple-element(p), index=0
          n = s32[] constant(10)
          ROOT c = pred[] compare(i, n), direction=LT
        }
        step {
          p = (s32[], f32[0]) parameter(0)
          i = s32[] get-tuple-element(p), index=0
          x = f32[0] get-tuple-element(p), index=1
          one = s32[] constant(1)
          next = s32[] add(i, one)
          y = f32[0] negate(x)
          ROOT t = (s32[], f32[0]) tuple(next, y)
        }
        ENTRY main {
          x = f32[0] parameter(0)
          zero = s32[] constant(0)
          start = (s32[], f32[0]) tuple(zero, x)
          w = (s32[], f32[0]) while(start), condition=below, body=step
          last = f32[0] get-tuple-element(w), index=1
          ROOT out = (f32[0], f32[0]) tuple(last, x)
        }",
    );
    assert_eq!(a.copies(), []);
    let starts = a.assignment.start_copies.values().flatten();
    assert_eq!(starts.map(|copy| copy.from.size).collect::<Vec<_>>(), [4], "the counter");
}
