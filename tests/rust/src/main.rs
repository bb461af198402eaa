//! Compares variants of a model with results computed by hand.

#![deny(warnings)]

mod outside {
    tfcompile_runtime::include_model!("outside");
}
mod chosen {
    tfcompile_runtime::include_model!("chosen");
}

use tfcompile_runtime::{Constants, ThreadPool};

const X: [[f32; 3]; 2] = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
const WANT: [[f32; 2]; 2] = [[14.25, 0.5], [32.25, 0.0]];

fn main() {
    // SAFETY: the program has only one thread.
    assert_eq!(unsafe { core_only::score(&X) }, WANT);

    let mut outside = outside::Outside::new();
    *outside.arg_x_mut() = X;
    let error = outside.run().expect_err("no constants");
    assert!(error.message().contains("set_constants"), "{error}");
    let askew = Constants::from_static(b"TFCCONST and nothing else");
    assert!(outside.set_constants(askew).is_err());
    let file = Constants::read(env!("OUTSIDE_CONSTANTS")).expect("the file that the build wrote");
    outside.set_constants(file.clone()).expect("constants of this model");
    outside.run().expect("a run");
    assert_eq!(*outside.result_score(), WANT);
    assert_eq!(*outside.var_rows(), 2);
    let pool = std::sync::Arc::new(ThreadPool::new(2).expect("two threads"));
    outside.set_workers(Some(pool)).expect("scratch for two");
    outside.run().expect("a run");
    assert_eq!((*outside.outputs().result_score, *outside.var_rows()), (WANT, 4));
    assert_eq!(std::fs::read(env!("OUTSIDE_CONSTANTS")).expect("readable").len() % 64, 0);

    let mut chosen = chosen::Chosen::new();
    let outputs = chosen.call(&chosen::ChosenInputs { arg_x: &[0, 7, 0, 0, 9] }).expect("a run");
    assert_eq!(outputs.result_places_sizes, [2, 1]);
    assert_eq!(outputs.result_places[..2], [[1], [4]]);
    let outputs = chosen.call(&chosen::ChosenInputs { arg_x: &[0; 5] }).expect("a run");
    assert_eq!(outputs.result_places_sizes, [0, 1]);

    println!("all variants agree");
}
