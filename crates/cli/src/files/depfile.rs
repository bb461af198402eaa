//! `build --depfile`: a rule for Make and Ninja that says which files a build has read.

use crate::files::outputs::Output;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use support::{Error, Result};

/// The rule: what was written depends on what was read. An error for a name that no rule can hold.
pub(crate) fn rule(outputs: &[Output<'_>], inputs: &BTreeSet<PathBuf>) -> Result<String> {
    let targets = outputs.iter().map(|output| escaped(&output.path)).collect::<Result<Vec<_>>>()?;
    let inputs = inputs.iter().map(|path| escaped(path)).collect::<Result<Vec<_>>>()?;
    Ok(format!("{}: \\\n  {}\n", targets.join(" "), inputs.join(" \\\n  ")))
}

/// A path as both tools read it.
fn escaped(path: &Path) -> Result<String> {
    let text = path.to_str().filter(|text| !text.contains(['\n', '\r']));
    let text = text.ok_or_else(|| {
        Error::invalid(format!("--depfile: no rule can hold the name {path:?}: use letters and digits"))
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
