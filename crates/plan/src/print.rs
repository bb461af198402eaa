//! The plan as text, for `-v` and for tests.

use crate::reduction::reduce_window::{ReduceWindowPlan, WindowWalk};
use crate::strategy::{InstructionPlan, ModulePlan, Strategy};
use hlo::Module;
use std::fmt::Write as _;

impl ModulePlan {
    /// One line per instruction that needs code: name, shape, strategy, and the resources that it
    /// requests from the buffers.
    pub fn to_text(&self, module: &Module) -> String {
        let mut text = String::new();
        for (&id, plan) in &self.computations {
            let computation = &module[id];
            let _ = writeln!(text, "{}:", computation.name());
            for (&instruction, plan) in &plan.instructions {
                if plan.strategy != Strategy::Alias {
                    let instruction = &computation[instruction];
                    let _ = writeln!(text, "  {} {}: {plan}", instruction.name(), instruction.shape());
                }
            }
        }
        text
    }
}

impl std::fmt::Display for InstructionPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.strategy {
            Strategy::Alias => f.write_str("alias"),
            Strategy::Undefined => f.write_str("memory only"),
            Strategy::Loop(plan) => {
                write!(f, "{} loop, {} lanes", if plan.is_flat { "flat" } else { "nested" }, plan.lanes)?;
                if plan.transposed.is_some() { f.write_str(", squares transposed") } else { Ok(()) }
            }
            Strategy::Reduce(plan) => {
                let kind = format!("{:?}", plan.kind).to_lowercase();
                write!(f, "{kind} reduction, {} lanes, {} accumulators", plan.lanes, plan.accumulators)
            }
            Strategy::Rows(plan) => plan.fmt(f),
            Strategy::ReduceWindow(plan) => plan.fmt(f),
            Strategy::Dot(plan) => plan.fmt(f),
            Strategy::Convolution(plan) => plan.fmt(f),
            Strategy::ConvolutionChain(plan) => plan.fmt(f),
            Strategy::Attention(plan) => plan.fmt(f),
            Strategy::Device(plan) => plan.fmt(f),
            Strategy::Concatenate => f.write_str("concatenation"),
            Strategy::DynamicUpdateSlice(_) => f.write_str("slice update"),
            Strategy::MultiOutput(plan) => plan.fmt(f),
            Strategy::Scatter => f.write_str("scatter"),
            Strategy::Sort(None) => f.write_str("merge sort"),
            Strategy::TopK(None) => f.write_str("top k"),
            Strategy::Sort(Some(plan)) => plan.fmt(f),
            Strategy::TopK(Some(plan)) => write!(f, "top k of a {plan}"),
            Strategy::Fft(plan) => plan.fmt(f),
            Strategy::RngBitGenerator => f.write_str("random bits"),
            Strategy::RngGetAndUpdateState => f.write_str("random state"),
            Strategy::Conditional => f.write_str("conditional"),
            Strategy::While => f.write_str("while loop"),
            Strategy::CustomCall => f.write_str("custom call"),
        }?;
        if let Some(candidate) = self.tuned {
            write!(f, ", as tuned: {candidate}")?;
        }
        if !self.packed.is_empty() {
            let bytes: usize = self.packed.iter().map(|p| p.bytes.len()).sum();
            write!(f, ", {bytes} bytes packed")?;
        }
        if self.scratch_bytes > 0 {
            write!(f, ", {} bytes scratch", self.scratch_bytes)?;
        }
        if self.tasks > 1 {
            write!(f, ", {} tasks", self.tasks)?;
        }
        if self.worker_scratch_bytes > 0 {
            write!(f, ", {} bytes per worker", self.worker_scratch_bytes)?;
        }
        if !self.may_overwrite.is_empty() {
            write!(f, ", may overwrite {:?}", self.may_overwrite)?;
        }
        for (leaf, operand) in &self.leaves_may_overwrite {
            write!(f, ", result {leaf} may overwrite {operand}")?;
        }
        Ok(())
    }
}

impl std::fmt::Display for ReduceWindowPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let walk = |walk: &WindowWalk| match walk {
            WindowWalk::Segments(segments) => segments.len().to_string(),
            WindowWalk::Bounded => "bounded".to_owned(),
            WindowWalk::Masked => "masked".to_owned(),
            WindowWalk::Running { is_backward: false } => "running".to_owned(),
            WindowWalk::Running { is_backward: true } => "running backward".to_owned(),
        };
        let walks: Vec<String> = self.dimensions.iter().map(walk).collect();
        write!(
            f,
            "windowed reduction of {} segments, {} lanes, {} vectors",
            walks.join(" x "),
            self.lanes,
            self.vectors
        )
    }
}
