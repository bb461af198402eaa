//! Scores two rows in a session, which compiles in this process, and with code compiled ahead of
//! time.

tfcompile_runtime::include_model!("scorer");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // x w + b with w = [[1, -1], [2, -2], [3, 0.5]] and b = [0.25, 4], and 0 for negative values.
    let expected = [[14.25f32, 0.5], [32.25, 0.0]];
    let x = [[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];

    let graph = tfcompile::parse_graph(std::fs::read("scorer.pbtxt")?)?;
    let session = tfcompile::Session::new(graph, &tfcompile::Options::default())?;
    let argument = tfcompile::Literal::from_elements(&[2, 3], x.as_flattened());
    let results = session.run(&[("x", argument)], &["relu"], &[])?;
    assert_eq!(results[0].to_vec::<f32>().as_deref(), Some(expected.as_flattened()));

    let mut scorer = Scorer::new();
    assert_eq!(*scorer.call(&ScorerInputs { arg_x: &x })?.result_score, expected);
    println!("the packed crates agree");
    Ok(())
}
