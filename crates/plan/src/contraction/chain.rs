//! Chains of convolutions: a band of output lines passes through all of them while it is in the
//! second-level cache.

mod cost;

use super::Planner;
use super::convolution::{ConvolutionDims, ConvolutionPlan, Stage, Winograd, bands};
use super::operands::is_read_once;
use crate::fusion::{Fusion, Position};
use crate::kernel_plan::KernelPlan;
use crate::packing::Packings;
use crate::tasks;
use hlo::{Computation, ConvolutionForm, FusionKind, InstructionId, Module, Op};
use std::collections::BTreeMap;
use std::ops::Range;
use support::{Error, Result};
use target::Target;

/// A chain of convolutions, each with its epilogue. A task is a band. Every stage computes the
/// lines of the band that the next stage reads, into the worker's scratch; the last stage writes
/// its lines to the result.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainPlan {
    /// The convolutions, in order.
    pub stages: Vec<ChainStage>,
}

/// One convolution of a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainStage {
    /// Its loops; the chunks of its tiling are the bands. The input of a later stage has an index
    /// after those of the fusion's operands.
    pub convolution: ConvolutionPlan,
    /// The body's instruction that the next stage reads.
    pub root: InstructionId,
    /// Offset of its band in the worker's scratch, in bytes; `None` for the last stage, which
    /// writes the result.
    pub band: Option<u64>,
    /// Its constants among the packed ones.
    pub packed: Range<usize>,
}

/// Upper bound of the stages; longer chains are divided.
pub const MAX_STAGES: usize = 4;

/// Upper bound of the scratch bytes per worker.
const MAX_SCRATCH: u64 = 64 << 20;

/// Plans a body of several convolutions, each of which reads the epilogue of the previous one.
pub(crate) fn plan(fusion: &Fusion<'_>, target: &Target) -> Result<KernelPlan<ChainPlan>> {
    let packings = &Packings::default();
    let planner =
        Planner { target, winograd: Winograd::default(), allow_tf32: false, candidate: None, packings };
    let links = links(fusion)?;
    let views: Vec<Fusion<'_>> = links.iter().map(|link| fusion.up_to(link.root)).collect();
    let stages = views.iter().zip(&links).map(|(view, link)| stage(view, link.hero));
    let stages = stages.collect::<Result<Vec<cost::Stage>>>()?;
    let cut = cost::cut(&stages, target)
        .filter(|cut| cut.scratch_bytes <= MAX_SCRATCH)
        .ok_or_else(|| Error::unsupported("chain of convolutions that cannot be divided into bands"))?;
    let dims: Vec<ConvolutionDims> = stages.iter().map(|stage| stage.dims.clone()).collect();
    let lines = bands::lines(&dims, cut.per_image, has_sizes(fusion.module))
        .ok_or_else(|| Error::unsupported("chain of convolutions without lines"))?;
    let operands = fusion.caller[fusion.instruction].operands().len();
    let (mut planned, mut packed, mut band) = (Vec::new(), Vec::new(), 0);
    for (k, (view, lines)) in views.iter().zip(&lines).enumerate() {
        let input = (k > 0).then(|| operands + k);
        let stage = Stage { fusion: view, hero: links[k].hero, input, bands: Some(lines) };
        let (convolution, constants) = stage.plan(planner)?;
        if convolution.kind.tiling().is_none() {
            return Err(Error::unsupported("convolution without tiles in a chain"));
        }
        let begin = packed.len();
        packed.extend(constants);
        let is_last = k + 1 == views.len();
        planned.push(ChainStage {
            convolution,
            root: view.root,
            band: (!is_last).then_some(band),
            packed: begin..packed.len(),
        });
        if !is_last {
            band += cost::band_bytes(&stages[k], lines);
        }
    }
    let tasks = lines[0].len() as i64;
    let plan = ChainPlan { stages: planned };
    Ok(KernelPlan { packed, tasks, worker_scratch_bytes: band, ..KernelPlan::new(plan) })
}

/// True if sizes are known only in each run.
fn has_sizes(module: &Module) -> bool {
    !module.size_parameters().is_empty()
}

/// A convolution of a body, and the last instruction of its epilogue.
struct Link {
    hero: InstructionId,
    root: InstructionId,
}

/// The convolutions of a body, in order. Fails if the body is not a chain.
fn links(fusion: &Fusion<'_>) -> Result<Vec<Link>> {
    let no_chain = || Error::unsupported("opcode convolution after a contraction in one fusion");
    let body = fusion.body;
    let mut convolutions = Vec::new();
    // Number of convolutions on which an instruction depends.
    let mut depth: BTreeMap<InstructionId, usize> = BTreeMap::new();
    for id in fusion.instructions() {
        let (op, operands) = (body[id].op(), body[id].operands());
        let depth_of = |o: &InstructionId| depth.get(o).copied().unwrap_or(0);
        let deepest = operands.iter().map(depth_of).max().unwrap_or(0);
        if matches!(op, Op::Convolution { .. }) {
            if deepest != convolutions.len() || depth_of(&operands[1]) != 0 {
                return Err(no_chain());
            }
            convolutions.push(id);
            depth.insert(id, deepest + 1);
            continue;
        }
        let elementwise = op.is_elementwise();
        let skips = operands.iter().any(|o| !matches!(depth_of(o), 0) && depth_of(o) != deepest);
        if deepest > 0 && (!elementwise || skips) {
            return Err(no_chain());
        }
        crate::loops::check_fusible(op)?;
        depth.insert(id, deepest);
    }
    let mut roots = Vec::new();
    for (k, &convolution) in convolutions.iter().enumerate().skip(1) {
        let root = body[convolution].operands()[0];
        let users = body[root].users();
        if depth.get(&root) != Some(&k) || users.len() != 1 {
            return Err(no_chain());
        }
        roots.push(root);
    }
    roots.push(fusion.root);
    let last = convolutions.len();
    if depth.get(&fusion.root) != Some(&last) || roots.len() > MAX_STAGES {
        return Err(no_chain());
    }
    for &root in &roots[..last - 1] {
        if !needs_features_only(&fusion.up_to(root)) {
            return Err(no_chain());
        }
    }
    Ok(convolutions.into_iter().zip(roots).map(|(hero, root)| Link { hero, root }).collect())
}

/// True if the epilogue of a convolution reads other arrays only by feature. It can then be
/// computed at any element.
fn needs_features_only(fusion: &Fusion<'_>) -> bool {
    let body = fusion.body;
    let mut pending = vec![fusion.root];
    let mut seen = std::collections::BTreeSet::new();
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        let Some(shape) = body[id].shape().as_array() else { return false };
        let is_inside = fusion.position(id) == Position::Inside;
        match body[id].op() {
            Op::Convolution { .. } if is_inside => {}
            Op::Broadcast { dimensions }
                if is_inside && dimensions.iter().all(|&d| d + 1 == shape.rank()) => {}
            Op::Constant { literal } if is_inside && literal.is_splat() => {}
            // Part of a mask of the elements within the size of the run.
            Op::Iota { .. } if is_inside && has_sizes(fusion.module) => {}
            op if is_inside && op.is_elementwise() => {
                pending.extend(body[id].operands());
            }
            _ if shape.rank() == 0 => {}
            _ => return false,
        }
    }
    true
}

/// The convolution `id` with its epilogue, up to a view's root.
fn stage(fusion: &Fusion<'_>, id: InstructionId) -> Result<cost::Stage> {
    let body = fusion.body;
    let array = |id: InstructionId| {
        body[id].shape().as_array().ok_or_else(|| Error::unsupported("chain of convolutions with tuples"))
    };
    let operands = body[id].operands();
    let (input, kernel, result) = (array(operands[0])?, array(operands[1])?, array(id)?);
    let (form, dims) = ConvolutionDims::of(body[id].op(), input, kernel, result)?;
    let dims = dims.within(fusion.module);
    if form != ConvolutionForm::Canonical {
        return Err(Error::unsupported("kernel gradient in a chain of convolutions"));
    }
    // The epilogue is everything between the convolution and the root.
    let (mut operations, mut pending) = (0u64, vec![fusion.root]);
    let mut seen = std::collections::BTreeSet::from([id]);
    while let Some(next) = pending.pop() {
        if seen.insert(next) && fusion.position(next) == Position::Inside {
            operations = operations.saturating_add(tasks::cost(body[next].op()));
            pending.extend(body[next].operands());
        }
    }
    Ok(cost::Stage {
        dims,
        element_bytes: array(fusion.root)?.element_type.byte_size() as u64,
        kernel_bytes: kernel.byte_size(),
        operations,
    })
}

/// Cycles saved if convolutions, each with its epilogue and each the only reader of the previous
/// one, are computed band by band in one kernel. `None` if that is impossible or does not pay off
/// on any of the targets.
pub fn chain_saving(
    module: &Module,
    computation: &Computation,
    chain: &[InstructionId],
    targets: &[Target],
    winograd: Winograd,
) -> Option<u64> {
    // Bands of lines pay in a processor's cache; a device has no task large enough for one.
    let on_device = targets.iter().any(|target| target.gpu.is_some());
    if on_device || chain.len() < 2 || chain.len() > MAX_STAGES {
        return None;
    }
    let (mut stages, mut views) = (Vec::new(), Vec::new());
    for (k, &id) in chain.iter().enumerate() {
        let fusion = Fusion::of(module, computation, id).ok()?;
        let FusionKind::Convolution { convolution } = fusion.kind() else { return None };
        links(&fusion).ok()?;
        if k + 1 < chain.len() && !needs_features_only(&fusion) {
            return None;
        }
        if k > 0 && !is_only_reader(&fusion, convolution, chain[k - 1]) {
            return None;
        }
        stages.push(stage(&fusion, convolution).ok()?);
        views.push((fusion, convolution));
    }
    let mut saved = None;
    for target in targets {
        for (stage, (fusion, hero)) in stages.iter().zip(&views) {
            let view = Stage { fusion, hero: *hero, input: None, bands: None };
            if !view.has_tiles(&stage.dims, target, winograd) {
                return None;
            }
        }
        saved = saved.max(cost::saving(&stages, target)?.checked_sub(1));
    }
    saved
}

/// True if a view's convolution, and nothing else in the program, reads an instruction.
fn is_only_reader(fusion: &Fusion<'_>, convolution: InstructionId, before: InstructionId) -> bool {
    let Position::Operand(number) = fusion.position(fusion.body[convolution].operands()[0]) else {
        return false;
    };
    let operands = fusion.caller[fusion.instruction].operands();
    fusion.operand(number) == before
        && operands.iter().filter(|&&operand| operand == before).count() == 1
        && is_read_once(fusion, number)
        && fusion.caller[before].users().len() == 1
        && fusion.caller.root() != before
}

impl std::fmt::Display for ChainPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "chain of {} convolutions in bands", self.stages.len())?;
        for stage in &self.stages {
            write!(f, "; {}", stage.convolution)?;
        }
        Ok(())
    }
}
