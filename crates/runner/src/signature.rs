//! The arrays of a program as its user gives and sees them.

use hlo::{Argument, Interface, Program, Role};

/// An interface, and how large the integers of its arguments may be.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// The arguments and results.
    pub interface: Interface,
    /// For each argument the number that its integers must stay below to be indices or labels, where the program says it: see
    /// [`index_limits`](crate::index_limits).
    pub limits: Vec<Option<i64>>,
}

impl Signature {
    /// The signature of an imported program.
    pub fn of(program: &Program) -> Self {
        Self { interface: program.interface.clone(), limits: crate::index_limits(&program.module) }
    }

    /// The signature of an interface alone: integers may be of any size.
    pub fn unlimited(interface: Interface) -> Self {
        Self { limits: vec![None; interface.arguments().len()], interface }
    }

    /// The arguments.
    pub fn arguments(&self) -> &[Argument] {
        self.interface.arguments()
    }

    /// The position of the argument of a role that a text names.
    pub(crate) fn find(&self, role: Role, name: &str) -> Option<usize> {
        self.arguments().iter().position(|argument| argument.role == role && argument.is_called(name))
    }
}
