//! Scores pairs of rows with a compiled graph, and counts how often.

tfcompile_runtime::include_model!("scorer");

fn main() -> Result<(), tfcompile_runtime::Error> {
    let mut scorer = Scorer::new();

    // Arguments may be written into the model's own memory...
    *scorer.arg_x_mut() = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
    scorer.run()?;
    println!("scores {:?}", scorer.result_score());

    // ...or stay where they are, and two threads may share the work.
    let x = [[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0]];
    scorer.set_threads(2)?;
    let outputs = scorer.call(&ScorerInputs { arg_x: &x })?;
    println!("scores {:?}", outputs.result_score);

    // Variables live in the model from run to run.
    println!("rows {}", scorer.var_rows());
    *scorer.var_rows_mut() = 100;
    scorer.run()?;
    println!("rows {}", scorer.var_rows());
    Ok(())
}
