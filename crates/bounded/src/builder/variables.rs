//! Variables: state that computations read and write, and that branches and loops carry.

use crate::builder::Builder;
use hlo::InstructionId;

support::id_type!(
    /// A variable. Who numbers them knows what they stand for.
    VariableId,
    "variable"
);

impl Builder {
    /// Gives a variable its first value, in a scope that is open.
    pub fn add_variable(&mut self, variable: VariableId, level: usize, value: InstructionId) {
        self.scopes[level].variables.insert(variable, value);
    }

    /// The current value of a variable: as the code before this point left it.
    pub fn variable_value(&mut self, variable: VariableId) -> InstructionId {
        self.read_variable_in(self.level(), variable)
    }

    /// The value of a variable that no scope but the entry has read or written.
    pub fn untouched_variable(&self, variable: VariableId) -> Option<InstructionId> {
        let known = self.scopes.iter().rposition(|scope| scope.variables.contains_key(&variable));
        if known == Some(0) { self.scopes[0].variables.get(&variable).copied() } else { None }
    }

    fn read_variable_in(&mut self, level: usize, variable: VariableId) -> InstructionId {
        if let Some(&id) = self.scopes[level].variables.get(&variable) {
            return id;
        }
        // The scope that a variable lives in knows it, so there is a level below.
        let outer = self.read_variable_in(level - 1, variable);
        let shape = self.scopes[level - 1].shape(outer).clone();
        let id = self.scopes[level].capture_variable(variable, outer, &shape);
        self.scopes[level].variables.insert(variable, id);
        id
    }

    /// Gives a variable a new value. Without a writer it lives in this scope, and nobody outside learns of it.
    pub fn set_variable(&mut self, variable: VariableId, value: InstructionId, writer: Option<&str>) {
        let scope = self.scope();
        scope.variables.insert(variable, value);
        if let Some(writer) = writer {
            scope.written.entry(variable).or_insert_with(|| writer.to_owned());
        }
    }
}
