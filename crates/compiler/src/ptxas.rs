//! NVIDIA's assembler `ptxas`: machine code from PTX.

use codegen::{DeviceImage, ImageKind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use support::{Code, Error, Result};

/// Returns the machine code of all images, and the PTX of the first one for later GPUs.
///
/// Errors: `invalid` if the assembler cannot be started or rejects the code, with its output.
pub(crate) fn assemble(images: Vec<DeviceImage>, ptxas: &Path) -> Result<Vec<DeviceImage>> {
    let mut assembled =
        images.iter().map(|image| assemble_one(image, ptxas)).collect::<Result<Vec<DeviceImage>>>()?;
    assembled.extend(images.into_iter().next());
    Ok(assembled)
}

fn assemble_one(image: &DeviceImage, ptxas: &Path) -> Result<DeviceImage> {
    let directory = Directory::create()?;
    let (source, output) = (directory.0.join("kernels.ptx"), directory.0.join("kernels.cubin"));
    std::fs::write(&source, &image.bytes).map_err(|e| cannot("write", &source, &e))?;
    let mut command = Command::new(ptxas);
    command.arg(format!("-arch={}", image.architecture)).arg(&source).arg("-o").arg(&output);
    let result = command.output().map_err(|e| {
        Error::invalid(format!("cannot start the assembler '{}': {e}", ptxas.display())).coded(Code::Target)
    })?;
    if !result.status.success() {
        let text = [result.stderr, result.stdout].concat();
        return Err(Error::invalid(format!(
            "the assembler '{}' cannot compile for {}: {}",
            ptxas.display(),
            image.architecture,
            String::from_utf8_lossy(&text).trim()
        ))
        .coded(Code::Target));
    }
    let bytes = std::fs::read(&output).map_err(|e| cannot("read", &output, &e))?;
    Ok(DeviceImage { kind: ImageKind::Cubin, architecture: image.architecture.clone(), bytes, llvm_ir: None })
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::invalid(format!("cannot {what} '{}': {error}", path.display()))
}

/// A new directory for temporary files, deleted with this value.
struct Directory(PathBuf);

impl Directory {
    fn create() -> Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tfcompile-ptxas-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).map_err(|e| cannot("create", &path, &e))?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A remaining temporary file is harmless.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> DeviceImage {
        DeviceImage {
            kind: ImageKind::Ptx,
            architecture: "sm_80".to_owned(),
            bytes: b".version 8.0".to_vec(),
            llvm_ir: None,
        }
    }

    #[test]
    fn a_missing_assembler_is_named() {
        let error = assemble(vec![image()], Path::new("/nowhere/ptxas")).expect_err("no such file");
        assert!(error.to_string().contains("cannot start the assembler '/nowhere/ptxas'"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn machine_code_precedes_the_first_ptx_and_errors_have_the_output() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = Directory::create().expect("a directory");
        let fake = directory.0.join("ptxas");
        let script = "#!/bin/sh\n[ \"$1\" = -arch=sm_90a ] && { echo no such target >&2; exit 3; }\necho $1 > \"$4\"\n";
        std::fs::write(&fake, script).expect("a script");
        std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).expect("permissions");
        let other = DeviceImage { architecture: "sm_86".to_owned(), ..image() };
        let images = assemble(vec![image(), other.clone()], &fake).expect("images");
        let facts: Vec<_> = images.iter().map(|i| (i.kind, i.architecture.as_str())).collect();
        assert_eq!(
            facts,
            [(ImageKind::Cubin, "sm_80"), (ImageKind::Cubin, "sm_86"), (ImageKind::Ptx, "sm_80")]
        );
        assert_eq!(images[1].bytes, b"-arch=sm_86\n");
        let newest = DeviceImage { architecture: "sm_90a".to_owned(), ..other };
        let error = assemble(vec![newest], &fake).expect_err("an exit status").to_string();
        assert!(error.contains("cannot compile for sm_90a: no such target"), "{error}");
    }
}
