//! Variables: state that computations read and write, and that branches and loops carry.

use crate::builder::Builder;
use hlo::InstructionId;

support::id_type!(
    /// A variable. The code that assigns the numbers defines their meaning.
    VariableId,
    "variable"
);

impl Builder {
    /// Assigns the first value to a variable, in an open scope.
    pub fn add_variable(&mut self, variable: VariableId, level: usize, value: InstructionId) {
        self.scopes[level].variables.insert(variable, value);
    }

    /// Returns the current value of a variable.
    pub fn variable_value(&mut self, variable: VariableId) -> InstructionId {
        self.read_variable_in(self.level(), variable)
    }

    /// Returns the value of a variable that only the entry has read or written.
    pub fn untouched_variable(&self, variable: VariableId) -> Option<InstructionId> {
        let known = self.scopes.iter().rposition(|scope| scope.variables.contains_key(&variable));
        if known == Some(0) { self.scopes[0].variables.get(&variable).copied() } else { None }
    }

    fn read_variable_in(&mut self, level: usize, variable: VariableId) -> InstructionId {
        if let Some(&id) = self.scopes[level].variables.get(&variable) {
            return id;
        }
        // The scope that a variable lives in has its value, so there is a level below this one.
        let outer = self.read_variable_in(level - 1, variable);
        let shape = self.scopes[level - 1].shape(outer).clone();
        let id = self.scopes[level].capture_variable(variable, outer, &shape);
        self.scopes[level].variables.insert(variable, id);
        id
    }

    /// Assigns a value to a variable. Without a writer, the variable lives in this scope and the
    /// assignment is not visible outside.
    pub fn set_variable(&mut self, variable: VariableId, value: InstructionId, writer: Option<&str>) {
        let scope = self.scope();
        scope.variables.insert(variable, value);
        if let Some(writer) = writer {
            scope.written.entry(variable).or_insert_with(|| writer.to_owned());
        }
    }
}
