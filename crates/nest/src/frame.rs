//! The layout of the entry's argument, `tfcompile_frame` of `tfcompile/frame.h`, on a machine.

/// Offsets of the fields in bytes. The integers of 64 bits stand where no platform pads, so that the size of an address
/// decides everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLayout {
    pointer_bytes: i64,
}

impl FrameLayout {
    /// The layout of C compilers for machines whose addresses have `pointer_bytes` bytes.
    pub const fn new(pointer_bytes: u32) -> Self {
        Self { pointer_bytes: pointer_bytes as i64 }
    }

    /// Bytes of an address, which is also its alignment.
    pub const fn pointer_bytes(self) -> i64 {
        self.pointer_bytes
    }

    /// The list of arguments' addresses.
    pub const fn args(self) -> i64 {
        16
    }

    /// The list of results' addresses.
    pub const fn results(self) -> i64 {
        self.args() + self.pointer_bytes
    }

    /// The address of the temporaries.
    pub const fn temps(self) -> i64 {
        self.results() + self.pointer_bytes
    }

    /// The address of the constants.
    pub const fn constants(self) -> i64 {
        self.temps() + self.pointer_bytes
    }

    /// The function that shares out parallel work, or null.
    pub const fn parallel_for(self) -> i64 {
        self.constants() + self.pointer_bytes
    }

    /// Its first argument.
    pub const fn context(self) -> i64 {
        self.parallel_for() + self.pointer_bytes
    }

    /// The number of workers, an `i64`.
    pub const fn max_workers(self) -> i64 {
        self.context() + self.pointer_bytes
    }

    /// The address of the workers' scratch.
    pub const fn scratch(self) -> i64 {
        self.max_workers() + 8
    }

    /// The address of the profile's counters.
    pub const fn profile_counters(self) -> i64 {
        self.scratch() + self.pointer_bytes
    }

    /// The address of a message, which the entry writes where it fails.
    pub const fn error(self) -> i64 {
        self.profile_counters() + self.pointer_bytes
    }

    /// The address of the true sizes of bounded results.
    pub const fn dynamic_sizes(self) -> i64 {
        self.error() + self.pointer_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use target::Target;

    /// As `offsetof` gives them with GCC for x86-64, and for ARM and x86 of 32 bits, which agree although the latter
    /// aligns an `int64_t` to 4 bytes.
    #[test]
    fn offsets_are_those_of_c() {
        let offsets = |triple: &str| {
            let layout = FrameLayout::new(Target::new(triple, "", "").expect("a triple").pointer_bytes);
            [
                layout.args(),
                layout.results(),
                layout.temps(),
                layout.constants(),
                layout.parallel_for(),
                layout.context(),
                layout.max_workers(),
                layout.scratch(),
                layout.error(),
            ]
        };
        assert_eq!(offsets("x86_64-unknown-linux-gnu"), [16, 24, 32, 40, 48, 56, 64, 72, 88]);
        assert_eq!(offsets("armv7-unknown-linux-gnueabihf"), [16, 20, 24, 28, 32, 36, 40, 48, 56]);
        assert_eq!(offsets("i686-unknown-linux-gnu"), [16, 20, 24, 28, 32, 36, 40, 48, 56]);
    }
}
