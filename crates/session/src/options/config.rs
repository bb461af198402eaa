//! Session options from TensorFlow's `ConfigProto`.

use crate::gpu::GpuOptions;
use crate::options::Options;
use cluster::{Flags, JitLevel};
use std::time::Duration;
use support::{Error, Result};
use tf::proto::{ConfigProto, GpuOptions as GpuOptionsProto, OptimizerOptions};

/// Maximum number of host devices; a larger number is rejected as a mistake.
const MAX_DEVICES: i32 = 1024;

impl Options {
    /// Returns the options updated with a config: threads, devices, soft placement, and time limit.
    /// [`cluster_options`] handles the JIT level.
    pub fn with_config(mut self, config: &ConfigProto) -> Result<Self> {
        let threads = |name: &str, count: i32, default: usize| match count {
            0 => Ok(default),
            1.. => Ok(count as usize),
            // TensorFlow's value for running everything on the caller's thread.
            -1 => Ok(1),
            _ => Err(Error::invalid(format!(
                "{name}: invalid number of threads {count}; omit it, or set it to 1 or more"
            ))),
        };
        self.inter_op_threads = threads(
            "inter_op_parallelism_threads",
            config.inter_op_parallelism_threads,
            self.inter_op_threads,
        )?;
        self.intra_op_threads = threads(
            "intra_op_parallelism_threads",
            config.intra_op_parallelism_threads,
            self.intra_op_threads,
        )?;
        if let Some(&count) = config.device_count.get("CPU") {
            if !(1..=MAX_DEVICES).contains(&count) {
                return Err(Error::invalid(format!(
                    "device_count: expected 1 to {MAX_DEVICES} CPU devices, got {count}"
                )));
            }
            self.cpu_devices = count as usize;
        }
        self.allow_soft_placement |= config.allow_soft_placement;
        self.logs_placement |= config.log_device_placement;
        if let Some(&count) = config.device_count.get("GPU") {
            let count = usize::try_from(count).map_err(|_| {
                Error::invalid(format!("device_count: invalid number of GPU devices {count}"))
            })?;
            self.gpu.limit = Some(count);
        }
        if let Some(gpu) = &config.gpu_options {
            self.gpu = gpu_options(gpu, self.gpu)?;
        }
        match u64::try_from(config.operation_timeout_in_ms) {
            Ok(0) => {}
            Ok(milliseconds) => self.step_timeout = Some(Duration::from_millis(milliseconds)),
            Err(_) => {
                return Err(Error::invalid(format!(
                    "operation_timeout_in_ms: invalid timeout {}; omit it, or set it to 1 or more",
                    config.operation_timeout_in_ms
                )));
            }
        }
        Ok(self)
    }
}

/// Returns the options updated with those of a config.
fn gpu_options(config: &GpuOptionsProto, options: GpuOptions) -> Result<GpuOptions> {
    let fraction = config.per_process_gpu_memory_fraction;
    if !(0.0..=1.0).contains(&fraction) {
        return Err(Error::invalid(format!(
            "per_process_gpu_memory_fraction: expected a number from 0 to 1, got {fraction}"
        )));
    }
    let list = config.visible_device_list.trim();
    let numbers = list.split(',').map(|number| {
        number.trim().parse::<usize>().map_err(|_| {
            Error::invalid(format!("visible_device_list: expected numbers such as '0,1', got '{list}'"))
        })
    });
    let visible = if list.is_empty() { options.visible } else { Some(numbers.collect::<Result<_>>()?) };
    Ok(GpuOptions {
        allow_growth: options.allow_growth || config.allow_growth,
        memory_fraction: if fraction > 0.0 { fraction } else { options.memory_fraction },
        visible,
        ..options
    })
}

/// The JIT level that a config sets.
pub fn jit_level(config: &ConfigProto) -> JitLevel {
    JitLevel::from_number(optimizer_options(config).map_or(0, |options| options.global_jit_level))
}

fn optimizer_options(config: &ConfigProto) -> Option<&OptimizerOptions> {
    config.graph_options.as_ref()?.optimizer_options.as_ref()
}

/// Options for [`clusters`](crate::clusters), from the caller's level if given, otherwise from a
/// config. A caller's level applies to this machine, which is a CPU. A config's level has
/// TensorFlow's meaning: it applies to CPUs only if `cpu_global_jit` of the config or of the flags
/// is set. The flag `--tf_xla_auto_jit` takes precedence over both.
pub fn cluster_options(level: Option<JitLevel>, config: &ConfigProto, flags: Flags) -> cluster::Options {
    let is_requested = level.is_some_and(|level| level > JitLevel::Off);
    let flags = Flags { cpu_global_jit: flags.cpu_global_jit || is_requested, ..flags };
    let level = level.unwrap_or_else(|| jit_level(config));
    let cpu_global_jit = optimizer_options(config).is_some_and(|options| options.cpu_global_jit);
    cluster::Options { cpu_global_jit, ..cluster::Options::new(level, flags) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_is_read_as_text_and_binary() {
        let text = "device_count { key: 'CPU' value: 2 } inter_op_parallelism_threads: 3 allow_soft_placement: true \
                    gpu_options { allow_growth: true } \
                    graph_options { optimizer_options { global_jit_level: ON_1 } }";
        let config = tf::source::parse_session_config(text.into(), "c.pbtxt").expect("text");
        let options = Options::default().with_config(&config).expect("valid");
        assert_eq!((options.cpu_devices, options.inter_op_threads, options.intra_op_threads), (2, 3, 1));
        assert!(options.allow_soft_placement);
        assert_eq!(jit_level(&config), JitLevel::On1);
        // graph_options (10) { optimizer_options (3) { global_jit_level (5): -1 } },
        // device_count (1) { "CPU" -> 0 }
        let binary =
            b"\x52\x0d\x1a\x0b\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x0a\x07\x0a\x03CPU\x10\x00";
        let config = tf::source::parse_session_config(binary.as_slice().into(), "c.pb").expect("binary");
        assert_eq!(jit_level(&config), JitLevel::Off);
        let error = Options::default().with_config(&config).expect_err("no devices");
        assert!(error.to_string().contains("CPU devices, got 0"), "{error}");
    }
    #[test]
    fn the_callers_level_overrides_the_configs_and_applies_to_cpus() {
        let config = |text: &str| {
            let text = format!("graph_options {{ optimizer_options {{ {text} }} }}");
            tf::source::parse_session_config(text.into(), "c.pbtxt").expect("text")
        };
        let effective = |level, config: &ConfigProto| {
            let options = cluster_options(level, config, Flags::default());
            (options.level, options.flags.cpu_global_jit || options.cpu_global_jit)
        };
        assert_eq!(effective(None, &ConfigProto::default()), (JitLevel::Default, false));
        assert_eq!(effective(None, &config("global_jit_level: ON_2")), (JitLevel::On2, false));
        assert_eq!(
            effective(None, &config("global_jit_level: ON_1 cpu_global_jit: true")),
            (JitLevel::On1, true)
        );
        assert_eq!(effective(Some(JitLevel::On2), &config("global_jit_level: ON_1")), (JitLevel::On2, true));
        assert_eq!(effective(Some(JitLevel::Off), &ConfigProto::default()), (JitLevel::Off, false));
        let flags = Flags { cpu_global_jit: true, ..Flags::default() };
        assert!(cluster_options(None, &config("global_jit_level: ON_1"), flags).flags.cpu_global_jit);
    }
}
