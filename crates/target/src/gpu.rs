//! GPUs: NVIDIA's by compute capability, and OpenCL devices.

use crate::Target;
use support::{Code, Error, Result};

/// Capabilities of a GPU. Numbers that differ between the devices of a target are those that all of
/// them have, or a typical size for cost models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Compute capability times ten (80 for `sm_80`); 0 for OpenCL.
    pub capability: u32,
    /// Threads that run in lockstep.
    pub warp: u32,
    /// Workgroup memory that a kernel may declare, in bytes.
    pub workgroup_bytes: u64,
    /// Typical number of multiprocessors.
    pub processors: u32,
    /// True if the device has matrix instructions for f16, bf16, TF32, and int8 (`mma.sync`).
    pub has_matrix_units: bool,
}

impl Target {
    /// Returns the target of NVIDIA's GPUs from an architecture on, such as `sm_80` or `sm_90a`.
    /// Features of an `a` architecture run only on exactly that one.
    pub fn cuda(architecture: &str) -> Result<Self> {
        if capability(architecture).is_none_or(|capability| capability < MIN_CAPABILITY) {
            return Err(Error::invalid(format!(
                "unknown GPU architecture '{architecture}': expected sm_70 or later, such as sm_80 or sm_90a"
            ))
            .coded(Code::Target));
        }
        Self::new("nvptx64-nvidia-cuda", architecture, "")
    }

    /// Returns the target of OpenCL devices that take SPIR-V.
    pub fn opencl() -> Result<Self> {
        Self::new("spirv64-unknown-unknown", "", "")
    }

    /// Returns the target of OpenCL devices that take OpenCL C. It has the plans of
    /// [`Self::opencl`].
    pub fn opencl_c() -> Result<Self> {
        Self::new("spirv64-unknown-unknown", OPENCL_C, "")
    }

    /// True if the code for the target is OpenCL C.
    pub fn is_opencl_c(&self) -> bool {
        self.triple.architecture == crate::Architecture::Spirv64 && self.cpu == OPENCL_C
    }
}

/// The form of code that is OpenCL C, in names of targets.
const OPENCL_C: &str = "c";

/// The form of code that is SPIR-V, in names of targets.
const SPIRV: &str = "spirv";

/// Names of GPUs for users, for error texts.
pub const DEVICE_NAMES: &str = "cuda, cuda:sm_80,sm_90a, opencl, opencl:c, opencl:spirv,c";

/// Architectures of the name `cuda`: the oldest one with matrix units for every type, which all
/// later GPUs can run, and the one with its own matrix instructions.
const DEFAULT_ARCHITECTURES: &str = "sm_80,sm_90a";

/// Returns the targets of the GPUs that a name for users selects: `cuda` for common ones of
/// NVIDIA's, `cuda:` with architectures joined by commas, `opencl` for SPIR-V, or `opencl:` with
/// the forms of code (`spirv`, `c`) joined by commas. The least capable architecture is first.
/// `None` if the name does not start like one of a GPU, and may be that of a processor.
///
/// Errors: `invalid` for an unknown architecture or form, or one that is given twice.
pub fn parse_devices(name: &str) -> Result<Option<Vec<Target>>> {
    let (kind, rest) = match name.split_once(':') {
        Some((kind, rest)) => (kind, Some(rest)),
        None => (name, None),
    };
    let architectures = match (kind, rest) {
        ("opencl", forms) => return opencl_forms(name, forms.unwrap_or(SPIRV)).map(Some),
        ("cuda", None) => DEFAULT_ARCHITECTURES,
        ("cuda", Some(architectures)) => architectures,
        _ => return Ok(None),
    };
    let mut devices = Vec::new();
    for architecture in architectures.split(',') {
        let device = Target::cuda(architecture).map_err(|e| e.context(format!("target '{name}'")))?;
        if devices.iter().any(|known: &Target| known.cpu == device.cpu) {
            return Err(
                Error::invalid(format!("target '{name}': {architecture} is given twice")).coded(Code::Target)
            );
        }
        devices.push(device);
    }
    devices.sort_by_key(|device| (device.gpu.map(|gpu| gpu.capability), device.cpu.clone()));
    Ok(Some(devices))
}

/// Returns the targets of OpenCL devices for forms of code joined by commas.
fn opencl_forms(name: &str, forms: &str) -> Result<Vec<Target>> {
    let mut devices: Vec<Target> = Vec::new();
    for form in forms.split(',') {
        let device = match form {
            SPIRV => Target::opencl()?,
            OPENCL_C => Target::opencl_c()?,
            _ => {
                return Err(Error::invalid(format!(
                    "target '{name}': unknown form of code '{form}': expected opencl:spirv, opencl:c, or opencl:spirv,c"
                ))
                .coded(Code::Target));
            }
        };
        if devices.contains(&device) {
            return Err(Error::invalid(format!("target '{name}': {form} is given twice")).coded(Code::Target));
        }
        devices.push(device);
    }
    Ok(devices)
}

/// The first architecture with independent thread scheduling, which barriers in loops rely on.
const MIN_CAPABILITY: u32 = 70;

/// Returns the number in `sm_80` or `sm_90a`.
fn capability(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("sm_")?;
    digits.strip_suffix('a').unwrap_or(digits).parse().ok()
}

pub(crate) fn describe_cuda(target: &mut Target) {
    let capability = capability(&target.cpu).unwrap_or(MIN_CAPABILITY);
    scalar(target);
    target.has_fma = true;
    target.has_rounding = true;
    target.has_popcnt = true;
    target.l2_bytes = 40 << 20;
    target.gpu = Some(Gpu {
        capability,
        warp: 32,
        workgroup_bytes: 48 << 10,
        processors: if capability >= 90 { 132 } else { 108 },
        has_matrix_units: capability >= 80,
    });
}

pub(crate) fn describe_opencl(target: &mut Target) {
    scalar(target);
    target.has_fma = true;
    target.has_rounding = true;
    target.has_popcnt = true;
    // Every OpenCL device of the full profile has this much local memory.
    let workgroup_bytes = 32 << 10;
    target.gpu =
        Some(Gpu { capability: 0, warp: 1, workgroup_bytes, processors: 32, has_matrix_units: false });
}

/// A thread computes with scalars; the threads of a warp are its lanes.
fn scalar(target: &mut Target) {
    target.vector_bytes = 4;
    target.vector_registers = 32;
    target.l1_bytes = 128 << 10;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_checked() {
        let gpu = |name: &str| Target::cuda(name).expect(name).gpu.expect("a GPU");
        assert_eq!(gpu("sm_80").capability, 80);
        assert_eq!(gpu("sm_90a").capability, 90);
        assert!(gpu("sm_80").has_matrix_units && !gpu("sm_70").has_matrix_units);
        for wrong in ["sm_60", "sm_", "80", "sm_9x", ""] {
            assert!(Target::cuda(wrong).expect_err(wrong).to_string().contains("sm_80"), "{wrong}");
        }
        assert_eq!(Target::opencl().expect("a target").gpu.expect("a GPU").warp, 1);
        assert_eq!(Target::new("x86_64-pc-linux", "", "").expect("a target").gpu, None);
    }
    #[test]
    fn names_select_devices_from_the_least_capable_on() {
        let names = |name: &str| {
            let devices = parse_devices(name).expect(name).expect(name);
            devices.into_iter().map(|device| device.cpu).collect::<Vec<_>>()
        };
        assert_eq!(names("cuda"), ["sm_80", "sm_90a"]);
        assert_eq!(names("cuda:sm_90a,sm_75,sm_90"), ["sm_75", "sm_90", "sm_90a"]);
        assert_eq!(names("opencl"), [""]);
        assert_eq!(names("opencl:spirv"), [""]);
        assert_eq!(names("opencl:c"), ["c"]);
        assert_eq!(names("opencl:spirv,c"), ["", "c"]);
        for processor in ["aarch64-linux", "", "x86-64"] {
            assert_eq!(parse_devices(processor).expect(processor), None);
        }
        for (name, part) in [
            ("cuda:", "unknown GPU architecture ''"),
            ("cuda:sm_60", "sm_70 or later"),
            ("cuda:sm_80,sm_80", "sm_80 is given twice"),
            ("opencl:gpu", "unknown form of code 'gpu'"),
            ("opencl:c,c", "c is given twice"),
        ] {
            let error = parse_devices(name).expect_err(name).to_string();
            assert!(error.contains(part) && error.contains(name), "{error}");
        }
    }
}
