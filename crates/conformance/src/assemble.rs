//! Assembles the PTX of kernels with NVIDIA's `ptxas`, and reads its report of registers and
//! spills.

use crate::case::Case;
use crate::engine;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use support::{Error, Result};

/// Resources of one kernel as reported by `ptxas`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelReport {
    /// Symbol of the kernel.
    pub kernel: String,
    /// Registers of a thread.
    pub registers: u64,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u64,
    /// Bytes that a thread stores to memory because it has too few registers.
    pub spill_bytes: u64,
    /// Bytes of a thread's stack.
    pub stack_bytes: u64,
}

/// Compiles a case for an architecture such as `sm_80` and assembles its kernels. Temporary files
/// have the name `scratch` with other extensions.
pub fn assemble(case: &Case, architecture: &str, ptxas: &OsStr, scratch: &Path) -> Result<Vec<KernelReport>> {
    let text = engine::ptx(case, architecture)?;
    let (ptx, cubin) = (scratch.with_extension("ptx"), scratch.with_extension("cubin"));
    std::fs::write(&ptx, text).map_err(|e| Error::invalid(format!("{}: {e}", ptx.display())))?;
    let output = Command::new(ptxas)
        .arg("-v")
        .arg(format!("-arch={architecture}"))
        .arg("-o")
        .args([&cubin, &ptx])
        .output()
        .map_err(|e| Error::invalid(format!("{}: {e}", ptxas.to_string_lossy())))?;
    let report =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let first = report.lines().find(|line| line.contains("error")).unwrap_or("no message");
        return Err(Error::internal(format!("ptxas rejects the PTX: {first}")));
    }
    Ok(read_report(&report))
}

/// Reads the report of `ptxas -v`.
fn read_report(text: &str) -> Vec<KernelReport> {
    let mut kernels: Vec<KernelReport> = Vec::new();
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let kernel = rest.split('\'').next().unwrap_or_default().to_owned();
            kernels.push(KernelReport { kernel, ..KernelReport::default() });
        }
        let Some(last) = kernels.last_mut() else { continue };
        for (what, place) in [
            (" bytes stack frame", &mut last.stack_bytes),
            (" bytes spill stores", &mut last.spill_bytes),
            (" registers", &mut last.registers),
            (" bytes smem", &mut last.workgroup_bytes),
        ] {
            if let Some(number) = number_before(line, what) {
                *place = number;
            }
        }
    }
    kernels
}

/// Returns the number directly before a text.
fn number_before(line: &str, what: &str) -> Option<u64> {
    let before = &line[..line.find(what)?];
    let start = before.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    before[start..].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_ptxas_are_read() {
        // Printed by ptxas 12.9.
        let text = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k0_a' for 'sm_80'
ptxas info    : Function properties for k0_a
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size, 2048 bytes smem, 392 bytes cmem[0]
ptxas info    : Compiling entry function 'k1_b' for 'sm_80'
ptxas info    : Function properties for k1_b
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, 384 bytes cmem[0]";
        let expected = [("k0_a", 40, 2048, 8, 16), ("k1_b", 8, 0, 0, 0)];
        let expected: Vec<KernelReport> = expected
            .into_iter()
            .map(|(kernel, registers, workgroup_bytes, spill_bytes, stack_bytes)| KernelReport {
                kernel: kernel.to_owned(),
                registers,
                workgroup_bytes,
                spill_bytes,
                stack_bytes,
            })
            .collect();
        assert_eq!(read_report(text), expected);
    }
}
