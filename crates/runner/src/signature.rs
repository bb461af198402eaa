//! A program's arguments and results, as seen by its user.

use hlo::{Argument, Interface, Program, Role};

/// An interface, and limits for the integers of its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// The arguments and results.
    pub interface: Interface,
    /// For each argument, the exclusive upper limit of its integers if they are indices or labels;
    /// see [`index_limits`](crate::index_limits).
    pub limits: Vec<Option<i64>>,
}

impl Signature {
    /// Returns the signature of an imported program.
    pub fn of(program: &Program) -> Self {
        Self { interface: program.interface.clone(), limits: crate::index_limits(&program.module) }
    }

    /// Returns the signature of an interface alone, without limits for integers.
    pub fn unlimited(interface: Interface) -> Self {
        Self { limits: vec![None; interface.arguments().len()], interface }
    }

    /// Returns the arguments.
    pub fn arguments(&self) -> &[Argument] {
        self.interface.arguments()
    }

    /// Returns the position of the argument with the given role and name.
    pub(crate) fn find(&self, role: Role, name: &str) -> Option<usize> {
        self.arguments().iter().position(|argument| argument.role == role && argument.is_called(name))
    }
}
