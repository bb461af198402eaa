//! Words of the command line before `clap` sees them: the spellings of TensorFlow's flag library, and XLA's own flags.

use std::ffi::OsString;
use support::{Error, Result};

/// What XLA's flags ask for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct XlaFlags {
    /// Passes that shall not run.
    pub(crate) disabled_passes: Vec<String>,
    /// A line for each flag that is accepted and makes no difference.
    pub(crate) warnings: Vec<String>,
}

/// Switches that may be written `--noname`.
const SWITCHES: [&str; 7] = [
    "gen_name_to_index",
    "gen_program_shape",
    "dump_fetch_nodes",
    "experimental_quantize",
    "sanitize_dataflow",
    "use_xla_nanort_runtime",
    "input_binary",
];

/// Flags whose value may begin with a dash and be the next word: `--target-features -fma`.
const TAKES_DASHES: [&str; 2] = ["target-features", "target_features"];

/// Takes XLA's flags out of the words (and out of the value of `XLA_FLAGS`), and rewrites `-name` to `--name` and
/// `--noname` to `--name=false`.
pub(crate) fn split(words: Vec<OsString>, environment: Option<String>) -> Result<(Vec<OsString>, XlaFlags)> {
    let mut flags = XlaFlags::default();
    for word in environment.iter().flat_map(|value| value.split_whitespace()) {
        match word.strip_prefix("--").or_else(|| word.strip_prefix('-')) {
            Some(flag) => flags.take(flag, "in XLA_FLAGS"),
            None => {
                return Err(Error::invalid(format!(
                    "XLA_FLAGS holds '{word}', which is no flag: flags begin with --"
                )));
            }
        }
    }
    let mut rest = Vec::new();
    let mut is_value = false;
    for word in words {
        let text = word.to_str().filter(|_| !std::mem::take(&mut is_value));
        let Some(text) = text else {
            rest.push(word);
            continue;
        };
        is_value = text.starts_with('-') && TAKES_DASHES.contains(&text.trim_start_matches('-'));
        let flag = text.strip_prefix("--").or_else(|| text.strip_prefix('-')).filter(|f| f.len() > 1);
        match flag {
            Some(flag) if flag.starts_with("xla_") => flags.take(flag, "on the command line"),
            Some(flag) if flag.strip_prefix("no").is_some_and(|name| SWITCHES.contains(&name)) => {
                rest.push(format!("--{}=false", &flag[2..]).into());
            }
            Some(flag) if !text.starts_with("--") && is_long(flag) => rest.push(format!("--{flag}").into()),
            _ => rest.push(word),
        }
    }
    Ok((rest, flags))
}

/// Whether what follows a single dash is a long flag's name rather than a short flag and its value (`-j2`).
fn is_long(flag: &str) -> bool {
    flag.split('=')
        .next()
        .is_some_and(|name| name.len() > 1 && name.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
}

impl XlaFlags {
    fn take(&mut self, flag: &str, place: &str) {
        let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
        if name == "xla_disable_hlo_passes" {
            self.disabled_passes.extend(value.split(',').filter(|pass| !pass.is_empty()).map(str::to_owned));
        } else if name.contains("fast_math") || name.contains("fast_min_max") {
            self.warnings
                .push(format!("--{name} {place} is ignored: code is always IEEE here, and no slower for it"));
        } else {
            self.warnings.push(format!("--{name} {place} is accepted and makes no difference"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_words(words: &[&str], environment: Option<&str>) -> (Vec<String>, XlaFlags) {
        let words = words.iter().map(OsString::from).collect();
        let (rest, flags) = split(words, environment.map(str::to_owned)).expect("well-formed");
        (rest.into_iter().map(|w| w.into_string().expect("UTF-8")).collect(), flags)
    }

    #[test]
    fn spellings_of_the_flag_library_become_claps() {
        let (rest, _) =
            split_words(&["tool", "-graph=g", "--nogen_program_shape", "-j2", "-v", "-o", "dir"], None);
        assert_eq!(rest, ["tool", "--graph=g", "--gen_program_shape=false", "-j2", "-v", "-o", "dir"]);
    }

    #[test]
    fn values_stay_as_they_are() {
        let words = ["tool", "--target-features", "-fma", "-target_features", "-avx", "-graph=g"];
        let (rest, _) = split_words(&words, None);
        assert_eq!(rest, ["tool", "--target-features", "-fma", "--target_features", "-avx", "--graph=g"]);
    }

    #[test]
    fn xla_flags_come_from_both_places() {
        let (rest, flags) = split_words(
            &["tool", "--xla_disable_hlo_passes=fusion,cse"],
            Some("--xla_cpu_enable_fast_math=true"),
        );
        assert_eq!(rest, ["tool"]);
        assert_eq!(flags.disabled_passes, ["fusion", "cse"]);
        assert_eq!(flags.warnings.len(), 1);
        assert!(flags.warnings[0].contains("xla_cpu_enable_fast_math in XLA_FLAGS is ignored"));
    }

    #[test]
    fn what_is_no_flag_in_the_environment_is_an_error() {
        let error = split(Vec::new(), Some("rubbish".to_owned())).expect_err("no flag");
        assert!(error.message().contains("'rubbish'"));
    }
}
