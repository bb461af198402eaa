//! HLO of others with arrays whose sizes only a run knows: compiled, and what is refused.

use compiler::{Executable, HloProgram, NoObserver, compile_module, host, in_process_options};
use shape::Literal;
use support::Result;

fn run(text: &str, arguments: &[Literal]) -> Result<Vec<Literal>> {
    let program = HloProgram::parse_hlo(text)?;
    let compiled = compile_module(program.module, &in_process_options(host("")?), &mut NoObserver)?;
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
    // Two groups of two rows each; the corner of two rows and columns, turned around.
    assert_eq!(results[0], Literal::from_elements(&[2, 2], &[4, 6, 12, 14]));
    assert_eq!(results[1], Literal::from_elements(&[2, 2], &[-1, -1, 2, 4]));
    assert_eq!(results[2], Literal::scalar(2i32));
}

#[test]
fn a_sort_leaves_out_what_is_not_there() {
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
fn what_cannot_leave_out_what_is_not_there_is_named() {
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
          ROOT sums = s32[<=3] reduce-window(some, zero), window={size=2}, to_apply=add
        }";
    let error = HloProgram::parse_hlo(text).unwrap_err();
    assert!(error.message().contains("instruction 'sums' (reduce-window)"), "{error}");
}

#[test]
fn a_custom_call_that_nobody_defines_is_refused_by_its_target() {
    let text = "HloModule m
        ENTRY main {
          x = f32[4] parameter(0)
          ROOT y = f32[4] custom-call(x), custom_call_target=\"vendor.fast_math\"
        }";
    let error = run(text, &[Literal::from_elements(&[4], &[0f32; 4])]).unwrap_err();
    assert!(error.message().contains("y = f32[4]"), "{error}");
    assert!(error.message().contains("custom call \"vendor.fast_math\""), "{error}");
}
