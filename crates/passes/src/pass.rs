//! The interface of a pass.

use hlo::Module;
use std::ops::ControlFlow;
use support::Result;

/// Outcome of a pass.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The pass left the module unchanged.
    No,
    /// The pass changed the module.
    Yes,
}

impl Changed {
    /// `Yes` if either is.
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
    /// Name of the pass: XLA's if XLA has the same pass, in the long form, such as
    /// `algebraic-simplifier` for `algsimp`.
    fn name(&self) -> &'static str;
    /// Rewrites the module. After an error, the module may be in any state.
    fn run(&self, module: &mut Module) -> Result<Changed>;

    /// Runs the pass like [`Pass::run`], and calls `applied` with the name of each rule after its
    /// application. After a `Break`, the pass applies no further rule and leaves a valid module.
    /// A pass without named rules calls nothing.
    fn run_rules(
        &self,
        module: &mut Module,
        applied: &mut dyn FnMut(&'static str) -> ControlFlow<()>,
    ) -> Result<Changed> {
        let _ = applied;
        self.run(module)
    }
}
