//! `TF_XLA_FLAGS`.

use support::{Error, Result};

/// `--tf_xla_auto_jit`: JIT levels for graphs on a single GPU and for all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AutoJit {
    /// Level for graphs whose nodes are on exactly one GPU; 0 leaves the choice to the session.
    pub single_gpu: i32,
    /// Level for all other graphs.
    pub general: i32,
}

/// Flags of TensorFlow's JIT that apply here, with TensorFlow's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the flags', without tf_xla_")]
pub struct Flags {
    pub auto_jit: AutoJit,
    pub min_cluster_size: i32,
    pub max_cluster_size: i32,
    pub ops_to_cluster: String,
    pub cluster_exclude_ops: String,
    pub clustering_debug: bool,
    pub cpu_global_jit: bool,
    pub clustering_fuel: i64,
    pub disable_deadness_safety_checks_for_debugging: bool,
    pub disable_resource_variable_safety_checks_for_debugging: bool,
    pub deterministic_cluster_names: bool,
    pub enable_lazy_compilation: bool,
    pub print_cluster_outputs: bool,
    pub check_cluster_input_numerics: bool,
    pub check_cluster_output_numerics: bool,
    pub disable_constant_folding: bool,
    pub compile_on_demand: bool,
    pub enable_xla_devices: bool,
    pub always_defer_compilation: bool,
    pub async_compilation: bool,
    pub persistent_cache_directory: String,
    pub persistent_cache_prefix: String,
    pub persistent_cache_read_only: bool,
    pub persistent_cache_device_types: String,
    pub disable_strict_signature_checks: bool,
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            auto_jit: AutoJit::default(),
            min_cluster_size: 4,
            max_cluster_size: i32::MAX,
            ops_to_cluster: String::new(),
            cluster_exclude_ops: String::new(),
            clustering_debug: false,
            cpu_global_jit: false,
            clustering_fuel: i64::MAX,
            disable_deadness_safety_checks_for_debugging: false,
            disable_resource_variable_safety_checks_for_debugging: false,
            deterministic_cluster_names: false,
            enable_lazy_compilation: true,
            print_cluster_outputs: false,
            check_cluster_input_numerics: false,
            check_cluster_output_numerics: false,
            disable_constant_folding: false,
            compile_on_demand: false,
            enable_xla_devices: false,
            always_defer_compilation: false,
            async_compilation: false,
            persistent_cache_directory: String::new(),
            persistent_cache_prefix: "xla_compile_cache".to_owned(),
            persistent_cache_read_only: false,
            persistent_cache_device_types: String::new(),
            disable_strict_signature_checks: false,
        }
    }
}

/// Flags that TensorFlow accepts in the same variable, but that concern other bridges,
/// accelerators, and runtimes. They are ignored.
const IGNORED: &[&str] = &[
    "tf_xla_sparse_core_disable_table_stacking",
    "tf_xla_sparse_core_minibatch_max_division_level",
    "tf_xla_sparse_core_stacking_mem_limit_bytes",
    "tf_xla_sparse_core_stacking_table_shard_limit_bytes",
    "tf_xla_disable_full_embedding_pipelining",
    "tf_xla_disable_full_embedding_pipelining_with_summaries",
    "tf_xla_embedding_parallel_iterations",
    "tf_xla_use_device_api_for_xla_launch",
    "tf_xla_use_device_api_for_compile_on_demand",
    "tf_xla_use_device_api_for_auto_jit",
    "tf_xla_use_device_api",
    "tf_xla_enable_device_api_for_gpu",
    "tf_xla_call_module_disabled_checks",
    "tf_mlir_enable_mlir_bridge",
    "tf_mlir_enable_merge_control_flow_pass",
    "tf_mlir_enable_convert_control_to_data_outputs_pass",
    "tf_mlir_composite_tpuexecute_side_effects",
    "tf_mlir_enable_strict_clusters",
    "tf_mlir_enable_multiple_local_cpu_devices",
    "tf_mlir_enable_debug_info_serialization",
    "tf_dump_graphs_in_tfg",
    "tf_mlir_enable_tpu_variable_runtime_reformatting_pass",
];

impl Flags {
    /// Applies one flag of `TF_XLA_FLAGS`, given its name without dashes and its value after `=`.
    /// Returns true if the flag is one of TensorFlow's JIT. Fails if the value is invalid.
    pub fn take(&mut self, name: &str, value: Option<&str>) -> Result<bool> {
        let is_known = self.take_switch(name, value)? || self.take_value(name, value)?;
        Ok(is_known || IGNORED.contains(&name))
    }

    /// Parses all flags of a text. `is_other` returns true for flags of other owners. A word that
    /// is not a flag, or an unknown flag, is an error that names it.
    pub fn parse(text: &str, mut is_other: impl FnMut(&str, Option<&str>) -> Result<bool>) -> Result<Self> {
        let mut flags = Self::default();
        for word in text.split_whitespace() {
            let flag = word.strip_prefix("--").or_else(|| word.strip_prefix('-')).ok_or_else(|| {
                Error::invalid(format!("invalid flag '{word}' in TF_XLA_FLAGS: flags begin with --"))
            })?;
            let (name, value) =
                flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
            if !flags.take(name, value)? && !is_other(name, value)? {
                return Err(Error::invalid(format!(
                    "Unknown flag in TF_XLA_FLAGS: --{name}; the flags that exist are those of TensorFlow 2.15's JIT \
                     (--tf_xla_auto_jit, --tf_xla_min_cluster_size, ...) and --xla_generate_hlo_graph"
                )));
            }
        }
        Ok(flags)
    }

    /// Flags that differ from their defaults, but have no effect here because there is only one
    /// kind of device.
    pub fn without_effect(&self) -> Vec<&'static str> {
        let flags = [
            ("tf_xla_disable_constant_folding", self.disable_constant_folding),
            ("tf_xla_compile_on_demand", self.compile_on_demand),
            ("tf_xla_enable_xla_devices", self.enable_xla_devices),
            ("tf_xla_persistent_cache_device_types", !self.persistent_cache_device_types.is_empty()),
            ("tf_xla_disable_strict_signature_checks", self.disable_strict_signature_checks),
        ];
        flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
    }

    fn take_switch(&mut self, name: &str, value: Option<&str>) -> Result<bool> {
        let Some(name) = name.strip_prefix("tf_xla_") else { return Ok(false) };
        let place = match name {
            "clustering_debug" => &mut self.clustering_debug,
            "cpu_global_jit" => &mut self.cpu_global_jit,
            "disable_deadness_safety_checks_for_debugging" => {
                &mut self.disable_deadness_safety_checks_for_debugging
            }
            "disable_resource_variable_safety_checks_for_debugging" => {
                &mut self.disable_resource_variable_safety_checks_for_debugging
            }
            "deterministic_cluster_names" => &mut self.deterministic_cluster_names,
            "enable_lazy_compilation" => &mut self.enable_lazy_compilation,
            "print_cluster_outputs" => &mut self.print_cluster_outputs,
            "check_cluster_input_numerics" => &mut self.check_cluster_input_numerics,
            "check_cluster_output_numerics" => &mut self.check_cluster_output_numerics,
            "disable_constant_folding" => &mut self.disable_constant_folding,
            "compile_on_demand" => &mut self.compile_on_demand,
            "enable_xla_devices" => &mut self.enable_xla_devices,
            "always_defer_compilation" => &mut self.always_defer_compilation,
            "async_compilation" => &mut self.async_compilation,
            "persistent_cache_read_only" => &mut self.persistent_cache_read_only,
            "disable_strict_signature_checks" => &mut self.disable_strict_signature_checks,
            _ => return Ok(false),
        };
        *place = match value {
            None | Some("true" | "1") => true,
            Some("false" | "0") => false,
            Some(other) => return Err(wrong(name, other, "true or false")),
        };
        Ok(true)
    }

    fn take_value(&mut self, name: &str, value: Option<&str>) -> Result<bool> {
        let Some(name) = name.strip_prefix("tf_xla_") else { return Ok(false) };
        let known = [
            "auto_jit",
            "min_cluster_size",
            "max_cluster_size",
            "clustering_fuel",
            "ops_to_cluster",
            "cluster_exclude_ops",
            "persistent_cache_directory",
            "persistent_cache_prefix",
            "persistent_cache_device_types",
        ];
        if !known.contains(&name) {
            return Ok(false);
        }
        let value = value.ok_or_else(|| {
            Error::invalid(format!("--tf_xla_{name} needs a value, --tf_xla_{name}=..., in TF_XLA_FLAGS"))
        })?;
        let number = || value.parse::<i64>().map_err(|_| wrong(name, value, "a whole number"));
        let small = || value.parse::<i32>().map_err(|_| wrong(name, value, "a whole number of 32 bits"));
        match name {
            "auto_jit" => self.take_auto_jit(value)?,
            "min_cluster_size" => self.min_cluster_size = small()?,
            "max_cluster_size" => self.max_cluster_size = small()?,
            "clustering_fuel" => self.clustering_fuel = number()?,
            "ops_to_cluster" => value.clone_into(&mut self.ops_to_cluster),
            "cluster_exclude_ops" => value.clone_into(&mut self.cluster_exclude_ops),
            "persistent_cache_directory" => value.clone_into(&mut self.persistent_cache_directory),
            "persistent_cache_prefix" => value.clone_into(&mut self.persistent_cache_prefix),
            _ => value.clone_into(&mut self.persistent_cache_device_types),
        }
        Ok(true)
    }

    fn take_auto_jit(&mut self, value: &str) -> Result<()> {
        let inner = value.strip_prefix("single-gpu(").and_then(|rest| rest.strip_suffix(')'));
        if let Ok(level) = value.parse() {
            self.auto_jit = AutoJit { single_gpu: level, general: level };
        } else if value == "fusible" {
            self.auto_jit = AutoJit { single_gpu: 1, general: 1 };
            "FUSIBLE".clone_into(&mut self.ops_to_cluster);
        } else if let Some(Ok(level)) = inner.map(str::parse) {
            self.auto_jit.single_gpu = level;
        } else {
            return Err(wrong("auto_jit", value, "a level (-1, 0, 1, 2), fusible or single-gpu(LEVEL)"));
        }
        Ok(())
    }
}

fn wrong(name: &str, value: &str, expected: &str) -> Error {
    Error::invalid(format!("--tf_xla_{name}={value} in TF_XLA_FLAGS: expected {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Flags> {
        Flags::parse(text, |name, _| Ok(name == "xla_generate_hlo_graph"))
    }

    #[test]
    fn an_empty_text_means_tensorflows_defaults() {
        let flags = parse("").expect("empty");
        assert_eq!(flags, Flags::default());
        assert!(flags.without_effect().is_empty());
        assert_eq!((flags.min_cluster_size, flags.max_cluster_size), (4, 2147483647));
        assert!(flags.enable_lazy_compilation && !flags.cpu_global_jit);
        assert_eq!(flags.persistent_cache_prefix, "xla_compile_cache");
    }

    #[test]
    fn levels_are_numbers_or_words() {
        let level = |value: &str| {
            parse(&format!("--tf_xla_auto_jit={value}")).map(|f| (f.auto_jit, f.ops_to_cluster))
        };
        let both = |level| AutoJit { single_gpu: level, general: level };
        assert_eq!(level("2"), Ok((both(2), String::new())));
        assert_eq!(level("-1"), Ok((both(-1), String::new())));
        assert_eq!(level("fusible"), Ok((both(1), "FUSIBLE".to_owned())));
        assert_eq!(level("single-gpu(2)"), Ok((AutoJit { single_gpu: 2, general: 0 }, String::new())));
        for wrong in ["on", "single-gpu()", "single-gpu(2", ""] {
            let error = level(wrong).expect_err("not a level");
            assert!(error.message().contains("a level"), "{error}");
        }
    }

    #[test]
    fn one_text_holds_flags_of_several_owners() {
        let flags = parse(
            "--tf_xla_cpu_global_jit --xla_generate_hlo_graph=.* --tf_xla_min_cluster_size=1 -tf_xla_clustering_debug=true \
             --tf_mlir_enable_mlir_bridge=false --tf_xla_enable_lazy_compilation=0 --tf_xla_compile_on_demand --tf_xla_async_compilation --tf_xla_clustering_fuel=7",
        )
        .expect("well-formed");
        assert!(flags.cpu_global_jit && flags.clustering_debug && !flags.enable_lazy_compilation);
        assert!(flags.async_compilation);
        assert_eq!(flags.without_effect(), ["tf_xla_compile_on_demand"]);
        assert_eq!((flags.min_cluster_size, flags.clustering_fuel), (1, 7));
    }

    #[test]
    fn unknown_and_invalid_flags_are_named() {
        for (text, expected) in [
            ("--tf_xla_min_cluster_sise=1", "--tf_xla_min_cluster_sise"),
            ("--tf_xla_min_cluster_size=few", "a whole number"),
            ("--tf_xla_max_cluster_size=99999999999", "a whole number of 32 bits"),
            ("--tf_xla_min_cluster_size", "needs a value"),
            ("--tf_xla_cpu_global_jit=perhaps", "true or false"),
            ("tf_xla_auto_jit=2", "invalid flag 'tf_xla_auto_jit=2'"),
        ] {
            let error = parse(text).expect_err("wrong");
            assert!(error.message().contains(expected), "{error}");
        }
    }
}
