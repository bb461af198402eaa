//! Reports, differences, budgets, and pages of figures that are written by hand.

use report::{Budget, Change, Diff, Layer, Moment, Report, ResultError, Source, Time, github, html, junit};

fn layer(node: &str, seconds: f64) -> Layer {
    Layer {
        name: "fusion".to_owned(),
        node: node.to_owned(),
        nodes: vec![node.to_owned()],
        precision: "f32".to_owned(),
        strategy: "flat loop".to_owned(),
        seconds: Some(seconds),
        code_bytes: Some(100),
        runs: Some(1),
        ..Layer::default()
    }
}

fn sample() -> Report {
    let mut report = Report::new("model.pb", "model");
    report.time = Some(Time { source: Source::Measured, seconds: 3e-3, p90: None, runs: 9, threads: 1 });
    report.sizes.code = 1000;
    report.sizes.constants = 2000;
    report.sizes.arena = 4096;
    report.sizes.feeds = 64;
    report.layers = vec![layer("a/x", 1e-3), layer("a/y", 2e-3)];
    report.moments = vec![Moment { layer: Some(1), name: "fusion".to_owned(), bytes: 64 }];
    report.results = vec![ResultError { name: "y".to_owned(), largest: 0.5, relative: 1e-4, magnitude: 2.0 }];
    report
}

#[test]
fn a_report_is_read_as_it_was_written() {
    let report = sample();
    let text = report.to_json().expect("JSON");
    assert_eq!(Report::parse(text.as_bytes()).expect("a report"), report);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["schema"], "tfcompile-report");
    assert_eq!(json["version"], 1);
    assert_eq!(json["time"]["source"], "measured");
    assert_eq!(json["layers"][0]["node"], "a/x");
    assert_eq!(json["sizes"]["arena"], 4096);
}

#[test]
fn damaged_reports_are_refused() {
    let mut outside = sample();
    outside.moments[0].layer = Some(2);
    let outside = outside.to_json().expect("JSON");
    let text = sample().to_json().expect("JSON");
    for (damaged, message) in [
        ("{}", "expected \"schema\""),
        ("[", "not a report"),
        (&text.replace("\"version\": 1", "\"version\": 2"), "expected version 1"),
        (&text.replace("\"runs\": 9", "\"runs\": \"nine\""), "damaged report"),
        (&outside, "the number of a layer is too large"),
    ] {
        let error = Report::parse(damaged.as_bytes()).expect_err("refused");
        assert!(error.message().contains(message), "{error:?}");
    }
}

#[test]
fn a_difference_names_what_changed() {
    let old = sample();
    let mut new = sample();
    new.layers = vec![layer("a/y", 2.3e6), layer("b", 1.0)];
    new.layers[0].strategy = "tiled dot".to_owned();
    new.layers[0].weight_bytes = 7;
    new.sizes.arena = 8192;
    let diff = Diff::new(&old, &new);
    let names: Vec<(&str, &[Change])> =
        diff.layers.iter().map(|layer| (layer.name.as_str(), &layer.changes[..])).collect();
    assert_eq!(
        names,
        [
            ("a/y", &[Change::Slower, Change::Larger, Change::Strategy][..]),
            ("b", &[Change::Added]),
            ("a/x", &[Change::Removed]),
        ]
    );
    let arena = diff.figures.iter().find(|figure| figure.name == "arena").expect("a figure");
    assert_eq!((arena.old, arena.new), (Some(4096.0), Some(8192.0)));
}

/// A report whose layers are lists of nodes, the main one first.
fn fused(layers: &[&[&str]]) -> Report {
    let mut report = Report::new("model.pb", "model");
    let nodes = |nodes: &[&str]| nodes.iter().map(|&node| node.to_owned()).collect();
    report.layers = layers.iter().map(|all| Layer { nodes: nodes(all), ..layer(all[0], 1e-3) }).collect();
    report
}

/// The layers of a difference: name, old name, and changes in words.
fn words(old: &Report, new: &Report) -> Vec<(String, Option<String>, String)> {
    let diff = Diff::new(old, new);
    diff.layers.iter().map(|layer| (layer.name.clone(), layer.old_name.clone(), layer.words())).collect()
}

#[test]
fn layers_that_are_fused_differently_correspond() {
    let expect = |old: &[&[&str]], new: &[&[&str]], expected: &[(&str, Option<&str>, &str)]| {
        let found = words(&fused(old), &fused(new));
        let found: Vec<(&str, Option<&str>, &str)> =
            found.iter().map(|(name, was, words)| (name.as_str(), was.as_deref(), words.as_str())).collect();
        assert_eq!(found, expected, "{old:?} and {new:?}");
    };
    // The main node stays.
    expect(
        &[&["conv", "bias"], &["relu"]],
        &[&["conv", "bias", "relu"]],
        &[("conv", None, "fused with relu"), ("relu", None, "removed: now part of conv")],
    );
    expect(
        &[&["conv", "bias", "relu"]],
        &[&["conv"], &["relu", "bias"]],
        &[("conv", None, "split from bias, relu"), ("relu", None, "added: was part of conv")],
    );
    // Another node of the layer becomes the main one, and one moves to another layer.
    expect(
        &[&["sum", "scale", "shift"], &["max", "exp"]],
        &[&["exp", "sum", "scale"], &["max", "shift"]],
        &[
            ("exp", Some("sum"), "fused with exp, split from shift"),
            ("max", None, "fused with shift, split from exp"),
        ],
    );
    // The pair with more nodes in common wins.
    expect(
        &[&["a", "p"], &["b", "q", "r"]],
        &[&["c", "a", "b", "q"]],
        &[("c", Some("b"), "fused with c, a"), ("a", None, "removed: now part of c")],
    );
    // Only the first nodes are listed. Nodes of another program are in no other layer.
    expect(
        &[&["a", "gone"]],
        &[&["a", "b", "c", "d", "e", "f"]],
        &[("a", None, "fused with b, c, d and 2 more")],
    );
    // A node in common is not enough: a rename of the main node is no fusion.
    expect(
        &[&["product", "bias", "relu"]],
        &[&["scores", "bias", "relu"]],
        &[("scores", None, "added"), ("product", None, "removed")],
    );
}

#[test]
fn the_text_begins_with_what_became_worse() {
    let (mut old, mut new) = (fused(&[&["a"], &["b"], &["c"]]), fused(&[&["a"], &["b"], &["c"]]));
    new.layers[0].seconds = Some(0.5e-3);
    new.layers[1].strategy = "tiled dot".to_owned();
    new.layers[2].seconds = Some(2e-3);
    (new.sizes.code, new.sizes.arena) = (300, 1500);
    let time = Time { source: Source::Measured, seconds: 1e-3, p90: None, runs: 9, threads: 1 };
    (old.time, new.time) = (Some(time), Some(time));
    (old.sizes.code, old.sizes.arena) = (200, 100);
    let text = Diff::new(&old, &new).to_text(&terminal::Screen::PLAIN);
    assert!(text.contains("3 of 3 layers changed: 1 slower, 1 strategy, 1 faster\n"), "{text}");
    let at = |line: &str| text.find(line).expect(line);
    assert!(
        at("  c      slower") < at("  b      strategy") && at("  b      strategy") < at("  a      faster"),
        "{text}"
    );
    // A figure that is many times the old one is stated so.
    assert!(text.contains("+50.0%") && text.contains("15 times"), "{text}");
}

#[test]
fn a_layer_corresponds_to_one_of_its_kind() {
    let of = |layers: &[(&str, &[&str])]| {
        let mut report = fused(&layers.iter().map(|(_, nodes)| *nodes).collect::<Vec<_>>());
        report.layers.iter_mut().zip(layers).for_each(|(layer, (kind, _))| layer.kind = (*kind).to_owned());
        report
    };
    let pairs = |old: &[(&str, &[&str])], new: &[(&str, &[&str])]| {
        let diff = Diff::new(&of(old), &of(new));
        let both = diff.layers.iter().filter_map(|layer| Some((layer.old?, layer.new?)));
        both.collect::<Vec<_>>()
    };
    // Padding has the node of the convolution that reads it.
    let padded: &[(&str, &[&str])] = &[("broadcast", &["conv"]), ("convolution", &["conv"])];
    assert_eq!(pairs(&[("convolution", &["conv"])], padded), [(0, 1)]);
    assert_eq!(pairs(&[("convolution", &["sum", "conv"])], padded), [(0, 1)]);
    // Of other kinds, the first.
    assert_eq!(pairs(&[("dot", &["conv"])], padded), [(0, 0)]);
    // A converter adds a number to a name that is also that of a constant.
    let numbered: &[(&str, &[&str])] = &[("broadcast", &["norm_2"]), ("convolution", &["norm_1"])];
    assert_eq!(pairs(&[("convolution", &["conv", "norm"])], numbered), [(0, 1)]);
    let renamed = words(&fused(&[&["conv", "norm"]]), &fused(&[&["norm_1", "relu"]]));
    assert_eq!(renamed, [("norm_1".to_owned(), Some("conv".to_owned()), "fused with relu".to_owned())]);
    assert_eq!(pairs(&[("convolution", &["conv", "norm_x"])], numbered), []);
    assert_eq!(pairs(&[("dot", &["conv", "norm"])], numbered), []);
}

#[test]
fn reports_without_fused_nodes_are_compared_by_main_nodes() {
    let new = fused(&[&["a", "b"], &["c", "d"]]);
    let text = fused(&[&["a"], &["b"]]).to_json().expect("JSON");
    let mut value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for layer in value["layers"].as_array_mut().expect("layers") {
        let layer = layer.as_object_mut().expect("a layer");
        for newer in ["nodes", "costs"] {
            layer.remove(newer).expect("a newer field");
        }
    }
    let old = Report::parse(value.to_string().as_bytes()).expect("an older report");
    let found = words(&old, &new);
    let found: Vec<(&str, &str)> =
        found.iter().map(|(name, _, words)| (name.as_str(), words.as_str())).collect();
    assert_eq!(found, [("a", ""), ("c", "added"), ("b", "removed")]);
    let notes = Diff::new(&old, &new).notes;
    assert!(notes.len() == 1 && notes[0].starts_with("fused nodes are not compared"), "{notes:?}");
}

#[test]
fn modeled_and_measured_times_are_not_compared() {
    let (old, mut new) = (sample(), sample());
    new.time = new.time.map(|time| Time { source: Source::Modeled, seconds: 9.0, ..time });
    new.layers[0].seconds = Some(1.0);
    let diff = Diff::new(&old, &new);
    assert!(diff.layers.iter().all(|layer| layer.changes.is_empty()));
    assert!(diff.figures.iter().all(|figure| figure.name != "latency"));
    assert_eq!(diff.notes.len(), 1);
}

#[test]
fn a_budget_names_its_broken_lines() {
    let text = "# CI\nlatency = \"2.5 ms\"\nsize = 3000\nram = \"4 KiB\" # bytes\n\n[error]\n\"y\" = 1e-3\n\"z\" = 1\n";
    let budget = Budget::parse(text, "budget.toml").expect("a budget");
    let findings = budget.check(&sample());
    let broken: Vec<(usize, &str)> =
        findings.iter().filter(|f| !f.passed).map(|f| (f.line, f.message.as_str())).collect();
    assert_eq!(
        broken,
        [
            (2, "latency is 3.00 ms, over the budget of 2.50 ms, 20.0% more"),
            (4, "ram is 4.2 kB, over the budget of 4.1 kB, 1.6% more"),
            (8, "error of 'z': no such result; the results are 'y'"),
        ]
    );
    let annotations = github("a,b:budget.toml", &findings);
    assert_eq!(
        annotations.lines().next(),
        Some(
            "::error file=a%2Cb%3Abudget.toml,line=2,title=budget latency::latency is 3.00 ms, over the budget of 2.50 ms, 20.0%25 more"
        )
    );
    assert_eq!(annotations.lines().count(), 3);
    let xml = junit("<&>.toml", &findings);
    assert!(xml.contains("<testsuite name=\"&lt;&amp;&gt;.toml\" tests=\"5\" failures=\"3\">"), "{xml}");
    assert_eq!(xml.matches("<failure ").count(), 3);
}

#[test]
fn modeled_times_break_a_latency_budget() {
    let mut report = sample();
    report.time = report.time.map(|time| Time { source: Source::Modeled, ..time });
    let budget = Budget::parse("latency = \"1 s\"", "b").expect("a budget");
    let findings = budget.check(&report);
    assert!(!findings[0].passed && findings[0].message.contains("no measured time"), "{findings:?}");
}

#[test]
fn wrong_budgets_are_refused_with_their_line() {
    for (text, message) in [
        ("", "without limits"),
        ("ram", "b:1: expected KEY = VALUE"),
        ("\nspeed = 1", "b:2: unknown key 'speed'"),
        ("ram = \"2 parsecs\"", "b:1: ram: expected a size"),
        ("ram = -1", "b:1: ram: expected a size"),
        ("latency = 5", "b:1: latency: expected a time"),
        ("ram = 1\nram = 2", "b:2: duplicate key 'ram'"),
        ("[other]\n", "b:1: unknown section [other]"),
        ("[error]\ny = \"small\"", "b:2: 'y': expected the largest relative error"),
    ] {
        let error = Budget::parse(text, "b").expect_err(text);
        assert!(error.message().contains(message), "{text}: {}", error.message());
    }
}

#[test]
fn hostile_names_close_no_element_and_nothing_is_fetched() {
    let hostile = "</script><script>alert(1)</script><!--{{style}}";
    let mut report = sample();
    report.name = hostile.to_owned();
    report.layers[0].node = hostile.to_owned();
    let page = html(&report, Some(&sample()));
    assert!(!page.contains("<script>alert"));
    assert_eq!(page.matches("</script>").count(), 2, "the data and the scripts");
    for word in ["http://", "https://", "src=", "@import", "fetch("] {
        assert!(!page.contains(word), "{word}");
    }
    let begin = page.find("id=\"data\">").expect("data") + "id=\"data\">".len();
    let json = &page[begin..begin + page[begin..].find("</script>").expect("an end")];
    let data: serde_json::Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(data["report"]["layers"][0]["node"], hostile);
}
