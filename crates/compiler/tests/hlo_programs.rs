//! HLO from other compilers: arrays whose sizes are determined at run time, fusions, custom calls,
//! and unsupported programs.

use compiler::{Executable, HloProgram, NoObserver, PassRun, compile_module, host, in_process_options};
use hlo::{NamedDimension, Program, SizeParameter, SizeRange};
use shape::Literal;
use support::Result;

fn parse(text: &str) -> Result<HloProgram> {
    HloProgram::parse_hlo(text, &mut PassRun { disabled: &[], observer: &mut NoObserver })
}

fn run(text: &str, arguments: &[Literal]) -> Result<Vec<Literal>> {
    let program = parse(text)?;
    let compiled = compile_module(program.program.module, &in_process_options(host("")?), &mut NoObserver)?;
    Executable::load(&compiled)?.run(arguments)
}

#[test]
fn sizes_are_followed_through_a_program() {
    let text = "HloModule m
        sum {
          a = s32[] parameter(0)
          b = s32[] parameter(1)
          ROOT sum = s32[] add(a, b)
        }
        ENTRY main {
          x = s32[6,2] parameter(0)
          y = s32[3,3] parameter(1)
          n = s32[] parameter(2)
          four = s32[] constant(4)
          zero = s32[] constant(0)
          rows = s32[<=6,2] set-dimension-size(x, four), dimensions={0}
          cube = s32[2,<=3,2] reshape(rows)
          sums = s32[2,2] reduce(cube, zero), dimensions={1}, to_apply=sum
          some = s32[<=3,3] set-dimension-size(y, n), dimensions={0}
          corner = s32[<=3,<=3] set-dimension-size(some, n), dimensions={1}
          turned = s32[<=3,<=3] reverse(corner), dimensions={0,1}
          size = s32[] get-dimension-size(turned), dimensions={1}
          ROOT r = (s32[2,2], s32[<=3,<=3], s32[]) tuple(sums, turned, size)
        }";
    let x: Vec<i32> = (1..=12).collect();
    let y = [4, 2, 1, -1, -1, -3, -3, -3, -2];
    let arguments =
        [Literal::from_elements(&[6, 2], &x), Literal::from_elements(&[3, 3], &y), Literal::scalar(2i32)];
    let results = run(text, &arguments).unwrap();
    // Two groups of two rows each; the corner of two rows and two columns, reversed.
    assert_eq!(results[0], Literal::from_elements(&[2, 2], &[4, 6, 12, 14]));
    assert_eq!(results[1], Literal::from_elements(&[2, 2], &[-1, -1, 2, 4]));
    assert_eq!(results[2], Literal::scalar(2i32));
}

#[test]
fn a_true_size_of_one_is_repeated() {
    let text = "HloModule m
        ENTRY main {
          x = s32[4,2] parameter(0)
          y = s32[4,2] parameter(1)
          n = s32[] parameter(2)
          m = s32[] parameter(3)
          xs = s32[<=4,2] set-dimension-size(x, n), dimensions={0}
          ys = s32[<=4,2] set-dimension-size(y, m), dimensions={0}
          ROOT sum = s32[<=4,2] add(xs, ys)
        }";
    let sum = |n: i32, m: i32| {
        let x = Literal::from_elements(&[4, 2], &[1i32, 2, 3, 4, 5, 6, 7, 8]);
        let y = Literal::from_elements(&[4, 2], &[10i32, 20, 30, 40, 50, 60, 70, 80]);
        run(text, &[x, y, Literal::scalar(n), Literal::scalar(m)]).unwrap().remove(0)
    };
    assert_eq!(sum(1, 3), Literal::from_elements(&[3, 2], &[11i32, 22, 31, 42, 51, 62]));
    assert_eq!(sum(3, 1), Literal::from_elements(&[3, 2], &[11i32, 22, 13, 24, 15, 26]));
    assert_eq!(sum(1, 1), Literal::from_elements(&[1, 2], &[11i32, 22]));
    assert_eq!(sum(3, 3), Literal::from_elements(&[3, 2], &[11i32, 22, 33, 44, 55, 66]));
    assert_eq!(sum(1, 0).array_shape().sizes(), [0, 2]);
    // Other sizes should be equal. If they are not, the smaller one is used, as in XLA.
    assert_eq!(sum(3, 2), Literal::from_elements(&[2, 2], &[11i32, 22, 33, 44]));
}

#[test]
fn decompositions_by_custom_calls_have_loops() {
    let text = "HloModule m
        ENTRY main {
          x = f32[2,2] parameter(0)
          y = f32[1,3,2] parameter(1)
          eigh = (f32[2,2], f32[2]) custom-call(x), custom_call_target=\"Eigh\", backend_config=\"0,1,100,1e-6\"
          lu = (f32[1,3,2], s32[1,2], s32[1,3]) custom-call(y), custom_call_target=\"LuDecomposition\"
          ROOT r = ((f32[2,2], f32[2]), (f32[1,3,2], s32[1,2], s32[1,3])) tuple(eigh, lu)
        }";
    // Only the part of the first one above the diagonal is used.
    let x = Literal::from_elements(&[2, 2], &[3f32, 0.0, 99.0, -1.0]);
    let y = Literal::from_elements(&[1, 3, 2], &[1f32, 2.0, 4.0, 8.0, 2.0, 5.0]);
    let results = run(text, &[x, y]).unwrap();
    assert_eq!(results[0], Literal::from_elements(&[2, 2], &[0f32, 1.0, 1.0, 0.0]));
    assert_eq!(results[1], Literal::from_elements(&[2], &[-1f32, 3.0]));
    assert_eq!(results[2], Literal::from_elements(&[1, 3, 2], &[4f32, 8.0, 0.5, 1.0, 0.25, 0.0]));
    // The second row comes first, then the third one.
    assert_eq!(results[3], Literal::from_elements(&[1, 2], &[1i32, 2]));
    assert_eq!(results[4], Literal::from_elements(&[1, 3], &[1i32, 2, 0]));
}

#[test]
fn a_sort_ignores_elements_beyond_the_size() {
    let text = "HloModule m
        less {
          a = s32[] parameter(0)
          b = s32[] parameter(1)
          ROOT less = pred[] compare(a, b), direction=LT
        }
        ENTRY main {
          x = s32[4] parameter(0)
          n = s32[] parameter(1)
          some = s32[<=4] set-dimension-size(x, n), dimensions={0}
          ROOT sorted = s32[<=4] sort(some), dimensions={0}, to_apply=less
        }";
    let arguments = [Literal::from_elements(&[4], &[7i32, 9, 3, 1]), Literal::scalar(3i32)];
    assert_eq!(run(text, &arguments).unwrap()[0], Literal::from_elements(&[3], &[3i32, 7, 9]));
}

#[test]
fn windows_see_the_initial_value_beyond_the_size() {
    let text = "HloModule m
        add {
          a = s32[] parameter(0)
          b = s32[] parameter(1)
          ROOT sum = s32[] add(a, b)
        }
        ENTRY main {
          x = s32[2,7] parameter(0)
          n = s32[] parameter(1)
          zero = s32[] constant(0)
          some = s32[2,<=7] set-dimension-size(x, n), dimensions={1}
          pairs = s32[2,<=4] reduce-window(some, zero), window={size=1x2 stride=1x2 pad=0_0x1_0}, to_apply=add
          ROOT rows = s32[1,<=7] reduce-window(some, zero), window={size=2x1}, to_apply=add
        }";
    let rows = |n: i32| {
        let x: Vec<i32> = (1..=14).collect();
        run(text, &[Literal::from_elements(&[2, 7], &x), Literal::scalar(n)]).unwrap().remove(0)
    };
    assert_eq!(rows(3), Literal::from_elements(&[1, 3], &[9i32, 11, 13]));
    assert_eq!(rows(0).array_shape().sizes(), [1, 0]);
    let pairs = |n: i32| {
        let text = text.replace("ROOT rows", "rows").replace("pairs =", "ROOT pairs =");
        let x: Vec<i32> = (1..=14).collect();
        run(&text, &[Literal::from_elements(&[2, 7], &x), Literal::scalar(n)]).unwrap().remove(0)
    };
    // 1 2 3 4 5 with one element of padding before it: (pad 1) (2 3) (4 5). 1 2 3 4: (pad 1) (2 3),
    // and 4 is in no window.
    assert_eq!(pairs(5), Literal::from_elements(&[2, 3], &[1i32, 5, 9, 8, 19, 23]));
    assert_eq!(pairs(4), Literal::from_elements(&[2, 2], &[1i32, 5, 8, 19]));
    assert_eq!(pairs(0).array_shape().sizes(), [2, 0]);
}

#[test]
fn several_windowed_sums_have_their_sizes() {
    let text = "HloModule m
        add {
          a = s32[] parameter(0)
          b = f32[] parameter(1)
          c = s32[] parameter(2)
          d = f32[] parameter(3)
          first = s32[] add(a, c)
          second = f32[] add(b, d)
          ROOT both = (s32[], f32[]) tuple(first, second)
        }
        ENTRY main {
          x = s32[3] parameter(0)
          y = f32[3] parameter(1)
          n = s32[] parameter(2)
          zero = s32[] constant(0)
          none = f32[] constant(0)
          xs = s32[<=3] set-dimension-size(x, n), dimensions={0}
          ys = f32[<=3] set-dimension-size(y, n), dimensions={0}
          ROOT sums = (s32[<=2], f32[<=2]) reduce-window(xs, ys, zero, none), window={size=2}, to_apply=add
        }";
    let x = Literal::from_elements(&[3], &[1i32, 2, 3]);
    let y = Literal::from_elements(&[3], &[0.5f32, 1.0, 2.0]);
    let results = run(text, &[x, y, Literal::scalar(2i32)]).unwrap();
    assert_eq!(results, [Literal::from_elements(&[1], &[3i32]), Literal::from_elements(&[1], &[1.5f32])]);
}

#[test]
fn sizes_may_come_from_the_call_that_xlas_passes_leave() {
    let text = "HloModule m
        ENTRY main {
          x = s32[2,2] parameter(0)
          n = s32[] parameter(1)
          two = s32[] constant(2)
          ROOT some = s32[2,<=2] custom-call(x, two, n), custom_call_target=\"SliceToDynamic\"
        }";
    let x = Literal::from_elements(&[2, 2], &[1i32, 2, 3, 4]);
    let results = run(text, &[x, Literal::scalar(1i32)]).unwrap();
    assert_eq!(results, [Literal::from_elements(&[2, 1], &[1i32, 3])]);
    let error = run(&text.replace("(x, two, n)", "(x, n)"), &[]).unwrap_err();
    assert!(error.message().contains("a size for each dimension"), "{error}");
}

#[test]
fn a_conditional_gives_the_sizes_of_the_branch_that_is_taken() {
    let text = "HloModule m
        front {
          p = (s32[<=4], s32[]) parameter(0)
          x = s32[<=4] get-tuple-element(p), index=0
          one = s32[] constant(1)
          start = s32[<=4] set-dimension-size(x, one), dimensions={0}
          ROOT r = (s32[<=4], s32[]) tuple(start, one)
        }
        all {
          p = (s32[<=4], s32[]) parameter(0)
          x = s32[<=4] get-tuple-element(p), index=0
          n = s32[] get-tuple-element(p), index=1
          twice = s32[<=4] add(x, x)
          ROOT r = (s32[<=4], s32[]) tuple(twice, n)
        }
        none {
          p = (s32[<=4], s32[]) parameter(0)
          x = s32[<=4] get-tuple-element(p), index=0
          zero = s32[] constant(0)
          nothing = s32[<=4] set-dimension-size(x, zero), dimensions={0}
          ROOT r = (s32[<=4], s32[]) tuple(nothing, zero)
        }
        ENTRY main {
          x = s32[4] parameter(0)
          n = s32[] parameter(1)
          which = s32[] parameter(2)
          some = s32[<=4] set-dimension-size(x, n), dimensions={0}
          given = (s32[<=4], s32[]) tuple(some, n)
          ROOT c = (s32[<=4], s32[]) conditional(which, given, given, given), branch_computations={front, all, none}
        }";
    let taken = |text: &str, which: Literal| {
        let x = Literal::from_elements(&[4], &[5i32, 6, 7, 8]);
        run(text, &[x, Literal::scalar(3i32), which]).unwrap()
    };
    let whole = |elements: &[i32]| Literal::from_elements(&[elements.len() as i64], elements);
    assert_eq!(taken(text, Literal::scalar(0i32)), [whole(&[5]), Literal::scalar(1i32)]);
    assert_eq!(taken(text, Literal::scalar(1i32)), [whole(&[10, 12, 14]), Literal::scalar(3i32)]);
    // An index out of range selects the last branch.
    for which in [2i32, -1, 3] {
        assert_eq!(taken(text, Literal::scalar(which)), [whole(&[]), Literal::scalar(0i32)], "{which}");
    }
    let two = text.replace("which = s32[]", "which = pred[]").replace(
        "given, given, given), branch_computations={front, all, none}",
        "given, given), branch_computations={all, front}",
    );
    assert_eq!(taken(&two, Literal::scalar(true)), [whole(&[10, 12, 14]), Literal::scalar(3i32)]);
    assert_eq!(taken(&two, Literal::scalar(false)), [whole(&[5]), Literal::scalar(1i32)]);
    // A branch with a side effect runs only if it is taken. The results are the same.
    let draws = text.replace(
        "twice = s32[<=4] add(x, x)",
        "twice = s32[<=4] add(x, x)\n drawn = u64[2] rng-get-and-update-state(), delta=1",
    );
    assert_eq!(taken(&draws, Literal::scalar(0i32)), [whole(&[5]), Literal::scalar(1i32)]);
    assert_eq!(taken(&draws, Literal::scalar(1i32)), [whole(&[10, 12, 14]), Literal::scalar(3i32)]);
    assert_eq!(taken(&draws, Literal::scalar(7i32)), [whole(&[]), Literal::scalar(0i32)]);
}

#[test]
fn loops_carry_sizes_and_branches_set_their_own() {
    // Halves the size until at most `least` elements are left, and adds one to the remaining
    // elements.
    let text = "HloModule m
        add {
          x = s32[] parameter(0)
          y = s32[] parameter(1)
          ROOT z = s32[] add(x, y)
        }
        again {
          state = ((s32[<=6], s32[]), s32[]) parameter(0)
          pair = (s32[<=6], s32[]) get-tuple-element(state), index=0
          x = s32[<=6] get-tuple-element(pair), index=0
          least = s32[] get-tuple-element(state), index=1
          n = s32[] get-dimension-size(x), dimensions={0}
          ROOT more = pred[] compare(n, least), direction=GT
        }
        step {
          state = ((s32[<=6], s32[]), s32[]) parameter(0)
          pair = (s32[<=6], s32[]) get-tuple-element(state), index=0
          x = s32[<=6] get-tuple-element(pair), index=0
          steps = s32[] get-tuple-element(pair), index=1
          least = s32[] get-tuple-element(state), index=1
          n = s32[] get-dimension-size(x), dimensions={0}
          two = s32[] constant(2)
          half = s32[] divide(n, two)
          one = s32[] constant(1)
          ones = s32[6] broadcast(one), dimensions={}
          some = s32[<=6] set-dimension-size(ones, n), dimensions={0}
          sum = s32[<=6] add(x, some)
          first = s32[1] constant({100})
          zero = s32[] constant(0)
          marked = s32[<=6] dynamic-update-slice(sum, first, zero)
          fewer = s32[<=6] set-dimension-size(marked, half), dimensions={0}
          next = s32[] add(steps, one)
          made = (s32[<=6], s32[]) tuple(fewer, next)
          ROOT r = ((s32[<=6], s32[]), s32[]) tuple(made, least)
        }
        halves {
          p = (s32[6], s32[], s32[]) parameter(0)
          x = s32[6] get-tuple-element(p), index=0
          n = s32[] get-tuple-element(p), index=1
          least = s32[] get-tuple-element(p), index=2
          some = s32[<=6] set-dimension-size(x, n), dimensions={0}
          zero = s32[] constant(0)
          pair = (s32[<=6], s32[]) tuple(some, zero)
          start = ((s32[<=6], s32[]), s32[]) tuple(pair, least)
          done = ((s32[<=6], s32[]), s32[]) while(start), condition=again, body=step
          end = (s32[<=6], s32[]) get-tuple-element(done), index=0
          left = s32[<=6] get-tuple-element(end), index=0
          steps = s32[] get-tuple-element(end), index=1
          sum = s32[] reduce(left, zero), dimensions={0}, to_apply=add
          ROOT r = (s32[], s32[]) tuple(sum, steps)
        }
        none {
          p = (s32[6], s32[], s32[]) parameter(0)
          n = s32[] get-tuple-element(p), index=1
          ROOT r = (s32[], s32[]) tuple(n, n)
        }
        ENTRY main {
          x = s32[6] parameter(0)
          n = s32[] parameter(1)
          least = s32[] parameter(2)
          loops = pred[] parameter(3)
          given = (s32[6], s32[], s32[]) tuple(x, n, least)
          ROOT c = (s32[], s32[]) conditional(loops, given, given), true_computation=halves, false_computation=none
        }";
    let made = |n: i32, least: i32, loops: bool| {
        let x = Literal::from_elements(&[6], &[1i32, 2, 3, 4, 5, 6]);
        run(text, &[x, Literal::scalar(n), Literal::scalar(least), Literal::scalar(loops)]).unwrap()
    };
    let numbers = |a: i32, b: i32| [Literal::scalar(a), Literal::scalar(b)];
    // 5 elements become 2, then 1: {100}, in two steps.
    assert_eq!(made(5, 1, true), numbers(100, 2));
    // 6 elements become 3: {100, 3, 4}.
    assert_eq!(made(6, 3, true), numbers(107, 1));
    assert_eq!(made(4, 4, true), numbers(10, 0));
    assert_eq!(made(4, 4, false), numbers(4, 4));
}

#[test]
fn windows_of_a_scatter_end_where_the_updates_do() {
    let text = "HloModule m
        add {
          x = s32[] parameter(0)
          y = s32[] parameter(1)
          ROOT z = s32[] add(x, y)
        }
        ENTRY main {
          x = s32[5] parameter(0)
          places = u8[2] parameter(1)
          updates = s32[2,3] parameter(2)
          n = s32[] parameter(3)
          some = s32[2,<=3] set-dimension-size(updates, n), dimensions={1}
          ROOT r = s32[5] scatter(x, places, some), update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
        }";
    let scattered = |n: i32| {
        let x = Literal::from_elements(&[5], &[10i32, 20, 30, 40, 50]);
        let updates = Literal::from_elements(&[2, 3], &[1i32, 2, 3, 4, 5, 6]);
        run(text, &[x, Literal::from_elements(&[2], &[0u8, 3]), updates, Literal::scalar(n)]).unwrap()
    };
    let whole = |elements: &[i32]| [Literal::from_elements(&[5], elements)];
    assert_eq!(scattered(0), whole(&[10, 20, 30, 40, 50]));
    assert_eq!(scattered(2), whole(&[11, 22, 30, 44, 55]));
    // The second window is out of bounds, so it is ignored completely.
    assert_eq!(scattered(3), whole(&[11, 22, 33, 40, 50]));

    // A dimension without an index: the windows start at 0. The operand is bounded, too.
    let text = "HloModule m
        last {
          x = s32[] parameter(0)
          ROOT y = s32[] parameter(1)
        }
        ENTRY main {
          x = s32[3,2,2] parameter(0)
          places = s32[1,1] parameter(1)
          updates = s32[2,2,1] parameter(2)
          n = s32[] parameter(3)
          m = s32[] parameter(4)
          xs = s32[3,<=2,2] set-dimension-size(x, n), dimensions={1}
          some = s32[<=2,2,1] set-dimension-size(updates, m), dimensions={0}
          ROOT r = s32[3,<=2,2] scatter(xs, places, some), update_window_dims={0,1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=last
        }";
    let scattered = |n: i32, m: i32| {
        let x = Literal::from_elements(&[3, 2, 2], &[1i32, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        let updates = Literal::from_elements(&[2, 2, 1], &[-1i32, -2, -3, -4]);
        let place = Literal::from_elements(&[1, 1], &[1i32]);
        run(text, &[x, place, updates, Literal::scalar(n), Literal::scalar(m)]).unwrap()
    };
    assert_eq!(
        scattered(2, 1),
        [Literal::from_elements(&[3, 2, 2], &[1i32, 2, 3, 4, -1, -2, 7, 8, 9, 10, 11, 12])]
    );
    assert_eq!(scattered(1, 1), [Literal::from_elements(&[3, 1, 2], &[1i32, 2, -1, -2, 9, 10])]);
    assert_eq!(scattered(1, 2), [Literal::from_elements(&[3, 1, 2], &[1i32, 2, 5, 6, 9, 10])]);
}

#[test]
fn fusions_of_other_compilers_are_expanded() {
    let text = "HloModule m
        body {
          x = s32[4] parameter(0)
          at = s32[] parameter(1)
          part = s32[2] slice(x), slice={[0:2]}
          twice = s32[4] add(x, x)
          updated = s32[4] dynamic-update-slice(twice, part, at)
          inner = (s32[2], s32[4]) tuple(part, updated)
          ROOT r = ((s32[2], s32[4]), s32[4]) tuple(inner, twice)
        }
        ENTRY main {
          x = s32[4] parameter(0)
          at = s32[] parameter(1)
          ROOT f = ((s32[2], s32[4]), s32[4]) fusion(x, at), kind=kLoop, calls=body
        }";
    let x = Literal::from_elements(&[4], &[1i32, 2, 3, 4]);
    let results = run(text, &[x, Literal::scalar(1i32)]).unwrap();
    assert_eq!(results[0], Literal::from_elements(&[2], &[1i32, 2]));
    assert_eq!(results[1], Literal::from_elements(&[4], &[2i32, 1, 2, 8]));
    assert_eq!(results[2], Literal::from_elements(&[4], &[2i32, 4, 6, 8]));
}

#[test]
fn a_malformed_text_is_an_error_of_the_user() {
    let text = "HloModule m
        ENTRY main {
          x = f32[4] parameter(0)
          ROOT y = f32[3] negate(x)
        }";
    assert_eq!(parse(text).unwrap_err().kind(), support::ErrorKind::Invalid);
}

#[test]
fn instructions_without_support_for_bounds_are_named() {
    let text = "HloModule m
        add {
          a = s32[] parameter(0)
          b = s32[] parameter(1)
          ROOT sum = s32[] add(a, b)
        }
        ENTRY main {
          x = s32[4] parameter(0)
          n = s32[] parameter(1)
          zero = s32[] constant(0)
          some = s32[<=4] set-dimension-size(x, n), dimensions={0}
          ROOT sums = s32[<=6] reduce-window(some, zero), window={size=2 lhs_dilate=2}, to_apply=add
        }";
    let error = parse(text).unwrap_err();
    assert!(error.message().contains("instruction 'sums' (reduce-window)"), "{error}");
}

const NAMED: &str = "HloModule m, size_parameters={ (1, 1, 4) }
        ENTRY main {
          pair = (f32[3], f32[4,2]) parameter(0)
          batch = s32[] parameter(1)
          w = f32[3] get-tuple-element(pair), index=0
          x = f32[4,2] get-tuple-element(pair), index=1
          sized = f32[<=4,2] set-dimension-size(x, batch), dimensions={0}
          y = f32[<=4,2] negate(sized)
          ROOT r = (f32[<=4,2], f32[3]) tuple(y, w)
        }";

#[test]
fn sizes_of_named_dimensions_are_found_among_flat_arguments() {
    let flat = NAMED
        .replace("pair = (f32[3], f32[4,2]) parameter(0)", "")
        .replace("get-tuple-element(pair), index=0", "parameter(0)")
        .replace("get-tuple-element(pair), index=1", "parameter(2)");
    for (text, x, size) in [(flat.as_str(), 2, 1), (NAMED, 1, 2)] {
        let Program { module, interface, .. } = parse(text).unwrap().program;
        let sizes: Vec<_> = interface.sizes().map(|(k, size, range)| (k, size.label(), range)).collect();
        assert_eq!(sizes, [(size, "batch".to_owned(), SizeRange { low: 1, high: 4 })], "{text}");
        assert_eq!(module.size_parameters(), [SizeParameter { parameter: size, low: 1, high: 4 }]);
        assert_eq!(interface.arguments()[x].named_dimensions, [NamedDimension { dimension: 0, size }]);
        assert!(interface.results()[0].shape.dimensions[0].is_dynamic, "{text}");
        let w = Literal::from_elements(&[3], &[7f32, 8.0, 9.0]);
        let rows = Literal::from_elements(&[4, 2], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let mut arguments = vec![(0, w.clone()), (x, rows), (size, Literal::scalar(2i32))];
        arguments.sort_by_key(|(number, _)| *number);
        let arguments: Vec<Literal> = arguments.into_iter().map(|(_, array)| array).collect();
        let negated = Literal::from_elements(&[2, 2], &[-1f32, -2.0, -3.0, -4.0]);
        assert_eq!(run(text, &arguments).unwrap(), [negated, w], "{text}");
    }
}

#[test]
fn sizes_of_named_dimensions_keep_their_arguments_when_others_become_constants() {
    let text = NAMED
        .replace("pair = (f32[3], f32[4,2]) parameter(0)", "")
        .replace("get-tuple-element(pair), index=0", "parameter(0)")
        .replace("get-tuple-element(pair), index=1", "parameter(2)");
    let weights = [("w".to_owned(), Literal::from_elements(&[3], &[1f32, 2.0, 3.0]))].into();
    let Program { module, interface, .. } = parse(&text).unwrap().with_constants(&weights).unwrap().program;
    assert_eq!(module.size_parameters(), [SizeParameter { parameter: 0, low: 1, high: 4 }]);
    assert_eq!(interface.sizes().map(|(k, ..)| k).collect::<Vec<_>>(), [0]);
    assert_eq!(interface.arguments()[1].named_dimensions, [NamedDimension { dimension: 0, size: 0 }]);
}

#[test]
fn an_undefined_custom_call_is_an_error_that_names_its_target() {
    let text = "HloModule m
        ENTRY main {
          x = f32[4] parameter(0)
          ROOT y = f32[4] custom-call(x), custom_call_target=\"vendor.fast_math\"
        }";
    let error = run(text, &[Literal::from_elements(&[4], &[0f32; 4])]).unwrap_err();
    assert!(error.message().contains("y = f32[4]"), "{error}");
    assert!(error.message().contains("custom call \"vendor.fast_math\""), "{error}");
}
