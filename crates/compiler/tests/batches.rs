//! Programs for batches of any size, compared with the evaluator on one row after another.

use compiler::{
    Executable, File, Input, NoObserver, compile_module, compile_program, host, in_process_options,
};
use hlo::Program;
use shape::Literal;
use support::Result;

/// A dense layer with softmax, a lookup, and the number of classes. `extra` are more nodes.
fn graph(extra: &str) -> String {
    let weights: Vec<String> =
        (0..24).map(|k| format!("float_val: {}", f64::from((k * 7) % 5) - 1.5)).collect();
    let table: Vec<String> = (0..8).map(|k| format!("float_val: {k}.25")).collect();
    let float = "attr { key: \"T\" value { type: DT_FLOAT } }";
    let constant = |name: &str, sizes: &[i64], values: &str, data_type: &str| {
        let dims: Vec<String> = sizes.iter().map(|size| format!("dim {{ size: {size} }}")).collect();
        format!(
            "node {{ name: \"{name}\" op: \"Const\" attr {{ key: \"dtype\" value {{ type: {data_type} }} }} \
             attr {{ key: \"value\" value {{ tensor {{ dtype: {data_type} tensor_shape {{ {} }} {values} }} }} }} }}\n",
            dims.join(" ")
        )
    };
    let placeholder = |name: &str, data_type: &str| {
        format!(
            "node {{ name: \"{name}\" op: \"Placeholder\" attr {{ key: \"dtype\" value {{ type: {data_type} }} }} }}\n"
        )
    };
    let mut text = placeholder("x", "DT_FLOAT") + &placeholder("i", "DT_INT32");
    text += &constant("w", &[6, 4], &weights.join(" "), "DT_FLOAT");
    text += &constant("table", &[4, 2], &table.join(" "), "DT_FLOAT");
    text += &constant("axis", &[], "int_val: 0", "DT_INT32");
    text += &constant("classes", &[], "int_val: 4", "DT_INT32");
    text += &format!("node {{ name: \"product\" op: \"MatMul\" input: \"x\" input: \"w\" {float} }}\n");
    text += &format!("node {{ name: \"y\" op: \"Softmax\" input: \"product\" {float} }}\n");
    text += "node { name: \"g\" op: \"GatherV2\" input: \"table\" input: \"i\" input: \"axis\" \
             attr { key: \"Tparams\" value { type: DT_FLOAT } } attr { key: \"Tindices\" value { type: DT_INT32 } } \
             attr { key: \"Taxis\" value { type: DT_INT32 } } }\n";
    text + extra
}

fn config(fetches: &[&str], low: i64, high: i64) -> String {
    let fetches: Vec<String> =
        fetches.iter().map(|name| format!("fetch {{ id {{ node_name: \"{name}\" }} }}")).collect();
    format!(
        "feed {{ id {{ node_name: \"x\" }} shape {{ dim {{ size: -1 name: \"batch\" }} dim {{ size: 6 }} }} }}\n\
         feed {{ id {{ node_name: \"i\" }} shape {{ dim {{ size: -1 name: \"batch\" }} }} }}\n{}\n\
         dimension {{ name: \"batch\" min: {low} max: {high} size: 3 }}\n",
        fetches.join("\n")
    )
}

fn import(graph: &str, config: &str) -> Result<Program> {
    let file = |name, content: &str| File { name, content: content.to_owned().into() };
    let input = Input::parse(file("graph.pbtxt", graph), file("config.pbtxt", config))?;
    input.source.import(&mut NoObserver)
}

/// The feeds of the largest batch, of which `rows` count; all others would change the results.
fn arguments(high: usize, rows: usize) -> [Literal; 3] {
    let x: Vec<f32> = (0..high * 6)
        .map(|k| if k / 6 < rows { ((k * 37) % 11) as f32 / 4.0 - 1.0 } else { f32::NAN })
        .collect();
    let i: Vec<i32> = (0..high).map(|k| if k < rows { (k * 3 % 4) as i32 } else { i32::MIN }).collect();
    let high = high as i64;
    [
        Literal::from_elements(&[high, 6], &x),
        Literal::from_elements(&[high], &i),
        Literal::scalar(rows as i32),
    ]
}

/// Returns the elements of a row of each result.
fn by_rows(program: &Program, arguments: &[Literal], rows: usize) -> Vec<[Vec<f32>; 2]> {
    let one = &program.sized[0];
    assert_eq!(one.size, 1);
    let (x, i) =
        (arguments[0].to_vec::<f32>().expect("floats"), arguments[1].to_vec::<i32>().expect("integers"));
    let of_row = |row: usize| {
        let x = Literal::from_elements(&[1, 6], &x[6 * row..][..6]);
        let i = Literal::from_elements(&[1], &i[row..=row]);
        let Literal::Tuple(results) = evaluator::evaluate(&one.module, &[x, i]).expect("it runs") else {
            panic!("expected a tuple of results");
        };
        [0, 1].map(|k| results[k].to_vec::<f32>().expect("floats"))
    };
    (0..rows).map(of_row).collect()
}

#[test]
fn a_batch_of_any_size_is_computed_in_pieces() {
    let (low, high) = (1, 16);
    let program = import(&graph(""), &config(&["y", "g", "classes"], low, high as i64)).expect("imports");
    let sizes: Vec<i64> = program.sized.iter().map(|sized| sized.size).collect();
    assert_eq!(sizes, [1, 3, 8, 16]);
    let options = in_process_options(host("native").expect("this machine"));
    let compiled = compile_program(program.clone(), &options, &mut NoObserver).expect("compiles");
    let executable = Executable::load(&compiled).expect("loads");
    for rows in 1..=high {
        let arguments = arguments(high, rows);
        let expected = by_rows(&program, &arguments, rows);
        let mut session = executable.session(&arguments).expect("arguments fit");
        for threads in [1, 2] {
            session.set_threads(threads).expect("threads");
            session.run().expect("it runs");
            let results = session.results().expect("results");
            let whole = session.whole_results().expect("results");
            for k in [0, 1] {
                let width = expected[0][k].len();
                assert_eq!(results[k].array_shape().sizes(), [rows as i64, width as i64]);
                let found = whole[k].to_vec::<f32>().expect("floats");
                for (row, expected) in expected.iter().enumerate() {
                    for (found, expected) in found[row * width..].iter().zip(&expected[k]) {
                        assert!(
                            (found - expected).abs() <= 1e-6,
                            "row {row} of {rows}: {found} for {expected}"
                        );
                    }
                }
                // Nothing is written beyond the batch.
                assert!(found[rows * width..].iter().all(|&element| element == 0.0), "{rows} rows");
            }
            assert_eq!(results[2].to_vec::<i32>(), Some(vec![4]));
        }
    }
}

#[test]
fn sizes_out_of_range_fail_and_write_nothing() {
    let program = import(&graph(""), &config(&["y", "g"], 2, 16)).expect("imports");
    let options = in_process_options(host("").expect("this machine"));
    let whole = Program { sized: Vec::new(), ..program.clone() };
    for program in [program, whole] {
        let compiled = compile_program(program, &options, &mut NoObserver).expect("compiles");
        let executable = Executable::load(&compiled).expect("loads");
        for size in [1, 0, -1, 17, i32::MIN, i32::MAX] {
            let [x, i, _] = arguments(16, 16);
            let mut session = executable.session(&[x, i, Literal::scalar(size)]).expect("arguments fit");
            let error = session.run().expect_err("the size is out of range");
            assert!(error.message().contains("batch is out of range: 2..16"), "{error}");
            let results = session.whole_results().expect("results");
            assert!(results[0].to_vec::<f32>().expect("floats").iter().all(|&element| element == 0.0));
        }
    }
}

#[test]
fn a_batch_whose_rows_mix_has_one_module() {
    let mean = "node { name: \"mean\" op: \"Mean\" input: \"product\" input: \"axis\" \
                attr { key: \"T\" value { type: DT_FLOAT } } attr { key: \"Tidx\" value { type: DT_INT32 } } }\n";
    let program = import(&graph(mean), &config(&["mean", "g"], 1, 16)).expect("imports");
    assert!(program.sized.is_empty());
    let options = in_process_options(host("").expect("this machine"));
    let compiled = compile_module(program.module, &options, &mut NoObserver).expect("compiles");
    let rows = 5;
    let arguments = arguments(16, rows);
    let results = Executable::load(&compiled).and_then(|code| code.run(&arguments)).expect("it runs");
    let (x, w) = (arguments[0].to_vec::<f32>().expect("floats"), |k: usize, c: usize| {
        ((4 * k + c) * 7 % 5) as f32 - 1.5
    });
    for (class, found) in results[0].to_vec::<f32>().expect("floats").into_iter().enumerate() {
        let sums = (0..rows).map(|row| (0..6).map(|k| x[6 * row + k] * w(k, class)).sum::<f32>());
        let expected = sums.sum::<f32>() / rows as f32;
        assert!((found - expected).abs() < 1e-5, "class {class}: {found} for {expected}");
    }
}

#[test]
fn a_batch_whose_size_is_a_number_has_one_module() {
    let scaled = "node { name: \"shape\" op: \"Shape\" input: \"product\" attr { key: \"T\" value { type: DT_FLOAT } } }\n\
        node { name: \"size\" op: \"GatherV2\" input: \"shape\" input: \"axis\" input: \"axis\" \
        attr { key: \"Tparams\" value { type: DT_INT32 } } attr { key: \"Tindices\" value { type: DT_INT32 } } \
        attr { key: \"Taxis\" value { type: DT_INT32 } } }\n\
        node { name: \"number\" op: \"Cast\" input: \"size\" attr { key: \"SrcT\" value { type: DT_INT32 } } \
        attr { key: \"DstT\" value { type: DT_FLOAT } } }\n\
        node { name: \"scaled\" op: \"Mul\" input: \"product\" input: \"number\" attr { key: \"T\" value { type: DT_FLOAT } } }\n";
    let program = import(&graph(scaled), &config(&["scaled", "product"], 1, 16)).expect("imports");
    assert!(program.sized.is_empty());
    let options = in_process_options(host("").expect("this machine"));
    let compiled = compile_program(program, &options, &mut NoObserver).expect("compiles");
    let executable = Executable::load(&compiled).expect("loads");
    for rows in [1, 5, 8, 16] {
        let results = executable.run(&arguments(16, rows)).expect("it runs");
        let [scaled, product] = [0, 1].map(|k| results[k].to_vec::<f32>().expect("floats"));
        assert_eq!(product.len(), 4 * rows);
        assert!(product.iter().any(|&element| element != 0.0));
        let expected = product.iter().map(|element| element * rows as f32);
        assert!(scaled.iter().copied().eq(expected), "{rows} rows: {scaled:?}");
    }
}
