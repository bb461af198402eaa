//! NVIDIA's assembler `ptxas`: machine code from PTX.

use compiler::Assembler;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Code, Error, Result};

/// The program that the user names.
#[derive(Debug)]
pub(crate) struct Ptxas(pub(crate) PathBuf);

impl Assembler for Ptxas {
    fn assemble(&self, ptx: &[u8], architecture: &str) -> Result<Vec<u8>> {
        let ptxas = self.0.display();
        let directory = tempfile::tempdir()
            .map_err(|e| Error::invalid(format!("cannot create a directory for the assembler: {e}")))?;
        let at = |name: &str| directory.path().join(name);
        let (source, output) = (at("kernels.ptx"), at("kernels.cubin"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn errors_have_the_output() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().expect("a directory");
        let fake = directory.path().join("ptxas");
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
