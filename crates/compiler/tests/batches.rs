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

/// Imports a program with code for 3 rows, or without if rows are not computed in pieces.
fn import(graph: &str, config: &str) -> Result<Program> {
    match import_as_stated(graph, config) {
        Err(error) if error.message().contains("--sizes batch=3 has no effect") => {
            import_as_stated(graph, &config.replace(" size: 3 }", " }"))
        }
        imported => imported,
    }
}

fn import_as_stated(graph: &str, config: &str) -> Result<Program> {
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
    assert_eq!(sizes, [1, 2, 3, 4, 8, 16]);
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

/// Each row is independent of the others, but not of how many there are.
#[test]
fn rows_that_depend_on_their_number_are_not_computed_in_pieces() {
    let nodes = |number: &str| {
        format!(
            "node {{ name: \"shape\" op: \"Shape\" input: \"x\" attr {{ key: \"T\" value {{ type: DT_FLOAT }} }} }}\n\
             node {{ name: \"rows\" op: \"GatherV2\" input: \"shape\" input: \"axis\" input: \"axis\" \
             attr {{ key: \"Tparams\" value {{ type: DT_INT32 }} }} attr {{ key: \"Tindices\" value {{ type: DT_INT32 }} }} \
             attr {{ key: \"Taxis\" value {{ type: DT_INT32 }} }} }}\n\
             node {{ name: \"two\" op: \"Const\" attr {{ key: \"dtype\" value {{ type: DT_INT32 }} }} \
             attr {{ key: \"value\" value {{ tensor {{ dtype: DT_INT32 tensor_shape {{ }} int_val: 2 }} }} }} }}\n\
             node {{ name: \"odd\" op: \"FloorMod\" input: \"rows\" input: \"two\" attr {{ key: \"T\" value {{ type: DT_INT32 }} }} }}\n\
             node {{ name: \"number\" op: \"Cast\" input: \"{number}\" attr {{ key: \"SrcT\" value {{ type: DT_INT32 }} }} \
             attr {{ key: \"DstT\" value {{ type: DT_FLOAT }} }} }}\n\
             node {{ name: \"scaled\" op: \"Mul\" input: \"x\" input: \"number\" attr {{ key: \"T\" value {{ type: DT_FLOAT }} }} }}\n"
        )
    };
    let options = in_process_options(host("").expect("this machine"));
    for number in ["rows", "odd"] {
        let program = import(&graph(&nodes(number)), &config(&["scaled", "g"], 1, 64)).expect("imports");
        let compiled = compile_program(program, &options, &mut NoObserver).expect("compiles");
        let executable = Executable::load(&compiled).expect("loads");
        for rows in [1usize, 2, 5, 13, 64] {
            let arguments = arguments(64, rows);
            let factor = if number == "rows" { rows as f32 } else { (rows % 2) as f32 };
            let results = executable.run(&arguments).expect("it runs");
            let x = arguments[0].to_vec::<f32>().expect("floats");
            let expected: Vec<f32> = x[..6 * rows].iter().map(|x| x * factor).collect();
            assert_eq!(results[0].to_vec::<f32>(), Some(expected), "{rows} rows times {number}");
        }
    }
}

/// Compiles a graph for batches of 1 to 16 rows, and returns the results of some of them.
fn run_all(extra: &str, fetches: &[&str]) -> (Program, Vec<(usize, Vec<Literal>)>) {
    let program = import(&graph(extra), &config(fetches, 1, 16)).expect("imports");
    let options = in_process_options(host("").expect("this machine"));
    let compiled = compile_program(program.clone(), &options, &mut NoObserver).expect("compiles");
    let executable = Executable::load(&compiled).expect("loads");
    let run = |rows| (rows, executable.run(&arguments(16, rows)).expect("it runs"));
    (program, [1, 2, 7, 8, 13, 16].map(run).into())
}

/// The rows of `x` that count.
fn rows_of_x(rows: usize) -> Vec<Vec<f32>> {
    let x = arguments(16, rows)[0].to_vec::<f32>().expect("floats");
    x.chunks(6).take(rows).map(<[f32]>::to_vec).collect()
}

#[test]
fn the_number_of_rows_is_that_of_the_batch_and_not_of_a_piece() {
    let number = "node { name: \"shape\" op: \"Shape\" input: \"x\" attr { key: \"T\" value { type: DT_FLOAT } } }\n\
        node { name: \"sizes\" op: \"Cast\" input: \"shape\" attr { key: \"SrcT\" value { type: DT_INT32 } } \
          attr { key: \"DstT\" value { type: DT_FLOAT } } }\n\
        node { name: \"rows\" op: \"GatherV2\" input: \"sizes\" input: \"axis\" input: \"axis\" \
          attr { key: \"Tparams\" value { type: DT_FLOAT } } attr { key: \"Tindices\" value { type: DT_INT32 } } \
          attr { key: \"Taxis\" value { type: DT_INT32 } } }\n\
        node { name: \"z\" op: \"Mul\" input: \"x\" input: \"rows\" attr { key: \"T\" value { type: DT_FLOAT } } }\n";
    for fetches in [&["z"][..], &["shape"]] {
        let (program, runs) = run_all(number, fetches);
        assert!(program.sized.is_empty());
        for (rows, results) in runs {
            if fetches == ["shape"] {
                assert_eq!(results[0].to_vec::<i32>(), Some(vec![rows as i32, 6]));
                continue;
            }
            let expected: Vec<f32> = rows_of_x(rows).concat().iter().map(|x| x * rows as f32).collect();
            assert_eq!(results[0].to_vec::<f32>(), Some(expected), "{rows} rows");
        }
    }
    // The other sizes of a shape are the same for all batches.
    let width = number.replace("input: \"axis\" input: \"axis\"", "input: \"one\" input: \"axis\"");
    let one = "node { name: \"one\" op: \"Const\" attr { key: \"dtype\" value { type: DT_INT32 } } attr { key: \
        \"value\" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }\n";
    let (program, runs) = run_all(&(one.to_owned() + &width), &["z"]);
    assert!(!program.sized.is_empty());
    for (rows, results) in runs {
        let expected: Vec<f32> = rows_of_x(rows).concat().iter().map(|x| x * 6.0).collect();
        assert_eq!(results[0].to_vec::<f32>(), Some(expected), "{rows} rows");
    }
}

#[test]
fn the_first_rows_of_a_large_batch_are_not_those_of_each_piece() {
    // No size with code has more than eight rows.
    let program = |limit: i64| {
        let ends = |name: &str, ends: [i64; 2]| {
            format!(
                "node {{ name: \"{name}\" op: \"Const\" attr {{ key: \"dtype\" value {{ type: DT_INT32 }} }} attr {{ key: \
                 \"value\" value {{ tensor {{ dtype: DT_INT32 tensor_shape {{ dim {{ size: 2 }} }} int_val: {} int_val: {} }} }} }} }}\n",
                ends[0], ends[1]
            )
        };
        let slice = "node { name: \"z\" op: \"StridedSlice\" input: \"x\" input: \"begin\" input: \"end\" input: \"steps\" \
            attr { key: \"T\" value { type: DT_FLOAT } } attr { key: \"Index\" value { type: DT_INT32 } } }\n";
        let extra = ends("begin", [0, 0]) + &ends("end", [limit, 6]) + &ends("steps", [1, 1]) + slice;
        import(&graph(&extra), &config(&["z", "g"], 1, 11)).expect("imports")
    };
    assert!(!program(11).sized.is_empty());
    let program = program(10);
    assert!(program.sized.is_empty());
    let options = in_process_options(host("").expect("this machine"));
    let compiled = compile_program(program, &options, &mut NoObserver).expect("compiles");
    let executable = Executable::load(&compiled).expect("loads");
    for rows in [9usize, 10, 11] {
        let arguments = arguments(11, rows);
        let results = executable.run(&arguments).expect("it runs");
        let x = arguments[0].to_vec::<f32>().expect("floats");
        assert_eq!(results[0].to_vec::<f32>().as_deref(), Some(&x[..6 * rows.min(10)]), "{rows} rows");
    }
}

#[test]
fn sizes_that_only_fixed_batches_know_are_those_of_the_pieces() {
    let constant = |name: &str, values: &[i64]| {
        let numbers: Vec<String> = values.iter().map(|value| format!("int_val: {value}")).collect();
        format!(
            "node {{ name: \"{name}\" op: \"Const\" attr {{ key: \"dtype\" value {{ type: DT_INT32 }} }} attr {{ key: \
             \"value\" value {{ tensor {{ dtype: DT_INT32 tensor_shape {{ dim {{ size: {} }} }} {} }} }} }} }}\n",
            values.len(),
            numbers.join(" ")
        )
    };
    let float = "attr { key: \"T\" value { type: DT_FLOAT } }";
    let reshapes = constant("pairs", &[-1, 2])
        + &constant("rest", &[-1])
        + &constant("three", &[3])
        + &constant("first", &[0])
        + &format!(
            "node {{ name: \"halves\" op: \"Reshape\" input: \"x\" input: \"pairs\" {float} }}\n\
             node {{ name: \"bent\" op: \"Neg\" input: \"halves\" {float} }}\n\
             node {{ name: \"shape\" op: \"Shape\" input: \"x\" {float} }}\n\
             node {{ name: \"rows\" op: \"GatherV2\" input: \"shape\" input: \"first\" input: \"axis\" \
             attr {{ key: \"Tparams\" value {{ type: DT_INT32 }} }} attr {{ key: \"Tindices\" value {{ type: DT_INT32 }} }} \
             attr {{ key: \"Taxis\" value {{ type: DT_INT32 }} }} }}\n\
             node {{ name: \"sizes\" op: \"ConcatV2\" input: \"rows\" input: \"three\" input: \"rest\" input: \"axis\" \
             attr {{ key: \"N\" value {{ i: 3 }} }} attr {{ key: \"T\" value {{ type: DT_INT32 }} }} }}\n\
             node {{ name: \"z\" op: \"Reshape\" input: \"bent\" input: \"sizes\" {float} }}\n"
        );
    let (program, runs) = run_all(&reshapes, &["z"]);
    assert!(!program.sized.is_empty());
    for (rows, results) in runs {
        let expected: Vec<f32> = rows_of_x(rows).concat().iter().map(|x| -x).collect();
        assert_eq!(results[0].array_shape().sizes(), [rows as i64, 3, 2]);
        assert_eq!(results[0].to_vec::<f32>(), Some(expected), "{rows} rows");
    }
}

#[test]
fn indices_beyond_the_true_size_are_those_of_the_last_row() {
    let picked = "node { name: \"picked\" op: \"GatherV2\" input: \"x\" input: \"i\" input: \"axis\" \
        attr { key: \"Tparams\" value { type: DT_FLOAT } } attr { key: \"Tindices\" value { type: DT_INT32 } } \
        attr { key: \"Taxis\" value { type: DT_INT32 } } }\n";
    let (_, runs) = run_all(picked, &["picked"]);
    for (rows, results) in runs {
        let x = rows_of_x(rows);
        let expected: Vec<f32> = (0..rows).flat_map(|k| x[(k * 3 % 4).min(rows - 1)].clone()).collect();
        assert_eq!(results[0].to_vec::<f32>(), Some(expected), "{rows} rows");
    }
}

#[test]
fn segments_of_columns_have_as_many_as_the_data() {
    let sums = "node { name: \"order\" op: \"Const\" attr { key: \"dtype\" value { type: DT_INT32 } } attr { key: \
          \"value\" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 1 int_val: 0 } } } }\n\
        node { name: \"ids\" op: \"Const\" attr { key: \"dtype\" value { type: DT_INT32 } } attr { key: \
          \"value\" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 6 } } \
          int_val: 0 int_val: 1 int_val: 0 int_val: 1 int_val: 0 int_val: 1 } } } }\n\
        node { name: \"columns\" op: \"Transpose\" input: \"x\" input: \"order\" \
          attr { key: \"T\" value { type: DT_FLOAT } } }\n\
        node { name: \"sums\" op: \"UnsortedSegmentSum\" input: \"columns\" input: \"ids\" input: \"classes\" \
          attr { key: \"T\" value { type: DT_FLOAT } } attr { key: \"Tindices\" value { type: DT_INT32 } } }\n";
    let (_, runs) = run_all(sums, &["sums"]);
    for (rows, results) in runs {
        assert_eq!(results[0].array_shape().sizes(), [4, rows as i64]);
        let x = rows_of_x(rows);
        let of = |first: usize| x.iter().map(move |row| row[first] + row[first + 2] + row[first + 4]);
        let expected: Vec<f32> = of(0).chain(of(1)).chain(vec![0.0; 2 * rows]).collect();
        assert_eq!(results[0].to_vec::<f32>(), Some(expected), "{rows} rows");
    }
}

/// Runs a graph of one node on one feed, whose open sizes are `batch`.
fn run_node(
    node: &str,
    sizes: [&[i64]; 2],
    range: (i64, i64),
    x: &Literal,
    rows: i32,
    output: usize,
) -> Literal {
    let dims: Vec<String> = sizes[0]
        .iter()
        .map(|&size| format!("dim {{ size: {size} {} }}", if size < 0 { "name: \"batch\"" } else { "" }))
        .collect();
    let config = format!(
        "feed {{ id {{ node_name: \"x\" }} shape {{ {} }} }} fetch {{ id {{ node_name: \"y\" output_index: {output} }} }} \
         dimension {{ name: \"batch\" min: {} max: {} }}",
        dims.join(" "),
        range.0,
        range.1
    );
    let graph = graph("").replace("name: \"y\"", "name: \"softmax\"") + node;
    let program = import(&graph, &config).expect("imports");
    // The code for the largest size, with masks.
    let options = in_process_options(host("").expect("this machine"));
    let compiled = compile_module(program.module, &options, &mut NoObserver).expect("compiles");
    let whole = x.in_corner_of(sizes[1]).expect("it fits");
    let executable = Executable::load(&compiled).expect("loads");
    executable.run(&[whole, Literal::scalar(rows)]).expect("it runs").remove(0)
}

#[test]
fn a_batch_of_at_most_one_matrix_is_not_a_shared_matrix() {
    let product = "node { name: \"y\" op: \"BatchMatMulV2\" input: \"x\" input: \"x\" \
        attr { key: \"T\" value { type: DT_FLOAT } } attr { key: \"adj_y\" value { b: true } } }\n";
    let run = |rows: i64, elements: &[f32]| {
        let x = Literal::from_elements(&[rows, 1, 2, 2], elements);
        run_node(product, [&[-1, 1, 2, 2], &[1, 1, 2, 2]], (0, 1), &x, rows as i32, 0)
    };
    assert_eq!(run(0, &[]).array_shape().sizes(), [0, 1, 2, 2]);
    let one = Literal::from_elements(&[1, 1, 2, 2], &[5f32, 11.0, 11.0, 25.0]);
    assert_eq!(run(1, &[1.0, 2.0, 3.0, 4.0]), one);
}

#[test]
fn the_largest_elements_are_true_ones_even_if_they_are_not_numbers() {
    let top = "node { name: \"y\" op: \"TopKV2\" input: \"x\" input: \"k\" \
        attr { key: \"T\" value { type: DT_FLOAT } } }\n\
        node { name: \"k\" op: \"Const\" attr { key: \"dtype\" value { type: DT_INT32 } } attr { key: \
          \"value\" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }\n";
    let nan = f32::from_bits(0xffc0_0000);
    let cases = [
        (vec![nan], 0),
        (vec![f32::NEG_INFINITY], 0),
        (vec![nan, f32::NEG_INFINITY], 1),
        (vec![nan, nan], 0),
    ];
    for (elements, expected) in cases {
        let count = elements.len();
        let x = Literal::from_elements(&[1, count as i64], &elements);
        let found = run_node(top, [&[1, -1], &[1, 5]], (1, 5), &x, count as i32, 1);
        assert_eq!(found.to_vec::<i32>(), Some(vec![expected]), "{elements:?}");
    }
}

#[test]
fn labels_beyond_the_true_number_of_classes_have_no_loss() {
    let loss = "node { name: \"y\" op: \"SparseSoftmaxCrossEntropyWithLogits\" input: \"x\" input: \"labels\" \
        attr { key: \"T\" value { type: DT_FLOAT } } attr { key: \"Tlabels\" value { type: DT_INT32 } } }\n\
        node { name: \"labels\" op: \"Const\" attr { key: \"dtype\" value { type: DT_INT32 } } attr { key: \
          \"value\" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 3 } } \
          int_val: 0 int_val: 1 int_val: 2 } } } }\n";
    for classes in [1i64, 2, 3, 5] {
        let x = Literal::from_elements(&[3, classes], &vec![0.5f32; 3 * classes as usize]);
        let losses = run_node(loss, [&[3, -1], &[3, 5]], (1, 5), &x, classes as i32, 0);
        for (label, loss) in losses.to_vec::<f32>().expect("floats").into_iter().enumerate() {
            if label as i64 >= classes {
                assert!(loss.is_nan(), "{label} of {classes}: {loss}");
            } else {
                assert!((loss - (classes as f32).ln()).abs() < 1e-6, "{label} of {classes}: {loss}");
            }
        }
    }
}

#[test]
fn an_array_without_elements_keeps_the_size_of_the_batch() {
    let pack = "node { name: \"y\" op: \"Pack\" input: \"x\" input: \"x\" \
        attr { key: \"N\" value { i: 2 } } attr { key: \"T\" value { type: DT_FLOAT } } attr { key: \"axis\" value { i: 1 } } }\n";
    let x = Literal::from_elements::<f32>(&[3, 0], &[]);
    let packed = run_node(pack, [&[-1, 0], &[8, 0]], (1, 8), &x, 3, 0);
    assert_eq!(packed.array_shape().sizes(), [3, 2, 0]);
}

#[test]
fn a_new_dimension_is_not_the_one_that_may_be_empty() {
    let pack = "node { name: \"y\" op: \"Pack\" input: \"x\" attr { key: \"T\" value { type: DT_FLOAT } } \
        attr { key: \"N\" value { i: 1 } } attr { key: \"axis\" value { i: 0 } } }\n";
    for rows in [0, 1] {
        let x = Literal::from_elements(&[i64::from(rows), 3], &[1.0f32, 2.0, 3.0][..3 * rows as usize]);
        let found = run_node(pack, [&[-1, 3], &[1, 3]], (0, 1), &x, rows, 0);
        assert_eq!(found.array_shape().sizes(), [1, i64::from(rows), 3]);
    }
}

#[test]
fn a_single_row_is_repeated_to_a_known_number() {
    let broadcast = "node { name: \"y\" op: \"BroadcastTo\" input: \"x\" input: \"four\" \
        attr { key: \"T\" value { type: DT_FLOAT } } attr { key: \"Tidx\" value { type: DT_INT32 } } }\n\
        node { name: \"four\" op: \"Const\" attr { key: \"dtype\" value { type: DT_INT32 } } attr { key: \
          \"value\" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 4 int_val: 2 } } } }\n";
    let run = |rows: i64, elements: &[f32]| {
        let x = Literal::from_elements(&[rows, 2], elements);
        run_node(broadcast, [&[-1, 2], &[4, 2]], (1, 4), &x, rows as i32, 0)
    };
    assert_eq!(run(1, &[5.0, 6.0]), Literal::from_elements(&[4, 2], &[5f32, 6.0].repeat(4)));
    let rows = [1f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    assert_eq!(run(4, &rows), Literal::from_elements(&[4, 2], &rows));
}

/// The ranges of all numbers of an input and of a state decide how they are quantized. The elements
/// beyond the size would be 1, and their states, by the bias, larger than all others.
#[test]
fn ranges_of_a_quantized_layer_are_those_of_the_true_batch() {
    let constant = |name: &str, data_type: &str, sizes: &[i64], values: &str| {
        let dims: Vec<String> = sizes.iter().map(|size| format!("dim {{ size: {size} }}")).collect();
        format!(
            "node {{ name: \"{name}\" op: \"Const\" attr {{ key: \"dtype\" value {{ type: {data_type} }} }} attr {{ key: \
             \"value\" value {{ tensor {{ dtype: {data_type} tensor_shape {{ {} }} {values} }} }} }} }}\n",
            dims.join(" ")
        )
    };
    let bytes = |values: &[i32]| values.iter().map(|value| format!("int_val: {value} ")).collect::<String>();
    let biases = "float_val: 1.5 float_val: 1 float_val: 0.5 float_val: 1 ".repeat(2);
    let mut nodes =
        constant("weights", "DT_INT8", &[1, 2, 4], &bytes(&[-90, -60, 7, -80, -55, -70, 9, -100]));
    nodes += &constant("recurrent", "DT_INT8", &[1, 1, 4], &bytes(&[40, -35, 25, 70]));
    nodes += &constant("bias", "DT_FLOAT", &[1, 8], &biases);
    nodes += &constant("scale", "DT_FLOAT", &[1], "float_val: 0.031");
    nodes += &constant("none", "DT_INT8", &[1], "int_val: 0");
    nodes += "node { name: \"input\" op: \"Exp\" input: \"x\" attr { key: \"T\" value { type: DT_FLOAT } } }\n\
        node { name: \"y\" op: \"OnnxMsDynamicQuantizeLSTM\" input: \"input\" input: \"weights\" input: \"recurrent\" \
        input: \"bias\" input: \"scale\" input: \"none\" attr { key: \"Tin\" value { list { type: DT_FLOAT type: DT_INT8 \
        type: DT_INT8 type: DT_FLOAT type: DT_FLOAT type: DT_INT8 } } } attr { key: \"Tout\" value { list { type: DT_FLOAT } } } \
        attr { key: \"operands\" value { list { i: 0 i: 1 i: 2 i: 3 i: -1 i: -1 i: -1 i: -1 i: 4 i: 5 i: 4 i: 5 } } } \
        attr { key: \"hidden_size\" value { i: 1 } } }\n";
    let x: Vec<f32> = (0..12).map(|k| -1.2 - (k * 5 % 7) as f32 / 10.0).collect();
    let x = Literal::from_elements(&[3, 2, 2], &x);
    let run = |most: i64| run_node(&nodes, [&[3, -1, 2], &[3, most, 2]], (1, most), &x, 2, 0);
    let of_true_size = run(2);
    assert_eq!(of_true_size.array_shape().sizes(), [3, 1, 2, 1]);
    assert_eq!(run(6), of_true_size);
}
