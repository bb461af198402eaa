//! The assignment as text, for `-v` and for tests.

use crate::{Allocation, BufferAssignment, Slice};
use hlo::Module;
use std::fmt;
use std::fmt::Write as _;

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.allocation {
            Allocation::Parameter(number) => write!(f, "parameter {number}"),
            Allocation::Result(number) => write!(f, "result {number}"),
            Allocation::Temps => f.write_str("temps"),
            Allocation::Constants => f.write_str("constants"),
        }?;
        write!(f, "[{}..{}]", self.offset, self.offset.saturating_add(self.size))
    }
}

impl BufferAssignment {
    /// The sizes, then a line for each leaf, scratch, packed constant, copy, and rotation.
    /// `constants_size` is the size of the block of constants.
    pub fn to_text(&self, module: &Module, constants_size: u64) -> String {
        let more = self.temps_size.saturating_sub(self.temps_lower_bound);
        let gaps = if more > 0 { format!(" ({more} of them gaps)") } else { String::new() };
        let mut text = format!(
            "temps {} bytes{gaps}, {} persistent; constants {constants_size} bytes\n",
            self.temps_size, self.persistent_size
        );
        if self.worker_scratch_size > 0 {
            let _ = writeln!(text, "  each worker: {} bytes", self.worker_scratch_size);
        }
        for ((computation, instruction, index), slice) in &self.slices {
            let name = module[*computation][*instruction].name();
            let path: String = index.iter().map(|i| format!("{{{i}}}")).collect();
            let _ = writeln!(text, "  {name}{path}: {slice}");
        }
        for ((computation, instruction), slice) in &self.scratch {
            let _ = writeln!(text, "  {} scratch: {slice}", module[*computation][*instruction].name());
        }
        for ((computation, instruction, position), slice) in &self.packed {
            let name = module[*computation][*instruction].name();
            let _ = writeln!(text, "  {name} packed {position}: {slice}");
        }
        for ((computation, instruction), copies) in &self.start_copies {
            for copy in copies {
                let name = module[*computation][*instruction].name();
                let _ = writeln!(text, "  before {name}: {} -> {}", copy.from, copy.to);
            }
        }
        for ((computation, instruction), rotations) in &self.rotations {
            for rotation in rotations {
                let name = module[*computation][*instruction].name();
                let places: Vec<String> = rotation.places.iter().map(Slice::to_string).collect();
                let _ = writeln!(text, "  each iteration of {name} exchanges {}", places.join(", "));
            }
        }
        for (computation, copies) in &self.end_copies {
            for copy in copies {
                let _ =
                    writeln!(text, "  end of {}: {} -> {}", module[*computation].name(), copy.from, copy.to);
            }
        }
        text
    }
}
