//! What TensorFlow's `ConfigProto` says of a session.

use crate::options::Options;
use support::{Error, Result};
use tf::proto::ConfigProto;

/// More devices of the host than this are a mistake.
const MAX_DEVICES: i32 = 1024;

impl Options {
    /// The same with what a config states: threads, devices, soft placement. The level of just-in-time compilation is whoever
    /// clusters graphs' to read; see [`jit_level`].
    pub fn with_config(mut self, config: &ConfigProto) -> Result<Self> {
        let threads = |name: &str, count: i32, default: usize| match count {
            0 => Ok(default),
            1.. => Ok(count as usize),
            // TensorFlow's word for running all in the caller's thread.
            -1 => Ok(1),
            _ => Err(Error::invalid(format!("{name}: {count} threads; leave it out, or give 1 or more"))),
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
                    "device_count: {count} devices CPU; 1 to {MAX_DEVICES} can be had"
                )));
            }
            self.cpu_devices = count as usize;
        }
        self.allow_soft_placement |= config.allow_soft_placement;
        Ok(self)
    }
}

/// The level of just-in-time compilation that a config states: -1 is off, 0 says nothing, 1 and 2 are the levels.
pub fn jit_level(config: &ConfigProto) -> i32 {
    let options = config.graph_options.as_ref().and_then(|options| options.optimizer_options.as_ref());
    options.map_or(0, |options| options.global_jit_level)
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
        assert_eq!(jit_level(&config), 1);
        // graph_options (10) { optimizer_options (3) { global_jit_level (5): -1 } }, device_count (1) { "CPU" -> 0 }
        let binary =
            b"\x52\x0d\x1a\x0b\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x0a\x07\x0a\x03CPU\x10\x00";
        let config = tf::source::parse_session_config(binary.as_slice().into(), "c.pb").expect("binary");
        assert_eq!(jit_level(&config), -1);
        let error = Options::default().with_config(&config).expect_err("no devices");
        assert!(error.to_string().contains("0 devices CPU"), "{error}");
    }
}
