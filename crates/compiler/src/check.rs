//! Check of a model that lists everything that prevents it from compiling.

use crate::back::{has_several_modules, lower_modules};
use crate::device::serial_kernels;
use crate::versions::variants;
use crate::{BackOptions, HloProgram, LoopBounds, Observer, front, pipeline_for};
use aot::{Accessor, Signature};
use hlo::{Program, SizeRange};
use std::collections::{BTreeMap, BTreeSet};
use support::{Code, Error, Result};
use tf::Problem;
use tf::proto::{Config, GraphDef};

/// Maximum number of problems listed. If there are this many, there may be more.
pub const MAX_PROBLEMS: usize = 1000;

/// Result of [`check`].
#[derive(Debug, Default)]
pub struct Checked {
    /// Problems that prevent the model from compiling; empty if it compiles.
    pub problems: Vec<Problem>,
    /// Suspicious parts of the model that do not prevent it from compiling.
    pub warnings: Vec<String>,
    /// Ops of the compiled nodes, each with the number of nodes and true if the op has a rule.
    pub ops: BTreeMap<String, (usize, bool)>,
    /// Names of arguments and results in the C++ class, if they are known.
    pub accessors: Vec<Accessor>,
    /// Named dimensions with their ranges.
    pub dimensions: Vec<(String, SizeRange)>,
}

/// Checks a model. `missing` lists parts of the config that could not be inferred. If there are
/// any, only the ops are checked.
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
    // Without a complete config, further problems would only follow from the missing parts.
    if missing.is_empty() {
        checked.problems.extend(examined.problems);
    }
    if checked.problems.is_empty() {
        // Nodes of a batch of independent rows need not support a range of sizes.
        let whole = (config.dimension.len() == 1).then(|| graph.clone());
        let mut program = tf::prepare(graph, config.clone())?;
        program.loop_bounds.clone_from(loop_bounds);
        let problems = import::problems(&program);
        let imported = match whole {
            _ if problems.is_empty() => Some(front::import_program(program, observer)),
            Some(graph) => {
                front::import_bounded(graph, config.clone(), loop_bounds.clone(), observer).ok().map(Ok)
            }
            None => None,
        };
        match imported {
            Some(imported) => {
                let compiled = imported.and_then(|program| compile(program, options, observer, &mut checked));
                checked.problems.extend(compiled.err().map(Problem::of_graph));
            }
            None => checked.problems = problems,
        }
    } else {
        add_unsupported_nodes(&mut checked, &examined.ops);
    }
    Ok(checked)
}

/// Adds nodes whose op has no rule, for a graph that cannot be prepared and therefore has unknown
/// types.
fn add_unsupported_nodes(checked: &mut Checked, ops: &BTreeMap<String, Vec<String>>) {
    let reported: BTreeSet<String> = checked.problems.iter().map(|problem| problem.node.clone()).collect();
    for (op, nodes) in ops.iter().filter(|(op, _)| !checked.ops[*op].1) {
        let room = MAX_PROBLEMS.saturating_sub(checked.problems.len());
        for node in nodes.iter().filter(|node| !reported.contains(*node)).take(room) {
            let error = Error::unsupported(import::unsupported_op(op)).coded(Code::UnsupportedOp);
            checked.problems.push(Problem::of_node(node, op, error));
        }
    }
}

/// Checks an HLO program. Its opcodes take the place of ops.
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

/// Compiles everything except machine code: names, passes, plan, buffers, and kernels.
fn compile(
    program: Program,
    options: &BackOptions,
    observer: &mut dyn Observer,
    checked: &mut Checked,
) -> Result<()> {
    let class = aot::parse_cpp_class("Model")?;
    let interface = &program.interface;
    let signature = Signature { entry_point: &options.entry_point, cpp_class: &class, interface };
    signature.validate()?;
    checked.accessors = aot::accessors(interface)?;
    checked.dimensions = interface.sizes().map(|(_, size, range)| (size.label(), range)).collect();
    if has_several_modules(&program, options) {
        return lower_modules(&program, options, &mut buffers::ConstantsPool::default(), observer).map(drop);
    }
    let mut module = program.module;
    pipeline_for(options.targets(), options.plan.clone()).run(
        &mut module,
        &options.disabled_passes,
        |record, _| {
            observer.ended(record.name, &String::new);
        },
    )?;
    for target in &options.devices {
        let plan = plan::plan_with(&module, target, &options.plan)?;
        let schedule = buffers::schedule(&module, &plan);
        let assignment = buffers::assign(&module, &plan, &schedule, &mut buffers::ConstantsPool::default())?;
        buffers::check(&module, &plan, &schedule, &assignment)?;
        let program = kernel::lower_device(&module, &plan, &schedule, &assignment, target)?;
        if target == &options.devices[0] {
            let slow = serial_kernels(&program).into_iter();
            checked.warnings.extend(
                slow.map(|label| format!("kernel {label} runs as one thread of the device: right, but slow")),
            );
        }
    }
    let variants = variants(&module, options);
    let processors = std::iter::once(&options.target).chain(&variants);
    for target in processors.filter(|_| options.devices.is_empty()) {
        let plan = plan::plan_with(&module, target, &options.plan)?;
        let schedule = buffers::schedule(&module, &plan);
        let assignment = buffers::assign(&module, &plan, &schedule, &mut buffers::ConstantsPool::default())?;
        buffers::check(&module, &plan, &schedule, &assignment)?;
        kernel::lower(&module, &plan, &schedule, &assignment, target, &options.entry_point)?;
    }
    Ok(())
}
