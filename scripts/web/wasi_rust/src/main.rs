//! Calls a compiled graph in WASI: with feeds in its own memory and in the program's, and with a
//! variable that counts rows. WASI has no threads, so a second one is an error.

tfcompile_runtime::include_model!("scorer");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut scorer = Scorer::new();
    #[cfg(weights_in_a_file)]
    scorer.set_constants(tfcompile_runtime::Constants::read(env!("SCORER_CONSTANTS"))?)?;

    *scorer.arg_x_mut() = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
    scorer.run()?;
    println!("scores {:?}", scorer.result_score());

    let x = [[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0]];
    let outputs = scorer.call(&ScorerInputs { arg_x: &x })?;
    println!("scores {:?}", outputs.result_score);

    println!("rows {}", scorer.var_rows());
    *scorer.var_rows_mut() = 100;
    scorer.run()?;
    println!("rows {}", scorer.var_rows());

    #[cfg(has_threads)]
    println!("{}", scorer.set_threads(2).expect_err("WASI has no threads"));
    Ok(())
}
