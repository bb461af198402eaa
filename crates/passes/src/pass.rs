//! The interface of a pass.

use hlo::Module;
use support::Result;

/// Whether a pass changed the module.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// Not a bit.
    No,
    /// Something.
    Yes,
}

impl Changed {
    /// Yes if either is.
    pub fn or(self, other: Self) -> Self {
        if self == Self::Yes { self } else { other }
    }
}

impl From<bool> for Changed {
    fn from(changed: bool) -> Self {
        if changed { Self::Yes } else { Self::No }
    }
}

/// A rewrite of a whole module that keeps its meaning.
pub trait Pass {
    /// XLA's name where it has one, such as `algsimp`'s long form `algebraic-simplifier`.
    fn name(&self) -> &'static str;
    /// Rewrites the module. An error leaves it in any state.
    fn run(&self, module: &mut Module) -> Result<Changed>;
}
