//! NVIDIA's assembler `ptxas`: machine code from PTX.

use compiler::Assembler;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use support::{Code, Error, Result};

/// The program that the user names.
#[derive(Debug)]
pub(crate) struct Ptxas(pub(crate) PathBuf);

impl Assembler for Ptxas {
    fn assemble(&self, ptx: &[u8], architecture: &str) -> Result<Vec<u8>> {
        let ptxas = self.0.display();
        let directory = Directory::create()?;
        let (source, output) = (directory.0.join("kernels.ptx"), directory.0.join("kernels.cubin"));
        std::fs::write(&source, ptx).map_err(|e| cannot("write", &source, &e))?;
        let mut command = Command::new(&self.0);
        command.arg(format!("-arch={architecture}")).arg(&source).arg("-o").arg(&output);
        let result = command.output().map_err(|e| {
            Error::invalid(format!("cannot start the assembler '{ptxas}': {e}")).coded(Code::Target)
        })?;
        if !result.status.success() {
            let text = [result.stderr, result.stdout].concat();
            return Err(Error::invalid(format!(
                "the assembler '{ptxas}' cannot compile for {architecture}: {}",
                String::from_utf8_lossy(&text).trim()
            ))
            .coded(Code::Target));
        }
        std::fs::read(&output).map_err(|e| cannot("read", &output, &e))
    }
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

    #[cfg(unix)]
    #[test]
    fn errors_have_the_output() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = Directory::create().expect("a directory");
        let fake = directory.0.join("ptxas");
        let script =
            "#!/bin/sh\n[ $1 = -arch=sm_90a ] && { echo no such target >&2; exit 3; }\ncat $2 > $4\n";
        std::fs::write(&fake, script).expect("a script");
        std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).expect("permissions");
        let ptxas = Ptxas(fake);
        assert_eq!(ptxas.assemble(b"code", "sm_80").expect("code"), b"code");
        let error = ptxas.assemble(b"code", "sm_90a").expect_err("an exit status").to_string();
        assert!(error.contains("cannot compile for sm_90a: no such target"), "{error}");
        let error = Ptxas("/nowhere/ptxas".into()).assemble(b"", "sm_80").expect_err("no such file");
        assert!(error.to_string().contains("cannot start the assembler '/nowhere/ptxas'"), "{error}");
    }
}
