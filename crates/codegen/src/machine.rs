//! Conversion of a target's names to LLVM's target machine. Names are first checked against LLVM's
//! tables, because LLVM itself would print a warning and continue with other settings.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

use inkwell::OptimizationLevel;
use inkwell::llvm_sys::target_machine::LLVMTargetRef;
use inkwell::targets::{CodeModel, RelocMode, Target, TargetMachine, TargetTriple};
use support::{Code, Coded as _, Error, Result};

use crate::llvm;

#[expect(unsafe_code, reason = "the C++ function of cpp/subtarget_tables.cc")]
unsafe extern "C" {
    fn tfcompile_visit_subtarget_names(
        target: LLVMTargetRef,
        triple: *const c_char,
        features: c_int,
        visit: extern "C" fn(*mut c_void, *const c_char),
        data: *mut c_void,
    ) -> c_int;
}

/// Returns the processor and features of the host, for `native`.
pub fn host_target() -> (String, String) {
    llvm::initialize();
    let cpu = TargetMachine::get_host_cpu_name().to_string();
    let features = TargetMachine::get_host_cpu_features().to_string();
    (cpu, features)
}

/// Returns the triple of the host.
pub fn host_triple() -> String {
    TargetMachine::get_default_triple().as_str().to_string_lossy().into_owned()
}

/// Returns the code generator for a target. Errors name the part of the target that LLVM does not
/// support.
pub(crate) fn target_machine(target: &target::Target, optimize: bool) -> Result<TargetMachine> {
    known_machine(target, optimize).coded(Code::Target)
}

fn known_machine(target: &target::Target, optimize: bool) -> Result<TargetMachine> {
    llvm::initialize();
    let text = target.triple.as_str();
    let triple = TargetMachine::normalize_triple(&TargetTriple::create(text));
    let llvm_target = Target::from_triple(&triple)
        .map_err(|_| Error::invalid(format!("target triple '{text}': LLVM has no code generator for it")))?;
    if !llvm_target.has_target_machine() || !llvm_target.has_asm_backend() {
        return Err(Error::invalid(format!("target triple '{text}': LLVM cannot write object files for it")));
    }
    check_cpu(&llvm_target, &triple, &target.cpu)?;
    check_features(&llvm_target, &triple, &target.features)?;
    let architecture = text.split('-').next().unwrap_or_default();
    let level = if optimize { OptimizationLevel::Default } else { OptimizationLevel::Less };
    llvm_target
        .create_target_machine(
            &triple,
            &target.cpu,
            &target.features,
            level,
            relocation_mode(architecture),
            CodeModel::Small,
        )
        .ok_or_else(|| {
            Error::invalid(format!(
                "target triple '{text}', cpu '{}', features '{}': LLVM does not support this combination",
                target.cpu, target.features
            ))
        })
}

/// Position-independent, except for back ends without support for such code.
fn relocation_mode(architecture: &str) -> RelocMode {
    let without_pic = ["wasm", "avr", "msp430", "bpf", "xtensa", "xcore", "lanai"];
    if without_pic.iter().any(|name| architecture.starts_with(name)) {
        RelocMode::Static
    } else {
        RelocMode::PIC
    }
}

fn check_cpu(target: &Target, triple: &TargetTriple, cpu: &str) -> Result<()> {
    if cpu.is_empty() {
        return Ok(());
    }
    let known = subtarget_names(target, triple, false)?;
    if known.contains(cpu) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "unknown target cpu '{cpu}' for {}{}",
        triple.as_str().to_string_lossy(),
        suggestion(cpu, &known)
    )))
}

fn check_features(target: &Target, triple: &TargetTriple, features: &str) -> Result<()> {
    if features.is_empty() {
        return Ok(());
    }
    let known = subtarget_names(target, triple, true)?;
    for feature in features.split(',') {
        let Some(name) = feature.strip_prefix(['+', '-']) else {
            return Err(Error::invalid(format!(
                "target feature '{feature}' must begin with + or -, such as +avx2; features are separated by commas"
            )));
        };
        if !known.contains(name) {
            return Err(Error::invalid(format!(
                "unknown target feature '{feature}' for {}{}",
                triple.as_str().to_string_lossy(),
                suggestion(name, &known)
            )));
        }
    }
    Ok(())
}

/// Returns all processors or all features that LLVM knows for a target.
fn subtarget_names(target: &Target, triple: &TargetTriple, features: bool) -> Result<BTreeSet<String>> {
    extern "C" fn visit(data: *mut c_void, name: *const c_char) {
        // SAFETY: `data` is the set below, `name` a string of LLVM's tables.
        #[expect(unsafe_code, reason = "called from C++ with the pointers below")]
        unsafe {
            let names = &mut *data.cast::<BTreeSet<String>>();
            names.insert(CStr::from_ptr(name).to_string_lossy().into_owned());
        }
    }
    let mut names = BTreeSet::<String>::new();
    let text = CString::from(triple.as_str());
    let data: *mut BTreeSet<String> = &mut names;
    // SAFETY: a registered target, a NUL-terminated triple, and a set that outlives the call.
    #[expect(unsafe_code, reason = "the C++ function above")]
    let missing = unsafe {
        tfcompile_visit_subtarget_names(
            target.as_mut_ptr(),
            text.as_ptr(),
            c_int::from(features),
            visit,
            data.cast(),
        )
    };
    if missing != 0 {
        let triple = triple.as_str().to_string_lossy();
        return Err(Error::unsupported(format!("LLVM has no table of processors and features for {triple}")));
    }
    Ok(names)
}

/// Formats `; did you mean a, b or c?`, or nothing if no name is similar.
fn suggestion(name: &str, known: &BTreeSet<String>) -> String {
    let lowercase = name.to_lowercase();
    let mut near: Vec<(usize, &String)> = known
        .iter()
        .map(|k| (edit_distance(&lowercase, k), k))
        .filter(|&(distance, k)| {
            distance <= 2.max(lowercase.len() / 3) || (lowercase.len() >= 3 && k.starts_with(&lowercase))
        })
        .collect();
    near.sort();
    let near: Vec<String> = near.into_iter().take(4).map(|(_, k)| format!("'{k}'")).collect();
    match near.split_last() {
        None => String::new(),
        Some((only, [])) => format!("; did you mean {only}?"),
        Some((last, rest)) => format!("; did you mean {} or {last}?", rest.join(", ")),
    }
}

/// Returns Levenshtein's distance. Names longer than 64 bytes have no similar names.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() > 64 || b.len() > 64 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(triple: &str, cpu: &str, features: &str) -> String {
        let target = target::Target::new(triple, cpu, features).expect("a well-formed triple");
        target_machine(&target, true).expect_err("LLVM does not know this").to_string()
    }

    #[test]
    fn unknown_names_are_refused_with_near_ones() {
        let message = error("x86_64-pc-linux", "haswel", "");
        assert!(message.contains("'haswel'") && message.contains("did you mean 'haswell'"), "{message}");
        let message = error("x86_64-pc-linux", "", "+avx3");
        assert!(message.contains("'+avx3'") && message.contains("'avx'"), "{message}");
        let message = error("x86_64-pc-linux", "", "avx2");
        assert!(message.contains("must begin with + or -"), "{message}");
        let message = error("x86_64-pc-linux", "", "+avx2,,+fma");
        assert!(message.contains("must begin with + or -"), "{message}");
        let message = error("quantum9-pc-linux", "", "");
        assert!(message.contains("'quantum9-pc-linux'"), "{message}");
        let message = error("aarch64-unknown-linux-gnu", "haswell", "");
        assert!(message.contains("unknown target cpu 'haswell' for aarch64"), "{message}");
    }

    #[test]
    fn every_listed_name_of_the_host_is_accepted() {
        let (cpu, features) = host_target();
        let target = target::Target::new(&host_triple(), &cpu, &features).expect("the host's triple");
        target_machine(&target, true).expect("the host's own names");
    }

    #[test]
    fn distances() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("same", "same"), 0);
    }
}
