//! Instrumentation of generated code for tests.

/// Kind of defects that the instrumented code detects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sanitizer {
    /// Accesses outside of objects (AddressSanitizer).
    Address,
    /// Unsynchronized accesses of two threads to the same memory (ThreadSanitizer).
    Thread,
}

impl Sanitizer {
    /// Parses `address` or `thread`.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "address" => Some(Self::Address),
            "thread" => Some(Self::Thread),
            _ => None,
        }
    }

    /// LLVM's passes, to be appended to others.
    pub(crate) const fn passes(self) -> &'static str {
        match self {
            Self::Address => ",asan",
            Self::Thread => ",tsan-module,function(tsan)",
        }
    }

    /// Attribute of functions that these passes instrument.
    pub(crate) const fn attribute(self) -> &'static str {
        match self {
            Self::Address => "sanitize_address",
            Self::Thread => "sanitize_thread",
        }
    }

    /// True if a symbol belongs to the sanitizer's library, or linkers define it for that library.
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
