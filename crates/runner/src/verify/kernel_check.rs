//! Checks kernel by kernel: evaluates the optimized module, compiles each kernel alone, and
//! compares its results.

use super::analysis::{Analysis, branch, is_true};
use super::compare::Comparison;
use super::estimate::Growth;
use super::program_check::{Sizes, arguments};
use super::{Subject, VerifyOptions};
use crate::Progress;
use crate::fill::{Fill, Random};
use crate::kernels::{Extracted, Kernel, extract, has_code, kernels, kind, nodes, program_cost};
use compiler::Executable;
use evaluator::Evaluator;
use hlo::{ComputationId, Instruction, InstructionId, Module, Op};
use shape::{Literal, Shape};
use std::collections::BTreeMap;
use support::{Error, Result};

/// The result of checking a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelCheck {
    /// Name of the instruction.
    pub name: String,
    /// The kernel's main operation.
    pub kind: &'static str,
    /// TensorFlow nodes from which the kernel originates, the result's first.
    pub nodes: Vec<String>,
    /// Kinds of input on which it was compared; empty if it was not.
    pub inputs: Vec<&'static str>,
    /// Reason for not comparing it: identical to another kernel, or not able to run alone.
    pub skipped: Option<String>,
    /// The comparison closest to its limit, or the first failed one, with its kind of input.
    pub worst: Option<(&'static str, Comparison)>,
}

impl KernelCheck {
    /// True if no error was found.
    pub fn passed(&self) -> bool {
        self.worst.as_ref().is_none_or(|(_, comparison)| comparison.passed())
    }

    fn note(&mut self, fill: &'static str, comparison: Comparison) {
        let worse = match &self.worst {
            None => true,
            Some((_, worst)) => {
                worst.passed() && (!comparison.passed() || comparison.share_of_limit > worst.share_of_limit)
            }
        };
        if worse {
            self.worst = Some((fill, comparison));
        }
    }
}

/// Checks every kernel of the module in execution order, then those that the inputs did not reach.
pub(super) fn check(
    subject: &Subject<'_>,
    options: &VerifyOptions,
    progress: &mut Progress<'_>,
) -> Result<Vec<KernelCheck>> {
    let module = subject.optimized;
    let all = kernels(module);
    let mut walk = Walk {
        subject,
        options,
        evaluator: Evaluator::new(module),
        is_small: program_cost(module).flops <= options.small_program,
        total: all.len(),
        progress,
        alike: BTreeMap::new(),
        checks: BTreeMap::new(),
        order: Vec::new(),
    };
    let arguments = arguments(subject, Fill::Random, Sizes::Largest, options.seed)?;
    walk.computation(module.entry(), arguments, true)?;
    for kernel in all {
        if !walk.checks.contains_key(&kernel) {
            walk.check_unreached(kernel)?;
        }
    }
    let Walk { mut checks, order, .. } = walk;
    Ok(order.iter().filter_map(|kernel| checks.remove(kernel)).collect())
}

struct Walk<'a, 'p, 'q> {
    subject: &'a Subject<'a>,
    options: &'a VerifyOptions,
    evaluator: Evaluator<'a>,
    is_small: bool,
    total: usize,
    progress: &'p mut Progress<'q>,
    /// For each key, the number of kernels encountered and the name of the first.
    alike: BTreeMap<String, (usize, String)>,
    checks: BTreeMap<Kernel, KernelCheck>,
    /// The kernels in the order in which they were encountered.
    order: Vec<Kernel>,
}

impl Walk<'_, '_, '_> {
    /// Evaluates a computation. With `checks`, its kernels are compared, those of loops in the
    /// first iteration.
    fn computation(&mut self, id: ComputationId, arguments: Vec<Literal>, checks: bool) -> Result<Literal> {
        if !checks {
            return self.evaluator.evaluate_computation(id, &arguments);
        }
        let computation = &self.subject.optimized[id];
        let order = computation.post_order();
        let mut last_use = BTreeMap::new();
        for (position, &instruction) in order.iter().enumerate() {
            for &operand in computation[instruction].operands() {
                last_use.insert(operand, position);
            }
        }
        let mut values: BTreeMap<InstructionId, Literal> = BTreeMap::new();
        for (position, &id_of) in order.iter().enumerate() {
            let instruction = &computation[id_of];
            let operands: Vec<Literal> = instruction.operands().iter().map(|o| values[o].clone()).collect();
            let kernel = Kernel { computation: id, instruction: id_of };
            let value = match instruction.op() {
                Op::Parameter { number } => arguments[*number].clone(),
                _ => self.instruction(kernel, instruction, &operands)?,
            };
            values.insert(id_of, value);
            for operand in instruction.operands() {
                if last_use[operand] == position && *operand != computation.root() {
                    values.remove(operand);
                }
            }
        }
        values.remove(&computation.root()).ok_or_else(|| Error::internal("the root has no value"))
    }

    fn instruction(
        &mut self,
        kernel: Kernel,
        instruction: &Instruction,
        operands: &[Literal],
    ) -> Result<Literal> {
        match instruction.op() {
            Op::While { condition, body } => {
                let mut state = operands[0].clone();
                let mut checks = !self.checks.keys().any(|k| k.computation == *body);
                while is_true(&self.computation(*condition, vec![state.clone()], checks)?) {
                    state = self.computation(*body, vec![state], checks)?;
                    checks = false;
                }
                Ok(state)
            }
            Op::Conditional { branch_computations } => {
                let chosen = branch(&operands[0], branch_computations.len());
                self.computation(branch_computations[chosen], vec![operands[chosen + 1].clone()], true)
            }
            op if has_code(op) && !self.checks.contains_key(&kernel) => self.kernel(kernel, operands),
            op => {
                let operands: Vec<&Literal> = operands.iter().collect();
                self.evaluator.evaluate_instruction(op, instruction.shape(), &operands)
            }
        }
    }

    /// Compares a kernel on its actual operands and on edge inputs, and returns its value.
    fn kernel(&mut self, kernel: Kernel, operands: &[Literal]) -> Result<Literal> {
        let module = self.subject.optimized;
        let instruction = &module[kernel.computation][kernel.instruction];
        (self.progress)(instruction.name(), self.order.len(), self.total);
        let select_arguments = |alone: &Extracted| -> Result<Vec<Literal>> {
            let position = |o: &InstructionId| instruction.operands().iter().position(|i| i == o);
            Ok(alone.operands.iter().filter_map(position).map(|p| operands[p].clone()).collect())
        };
        let compared = self.compare(kernel, select_arguments)?;
        // The random state belongs to the program, not to the kernel.
        if let Some(value) = compared
            && !matches!(instruction.op(), Op::RngGetAndUpdateState { .. })
        {
            return Ok(value);
        }
        let operands: Vec<&Literal> = operands.iter().collect();
        self.evaluator.evaluate_instruction(instruction.op(), instruction.shape(), &operands)
    }

    /// Compares a kernel that this run does not reach, on random operands.
    fn check_unreached(&mut self, kernel: Kernel) -> Result<()> {
        let module = self.subject.optimized;
        let name = module[kernel.computation][kernel.instruction].name();
        (self.progress)(name, self.order.len(), self.total);
        let seed = self.options.seed;
        self.compare(kernel, |alone| synthetic(&alone.module, Fill::Random, seed)).map(|_| ())
    }

    /// Compares a kernel. Returns its value for the given arguments if it was compared.
    fn compare(
        &mut self,
        kernel: Kernel,
        arguments: impl FnOnce(&Extracted) -> Result<Vec<Literal>>,
    ) -> Result<Option<Literal>> {
        let module = self.subject.optimized;
        let instruction = &module[kernel.computation][kernel.instruction];
        let mut check = KernelCheck {
            name: instruction.name().to_owned(),
            kind: kind(module, kernel),
            nodes: nodes(module, kernel),
            inputs: Vec::new(),
            skipped: None,
            worst: None,
        };
        self.order.push(kernel);
        let alone = match extract(module, kernel) {
            Ok(alone) => alone,
            Err(error) => {
                check.skipped = Some(error.message().to_owned());
                self.checks.insert(kernel, check);
                return Ok(None);
            }
        };
        let (occurrences, first) =
            self.alike.entry(alone.key.clone()).or_insert_with(|| (0, instruction.name().to_owned()));
        *occurrences += 1;
        let is_first = *occurrences == 1;
        if !self.is_small && *occurrences > self.options.alike {
            check.skipped = Some(format!("like {first}"));
            self.checks.insert(kernel, check);
            return Ok(None);
        }
        let code = (self.subject.compile)(alone.module.clone());
        let code = code.map_err(|e| e.context(format!("kernel {}", instruction.name())))?;
        let value = run(&mut check, Fill::Random, &alone.module, &code, &arguments(&alone)?)?;
        if is_first {
            let small = kernel.cost(module).flops <= self.options.small_kernel;
            for fill in Fill::ALL.into_iter().filter(|&f| f != Fill::Random) {
                if (small || fill == Fill::Special) && !alone.operands.is_empty() {
                    let arguments = synthetic(&alone.module, fill, self.options.seed)?;
                    run(&mut check, fill, &alone.module, &code, &arguments)?;
                }
            }
        }
        self.checks.insert(kernel, check);
        Ok(Some(value))
    }
}

/// Generates arguments for a kernel.
fn synthetic(alone: &Module, fill: Fill, seed: u64) -> Result<Vec<Literal>> {
    let random = Random::new(seed ^ 0x6b65_726e);
    let parameters = alone.entry_computation().program_shape().parameters;
    let array = |(k, shape): (usize, &Shape)| fill.array(shape.expect_array(), &mut random.fork(k));
    parameters.iter().enumerate().map(array).collect()
}

/// Compares a kernel's code with the evaluator once, and returns the kernel's value.
fn run(
    check: &mut KernelCheck,
    fill: Fill,
    alone: &Module,
    code: &Executable,
    arguments: &[Literal],
) -> Result<Literal> {
    let want = Analysis::new(alone, Growth::Worst).run(arguments)?;
    let got = code.run(arguments)?;
    check.inputs.push(fill.name());
    for (k, (got, want)) in got.iter().zip(want.arrays()).enumerate() {
        let name = format!("result {k}");
        check.note(fill.name(), Comparison::of(&name, got, want));
    }
    let Literal::Tuple(mut elements) = want.value() else {
        return Err(Error::internal("expected a tuple from the kernel's entry"));
    };
    // The entry's tuple contains the instruction's array, or the elements of its tuple.
    let entry = alone.entry_computation();
    let inner = entry[entry.root()].operands()[0];
    match entry[inner].op() {
        Op::GetTupleElement { .. } => Ok(Literal::Tuple(elements)),
        _ => Ok(elements.remove(0)),
    }
}
