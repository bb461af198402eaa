//! `build --depfile`: a rule for Make and Ninja that lists the files that a build reads.

use crate::files::outputs::Output;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use support::{Error, Result};

/// Rule in which the outputs depend on the inputs. An error for a name that a rule cannot contain.
pub(crate) fn rule(outputs: &[Output<'_>], inputs: &BTreeSet<PathBuf>) -> Result<String> {
    let targets = outputs.iter().map(|output| escaped(&output.path)).collect::<Result<Vec<_>>>()?;
    let inputs = inputs.iter().map(|path| escaped(path)).collect::<Result<Vec<_>>>()?;
    Ok(format!("{}: \\\n  {}\n", targets.join(" "), inputs.join(" \\\n  ")))
}

/// Escapes a path for both tools.
fn escaped(path: &Path) -> Result<String> {
    let text = path.to_str().filter(|text| !text.contains(['\n', '\r']));
    let text = text.ok_or_else(|| {
        Error::invalid(format!("--depfile: a rule cannot contain the name {path:?}: rename the file"))
    })?;
    let mut out = String::new();
    for c in text.chars() {
        match c {
            ' ' | '#' => out.extend(['\\', c]),
            '$' => out.push_str("$$"),
            _ => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[test]
    fn names_are_written_as_make_reads_them() {
        let output = Output { path: "out dir/a$b.o".into(), parts: vec![Cow::Borrowed(b"")] };
        let inputs = BTreeSet::from(["b#1.pb".into(), "a.pbtxt".into()]);
        let rule = rule(&[output], &inputs).expect("a rule");
        assert_eq!(rule, "out\\ dir/a$$b.o: \\\n  a.pbtxt \\\n  b\\#1.pb\n");
        let broken = BTreeSet::from(["a\nb".into()]);
        assert!(super::rule(&[], &broken).is_err());
    }
}
