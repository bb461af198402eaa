//! Preprocessing of the command line before `clap` sees it: the spellings of TensorFlow's flag
//! library, and XLA's own flags.

use crate::args::parse::regex;
use compiler::BackOptions;
use regex_lite::Regex;
use std::ffi::OsString;
use support::{Error, Result};

/// Settings from XLA's flags.
#[derive(Clone, Debug, Default)]
pub(crate) struct XlaFlags {
    /// Names of passes to skip.
    pub(crate) disabled_passes: Vec<String>,
    /// True if the code counts the time of each instruction.
    pub(crate) is_profiled: bool,
    /// Dumps of the compilation.
    pub(crate) dump: DumpFlags,
    /// Settings for clusters from `TF_XLA_FLAGS`.
    pub(crate) jit: cluster::Flags,
    /// Directory for the graphs of `--tf_xla_clustering_debug`.
    pub(crate) graphs_to: Option<String>,
    /// `TFCOMPILE_DEVICE_DRIVER`: the driver of a session's GPUs.
    pub(crate) device_driver: Option<String>,
    /// A warning for each flag that is accepted but has no effect.
    pub(crate) warnings: Vec<String>,
}

/// Values of the environment variables that hold flags; `None` if not set.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    /// `XLA_FLAGS`.
    pub(crate) xla_flags: Option<String>,
    /// `TF_XLA_FLAGS`.
    pub(crate) tf_xla_flags: Option<String>,
    /// `TF_DUMP_GRAPH_PREFIX`.
    pub(crate) dump_graph_prefix: Option<String>,
    /// `TFCOMPILE_DEVICE_DRIVER`.
    pub(crate) device_driver: Option<String>,
    /// `TF_CPP_MIN_VLOG_LEVEL`.
    pub(crate) vlog_level: Option<String>,
}

/// Log level at which XLA prints the text of modules.
const LEVEL_OF_TEXT: i64 = 3;

/// Flags that dump modules during a compilation.
#[derive(Clone, Debug, Default)]
pub(crate) struct DumpFlags {
    /// Directory of the files; `-` is standard output.
    to: Option<String>,
    /// Dump as text.
    pub(crate) as_text: bool,
    /// Dump as `.hlo.pb`.
    pub(crate) as_proto: bool,
    /// Dump as a graph for Graphviz.
    pub(crate) as_dot: bool,
    /// Dump as an HTML page.
    pub(crate) as_html: bool,
    /// Passes before and after which modules are dumped.
    pub(crate) pass_re: Option<Regex>,
    /// Modules to dump.
    pub(crate) module_re: Option<Regex>,
    /// Modules and computations whose graph is written to `graph_path`. This flag predates
    /// `--xla_dump_to`.
    pub(crate) generate_hlo_graph: Option<Regex>,
    /// Directory for the graphs of `generate_hlo_graph`.
    pub(crate) graph_path: Option<String>,
    /// True if modules are printed as text to standard error.
    pub(crate) log_text: bool,
}

impl DumpFlags {
    /// True if any flag asks for files.
    pub(crate) fn is_on(&self) -> bool {
        self.to.is_some() || self.has_format()
    }

    fn has_format(&self) -> bool {
        self.as_text || self.as_proto || self.as_dot || self.as_html
    }

    /// Directory for files, or `-` for standard output.
    pub(crate) fn directory(&self) -> &str {
        self.to.as_deref().unwrap_or("-")
    }

    /// Applies a flag. Returns true if it is a dump flag.
    fn take(&mut self, name: &str, value: Option<&str>) -> Result<bool> {
        let text = value.unwrap_or("");
        let switch = || switch(name, value);
        let given = || (!text.is_empty()).then(|| text.to_owned());
        let expression = || if text.is_empty() { Ok(None) } else { regex(name, text).map(Some) };
        match name {
            "xla_dump_to" => self.to = given(),
            "xla_dump_hlo_as_text" => self.as_text = switch()?,
            "xla_dump_hlo_as_proto" => self.as_proto = switch()?,
            "xla_dump_hlo_as_dot" => self.as_dot = switch()?,
            "xla_dump_hlo_as_html" => self.as_html = switch()?,
            "xla_dump_hlo_pass_re" => self.pass_re = expression()?,
            "xla_dump_hlo_module_re" => self.module_re = expression()?,
            "xla_generate_hlo_graph" => self.generate_hlo_graph = expression()?,
            "xla_hlo_graph_path" => self.graph_path = given(),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Defaults to text, as XLA does, if a directory or passes are named but no format.
    fn complete(&mut self) {
        let is_requested = self.to.is_some() || self.pass_re.is_some();
        self.as_text |= is_requested && !self.has_format();
    }
}

/// Parses the value of a Boolean flag, which is true if omitted.
fn switch(name: &str, value: Option<&str>) -> Result<bool> {
    match value {
        None | Some("true" | "1") => Ok(true),
        Some("false" | "0") => Ok(false),
        Some(other) => Err(Error::invalid(format!("--{name}={other}: expected true or false"))),
    }
}

/// Switches that may be written as `--noNAME`.
const SWITCHES: [&str; 7] = [
    "gen_name_to_index",
    "gen_program_shape",
    "dump_fetch_nodes",
    "experimental_quantize",
    "sanitize_dataflow",
    "use_xla_nanort_runtime",
    "input_binary",
];

/// Flags whose value may be a separate word that begins with a dash: `--target-features -fma`.
const TAKES_DASHES: [&str; 2] = ["target-features", "target_features"];

/// Extracts XLA's flags from the words and the environment, and rewrites `-name` to `--name` and
/// `--noname` to `--name=false`.
pub(crate) fn split(words: Vec<OsString>, environment: &Environment) -> Result<(Vec<OsString>, XlaFlags)> {
    let mut flags = XlaFlags::default();
    for word in environment.xla_flags.iter().flat_map(|value| value.split_whitespace()) {
        match word.strip_prefix("--").or_else(|| word.strip_prefix('-')) {
            Some(flag) => flags.take(flag, "in XLA_FLAGS")?,
            None => {
                return Err(Error::invalid(format!("unexpected '{word}' in XLA_FLAGS: flags begin with --")));
            }
        }
    }
    // Most of these flags concern clusters. They are checked even if no clusters are compiled.
    let text = environment.tf_xla_flags.as_deref().unwrap_or("");
    let dump = &mut flags.dump;
    flags.jit = cluster::Flags::parse(text, |name, value| dump.take(name, value))?;
    let ineffective = flags.jit.without_effect().into_iter();
    flags.warnings.extend(ineffective.map(|name| format!("--{name} in TF_XLA_FLAGS has no effect")));
    flags.device_driver = environment.device_driver.clone().filter(|name| !name.is_empty());
    flags.graphs_to = environment.dump_graph_prefix.clone().filter(|prefix| !prefix.is_empty());
    let level = environment.vlog_level.as_deref().and_then(|level| level.trim().parse::<i64>().ok());
    flags.dump.log_text = level.is_some_and(|level| level >= LEVEL_OF_TEXT);
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
            Some(flag) if flag.starts_with("xla_") => {
                flags.take(flag, "on the command line")?;
            }
            Some(flag) if flag.strip_prefix("no").is_some_and(|name| SWITCHES.contains(&name)) => {
                rest.push(format!("--{}=false", &flag[2..]).into());
            }
            Some(flag) if !text.starts_with("--") && is_long(flag) => rest.push(format!("--{flag}").into()),
            _ => rest.push(word),
        }
    }
    flags.dump.complete();
    Ok((rest, flags))
}

/// True if the text after a single dash is the name of a long flag rather than a short flag with
/// its value (`-j2`).
fn is_long(flag: &str) -> bool {
    flag.split('=')
        .next()
        .is_some_and(|name| name.len() > 1 && name.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
}

impl XlaFlags {
    /// Adds the settings of these flags to the options of code generation.
    pub(crate) fn options(&self, options: BackOptions) -> BackOptions {
        BackOptions {
            disabled_passes: self.disabled_passes.clone(),
            is_profiled: self.is_profiled,
            ..options
        }
    }

    /// Warns about flags without effect.
    pub(crate) fn warn(&self) {
        for warning in &self.warnings {
            // If standard error is closed, there is nowhere to report that.
            let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("warning: {warning}\n"));
        }
    }

    fn take(&mut self, flag: &str, place: &str) -> Result<()> {
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (flag, None),
        };
        if self.dump.take(name, value)? {
            return Ok(());
        }
        if name == "xla_hlo_profile" {
            self.is_profiled = switch(name, value)?;
            return Ok(());
        }
        let value = value.unwrap_or("");
        if name == "xla_disable_hlo_passes" {
            self.disabled_passes.extend(value.split(',').filter(|pass| !pass.is_empty()).map(str::to_owned));
        } else if name.contains("fast_math") || name.contains("fast_min_max") {
            self.warnings.push(format!(
                "--{name} {place} is ignored: generated code always follows IEEE 754, at no cost in speed"
            ));
        } else {
            self.warnings.push(format!("--{name} {place} has no effect"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_words(words: &[&str], environment: Option<&str>) -> (Vec<String>, XlaFlags) {
        let words = words.iter().map(OsString::from).collect();
        let environment = Environment { xla_flags: environment.map(str::to_owned), ..Environment::default() };
        let (rest, flags) = split(words, &environment).expect("well formed");
        (rest.into_iter().map(|w| w.into_string().expect("UTF-8")).collect(), flags)
    }

    #[test]
    fn spellings_of_the_flag_library_are_rewritten_for_clap() {
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
    fn a_malformed_environment_is_an_error() {
        let environment =
            |text: &str| Environment { xla_flags: Some(text.to_owned()), ..Environment::default() };
        let error = split(Vec::new(), &environment("rubbish")).expect_err("not a flag");
        assert!(error.message().contains("'rubbish'"));
        let error =
            split(Vec::new(), &environment("--xla_dump_hlo_as_text=perhaps")).expect_err("not a Boolean");
        assert!(error.message().contains("true or false"), "{error}");
        let error =
            split(Vec::new(), &environment("--xla_dump_hlo_pass_re=(")).expect_err("not an expression");
        assert!(error.message().contains("invalid regular expression"), "{error}");
    }

    #[test]
    fn a_dump_directory_implies_text_unless_a_format_is_named() {
        let (_, flags) = split_words(&["tool"], Some("--xla_dump_to=d"));
        assert!(flags.dump.is_on() && flags.dump.as_text);
        assert_eq!(flags.dump.directory(), "d");
        let (_, flags) = split_words(&["tool"], Some("--xla_dump_to=d --xla_dump_hlo_as_dot"));
        assert!(!flags.dump.as_text && flags.dump.as_dot);
        let (_, flags) = split_words(&["tool", "--xla_dump_hlo_as_proto=true"], None);
        assert_eq!((flags.dump.is_on(), flags.dump.directory()), (true, "-"));
        let (_, flags) = split_words(&["tool"], None);
        assert!(!flags.dump.is_on());
    }

    #[test]
    fn other_variables_hold_the_graph_flags_and_the_log_level() {
        let environment = Environment {
            tf_xla_flags: Some(
                "--tf_xla_auto_jit=2 --xla_generate_hlo_graph=.* --xla_hlo_graph_path=d".to_owned(),
            ),
            vlog_level: Some("3".to_owned()),
            ..Environment::default()
        };
        let (_, flags) = split(Vec::new(), &environment).expect("well formed");
        assert!(flags.dump.log_text && flags.dump.generate_hlo_graph.is_some());
        assert_eq!(flags.dump.graph_path.as_deref(), Some("d"));
        assert!(flags.warnings.is_empty());
        assert_eq!(flags.jit.auto_jit, cluster::AutoJit { single_gpu: 2, general: 2 });
        for (wrong, named) in [
            ("--tf_xla_auto_jot=2", "--tf_xla_auto_jot"),
            ("--tf_xla_min_cluster_size=some", "a whole number"),
            ("--xla_generate_hlo_graph=(", "invalid regular expression"),
        ] {
            let environment = Environment { tf_xla_flags: Some(wrong.to_owned()), ..Environment::default() };
            let error = split(Vec::new(), &environment).expect_err(wrong);
            assert!(error.message().contains(named), "{error}");
        }
        let low = Environment { vlog_level: Some("2".to_owned()), ..Environment::default() };
        assert!(!split(Vec::new(), &low).expect("well formed").1.dump.log_text);
    }
}
