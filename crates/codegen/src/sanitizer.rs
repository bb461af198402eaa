//! Instrumentation of generated code, for tests of it.

/// What instrumented code finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sanitizer {
    /// Reads and writes outside of objects (AddressSanitizer).
    Address,
    /// Unordered accesses of two threads to the same memory (ThreadSanitizer).
    Thread,
}

impl Sanitizer {
    /// `address` or `thread`.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "address" => Some(Self::Address),
            "thread" => Some(Self::Thread),
            _ => None,
        }
    }

    /// LLVM's passes, to stand behind others.
    pub(crate) const fn passes(self) -> &'static str {
        match self {
            Self::Address => ",asan",
            Self::Thread => ",tsan-module,function(tsan)",
        }
    }

    /// The attribute of functions that these passes instrument.
    pub(crate) const fn attribute(self) -> &'static str {
        match self {
            Self::Address => "sanitize_address",
            Self::Thread => "sanitize_thread",
        }
    }

    /// Whether a symbol is its library's, or one that linkers define for it.
    pub(crate) fn brings(self, symbol: &str) -> bool {
        match self {
            Self::Address => {
                symbol.starts_with("__asan_")
                    || ["__start_asan_globals", "__stop_asan_globals"].contains(&symbol)
            }
            Self::Thread => symbol.starts_with("__tsan_"),
        }
    }
}
