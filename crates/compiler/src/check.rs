//! What keeps a model from being compiled, all of it.

use crate::{BackOptions, HloProgram, LoopBounds, Observer, front, pipeline_for};
use aot::{Accessor, Signature};
use hlo::Program;
use std::collections::{BTreeMap, BTreeSet};
use support::{Code, Error, Result};
use tf::Problem;
use tf::proto::{Config, GraphDef};

/// The most problems that are listed; where there are so many, there may be more.
pub const MAX_PROBLEMS: usize = 1000;

/// What [`check`] finds.
#[derive(Debug, Default)]
pub struct Checked {
    /// What has to change before the model can be compiled; none: it can.
    pub problems: Vec<Problem>,
    /// What is odd, but can be compiled.
    pub warnings: Vec<String>,
    /// The ops of the nodes that are compiled, with how many nodes there are and whether the op has a rule.
    pub ops: BTreeMap<String, (usize, bool)>,
    /// What the C++ class calls arguments and results, once they are known.
    pub accessors: Vec<Accessor>,
}

/// Examines a model. `missing` is what could not be inferred of the config; then only the ops are judged.
pub fn check(
    graph: GraphDef,
    config: &Config,
    missing: &[String],
    loop_bounds: &LoopBounds,
    options: &BackOptions,
    observer: &mut dyn Observer,
) -> Result<Checked> {
    let mut checked = Checked::default();
    checked.problems.extend(
        missing.iter().map(|text| Problem::of_graph(Error::invalid(text.clone()).coded(Code::NotInferred))),
    );
    let examined = tf::examine(&graph, config);
    let supported: BTreeSet<&str> = import::supported_ops().iter().map(|op| op.name).collect();
    let library = graph.library.iter().flat_map(|l| &l.function);
    let functions: BTreeSet<&str> =
        library.filter_map(|f| f.signature.as_ref()).map(|signature| signature.name.as_str()).collect();
    let has_rule = |op: &str| supported.contains(op) || functions.contains(op) || tf::is_prepared(op);
    for (op, nodes) in &examined.ops {
        checked.ops.insert(op.clone(), (nodes.len(), has_rule(op)));
    }
    checked.warnings = examined.warnings;
    // Without a config, what is wrong with it follows from what is missing.
    if missing.is_empty() {
        checked.problems.extend(examined.problems);
    }
    if checked.problems.is_empty() {
        let mut program = tf::prepare(graph, config.clone())?;
        program.loop_bounds.clone_from(loop_bounds);
        checked.problems = import::problems(&program);
        if checked.problems.is_empty()
            && let Err(error) = front::import_program(program, observer)
                .and_then(|program| compile(program, options, observer, &mut checked))
        {
            checked.problems.push(Problem::of_graph(error));
        }
    } else {
        add_unsupported_nodes(&mut checked, &examined.ops);
    }
    Ok(checked)
}

/// Nodes whose op has no rule, for a graph that cannot be prepared, so that types cannot be judged.
fn add_unsupported_nodes(checked: &mut Checked, ops: &BTreeMap<String, Vec<String>>) {
    let named: BTreeSet<String> = checked.problems.iter().map(|problem| problem.node.clone()).collect();
    for (op, nodes) in ops.iter().filter(|(op, _)| !checked.ops[*op].1) {
        let room = MAX_PROBLEMS.saturating_sub(checked.problems.len());
        for node in nodes.iter().filter(|node| !named.contains(*node)).take(room) {
            let error = Error::unsupported(import::unsupported_op(op)).coded(Code::UnsupportedOp);
            checked.problems.push(Problem::of_node(node, op, error));
        }
    }
}

/// Examines a program of HLO; its opcodes stand for ops.
pub fn check_program(program: HloProgram, options: &BackOptions, observer: &mut dyn Observer) -> Checked {
    let mut checked = Checked::default();
    for (_, computation) in program.program.module.computations() {
        for (_, instruction) in computation.instructions() {
            let counted = checked.ops.entry(instruction.opcode().name().to_owned()).or_insert((0, true));
            counted.0 += 1;
        }
    }
    let program = program.without_checks().map(|given| given.program);
    if let Err(error) = program.and_then(|program| compile(program, options, observer, &mut checked)) {
        checked.problems.push(Problem::of_graph(error));
    }
    checked
}

/// Everything but machine code: names, passes, plan, buffers, kernels.
fn compile(
    program: Program,
    options: &BackOptions,
    observer: &mut dyn Observer,
    checked: &mut Checked,
) -> Result<()> {
    let class = aot::parse_cpp_class("Model")?;
    let Program { mut module, interface } = program;
    let signature = Signature { entry_point: &options.entry_point, cpp_class: &class, interface: &interface };
    signature.validate()?;
    checked.accessors = aot::accessors(&interface)?;
    pipeline_for(options.targets(), options.plan.clone()).run(
        &mut module,
        &options.disabled_passes,
        |record, _| {
            observer.ended(record.name, &String::new);
        },
    )?;
    for target in std::iter::once(&options.target).chain(&options.variants) {
        let plan = plan::plan_with(&module, target, &options.plan)?;
        let schedule = buffers::schedule(&module, &plan);
        let assignment = buffers::assign(&module, &plan, &schedule, &mut buffers::ConstantsPool::default())?;
        buffers::check(&module, &plan, &schedule, &assignment)?;
        kernel::lower(&module, &plan, &schedule, &assignment, target, &options.entry_point)?;
    }
    Ok(())
}
