//! Machine-dependent layout of the entry's argument, `tfcompile_frame` in `tfcompile/frame.h`.

/// Offsets of the fields in bytes. The 64-bit integers are at places where no platform inserts
/// padding, so the size of an address determines the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLayout {
    pointer_bytes: i64,
}

impl FrameLayout {
    /// Returns the layout of C compilers for machines whose addresses have `pointer_bytes` bytes.
    pub const fn new(pointer_bytes: u32) -> Self {
        Self { pointer_bytes: pointer_bytes as i64 }
    }

    /// Returns the size of an address in bytes, which is also its alignment.
    pub const fn pointer_bytes(self) -> i64 {
        self.pointer_bytes
    }

    /// Offset of the list of the arguments' addresses.
    pub const fn args(self) -> i64 {
        16
    }

    /// Offset of the list of the results' addresses.
    pub const fn results(self) -> i64 {
        self.args() + self.pointer_bytes
    }

    /// Offset of the address of the temporaries.
    pub const fn temps(self) -> i64 {
        self.results() + self.pointer_bytes
    }

    /// Offset of the address of the constants.
    pub const fn constants(self) -> i64 {
        self.temps() + self.pointer_bytes
    }

    /// Offset of the function that runs parallel work, or null.
    pub const fn parallel_for(self) -> i64 {
        self.constants() + self.pointer_bytes
    }

    /// Offset of its first argument.
    pub const fn context(self) -> i64 {
        self.parallel_for() + self.pointer_bytes
    }

    /// Offset of the number of workers, an `i64`.
    pub const fn max_workers(self) -> i64 {
        self.context() + self.pointer_bytes
    }

    /// Offset of the address of the workers' scratch.
    pub const fn scratch(self) -> i64 {
        self.max_workers() + 8
    }

    /// Offset of the address of the profile's counters.
    pub const fn profile_counters(self) -> i64 {
        self.scratch() + self.pointer_bytes
    }

    /// Offset of the address of an error message, which the entry stores when it fails.
    pub const fn error(self) -> i64 {
        self.profile_counters() + self.pointer_bytes
    }

    /// Offset of the address of the actual sizes of bounded results.
    pub const fn dynamic_sizes(self) -> i64 {
        self.error() + self.pointer_bytes
    }

    /// Offset of the address of the instance on a device.
    pub const fn device(self) -> i64 {
        self.dynamic_sizes() + self.pointer_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use target::Target;

    /// Values of `offsetof` with GCC for x86-64, and for 32-bit ARM and x86. The latter two agree,
    /// although x86 aligns an `int64_t` to 4 bytes.
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
