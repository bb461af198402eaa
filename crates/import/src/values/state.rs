//! The state of an import: the HLO under construction, and the objects that handles on edges refer
//! to.

use crate::values::collected::Collected;
use crate::values::lessons::Lessons;
use crate::values::list::List;
use crate::values::stack::Stack;
use crate::values::tensor_array::TensorArray;
use crate::values::value::{ListId, StackId, TensorArrayId, Value};
use bounded::{Builder, Checkpoint, VariableId};
use hlo::{InstructionId, Module, Op};
use shape::Literal;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::{Deref, DerefMut, Index, IndexMut};
use support::{Id, IdVec};
use tf::{Program, VariableState};

/// The program as imported so far. It dereferences to the [`Builder`].
pub(crate) struct State<'p> {
    program: &'p Program,
    builder: Builder,
    /// The tensor lists. Their instructions belong to the computation in which the list was
    /// created.
    lists: IdVec<ListId, List>,
    stacks: IdVec<StackId, Stack>,
    tensor_arrays: IdVec<TensorArrayId, TensorArray>,
    /// Tensor arrays whose handles were popped from a stack, by the level of the scope and the
    /// array pushed.
    earlier_arrays: BTreeMap<(usize, TensorArrayId), TensorArrayId>,
    /// Variables that hold the state of stacks and tensor arrays. They follow those of the config.
    locals: Vec<Local>,
    /// Lessons from earlier imports of the program.
    lessons: Lessons,
    /// Number of random number generators so far. Each gets a stream of its own.
    random_streams: u64,
    /// Inputs whose value a rule asked for and did not get: node and position.
    requested_constants: BTreeSet<(String, usize)>,
    /// Placeholders in the entry for variables without a value.
    unset: BTreeMap<VariableId, InstructionId>,
    /// The first variable that was read before it had a value.
    read_unset: Option<VariableId>,
    /// The problems, if they are being collected.
    collected: Collected,
    mode: Mode,
}

/// The current mode of translation.
#[derive(Clone, Copy, Debug, Default)]
struct Mode {
    /// True if problems are collected instead of returned at the first.
    is_collecting: bool,
    /// True while a loop's state is analyzed before the loop is translated.
    is_analysis: bool,
}

/// A variable that is not part of the program.
#[derive(Debug)]
struct Local {
    /// The node that created it.
    node: String,
    /// Level of the scope that it lives in, counted from the entry.
    level: usize,
}

/// The state at the beginning of a trial. Lists and local variables are not restored: after a
/// rollback, nothing refers to new ones.
pub(crate) struct Snapshot {
    builder: Checkpoint,
    random_streams: u64,
    stacks: IdVec<StackId, Stack>,
    tensor_arrays: IdVec<TensorArrayId, TensorArray>,
    mode: Mode,
}

impl<'p> State<'p> {
    /// Creates a state with an empty entry.
    pub(crate) fn new(program: &'p Program, lessons: Lessons) -> Self {
        Self {
            program,
            builder: Builder::new(Module::new("tfcompile")),
            lists: IdVec::new(),
            stacks: IdVec::new(),
            tensor_arrays: IdVec::new(),
            earlier_arrays: BTreeMap::new(),
            locals: Vec::new(),
            lessons,
            random_streams: 0,
            requested_constants: BTreeSet::new(),
            unset: BTreeMap::new(),
            read_unset: None,
            collected: Collected::default(),
            mode: Mode::default(),
        }
    }

    /// The program being imported.
    pub(crate) fn program(&self) -> &'p Program {
        self.program
    }

    /// Returns the number of rows for which a rule chooses a form. All forms compute the same.
    pub(crate) fn form_rows(&self, rows: i64) -> i64 {
        self.program.form_rows.unwrap_or(rows)
    }

    /// True if the program computes a piece of a batch, so that no row may depend on its number.
    pub(crate) fn is_piece(&self) -> bool {
        self.program.form_rows.is_some()
    }

    /// Returns the module, with a tuple of these elements as the entry's result.
    pub(crate) fn finish(&mut self, elements: &[InstructionId]) -> Module {
        std::mem::replace(&mut self.builder, Builder::new(Module::new(""))).finish(elements)
    }

    /// Returns a snapshot of the state for a trial.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot {
            builder: self.builder.checkpoint(),
            random_streams: self.random_streams,
            stacks: self.stacks.clone(),
            tensor_arrays: self.tensor_arrays.clone(),
            mode: self.mode,
        }
    }

    /// Ends the trial of a snapshot, and rolls back to it unless the result is kept.
    pub(crate) fn end_trial(&mut self, snapshot: Snapshot, is_kept: bool) {
        self.mode = snapshot.mode;
        if is_kept {
            return;
        }
        self.builder.roll_back(&snapshot.builder);
        self.random_streams = snapshot.random_streams;
        self.stacks = snapshot.stacks;
        self.tensor_arrays = snapshot.tensor_arrays;
    }

    /// Collects problems from here on.
    pub(crate) fn collect_problems(&mut self) {
        self.mode.is_collecting = true;
    }

    /// Returns problems instead of collecting them, until the current trial ends.
    pub(crate) fn return_problems(&mut self) {
        self.mode.is_collecting = false;
    }

    /// The problems so far, if they are being collected.
    pub(crate) fn collected(&mut self) -> Option<&mut Collected> {
        self.mode.is_collecting.then_some(&mut self.collected)
    }

    /// True if problems are collected instead of returned at the first.
    pub(crate) fn is_collecting(&self) -> bool {
        self.mode.is_collecting
    }

    /// Takes all collected problems.
    pub(crate) fn take_collected(&mut self) -> Collected {
        std::mem::take(&mut self.collected)
    }

    /// Begins the analysis of a loop's state, which lasts until the current trial ends.
    pub(crate) fn begin_analysis(&mut self) {
        self.mode = Mode { is_collecting: false, is_analysis: true };
    }

    /// True while a loop's state is analyzed before the loop is translated.
    pub(crate) fn is_analysis(&self) -> bool {
        self.mode.is_analysis
    }

    /// Returns the lessons learned so far.
    pub(crate) fn lessons(&self) -> &Lessons {
        &self.lessons
    }

    /// The lessons so far, to be extended.
    pub(crate) fn lessons_mut(&mut self) -> &mut Lessons {
        &mut self.lessons
    }

    /// Allocates the number of a random stream.
    pub(crate) fn next_random_stream(&mut self) -> u64 {
        self.random_streams += 1;
        self.random_streams - 1
    }

    /// Records that a rule asked for the value of a node's input.
    pub(crate) fn request_constant(&mut self, node: &str, input: usize) {
        self.requested_constants.insert((node.to_owned(), input));
    }

    /// Takes the inputs whose values rules asked for and did not get.
    pub(crate) fn take_requested_constants(&mut self) -> BTreeSet<(String, usize)> {
        std::mem::take(&mut self.requested_constants)
    }

    /// Adds a list.
    pub(crate) fn add_list(&mut self, list: List) -> ListId {
        self.lists.push(list)
    }

    /// Adds a stack.
    pub(crate) fn add_stack(&mut self, stack: Stack) -> StackId {
        self.stacks.push(stack)
    }

    /// Adds a tensor array.
    pub(crate) fn add_tensor_array(&mut self, array: TensorArray) -> TensorArrayId {
        self.tensor_arrays.push(array)
    }

    /// Returns the tensor array of an earlier iteration, for a handle of this array that was popped
    /// from a stack in this scope.
    pub(crate) fn earlier_array(&mut self, array: TensorArrayId) -> TensorArrayId {
        let level = self.level();
        if let Some(&earlier) = self.earlier_arrays.get(&(level, array)) {
            return earlier;
        }
        let earlier = self[array].of_earlier_iteration(level);
        let earlier = self.tensor_arrays.push(earlier);
        self.earlier_arrays.insert((level, array), earlier);
        earlier
    }

    /// Forgets the handles that were popped in the scope of a level, which is closed.
    pub(crate) fn forget_earlier_arrays(&mut self, level: usize) {
        self.earlier_arrays.retain(|&(at, _), _| at < level);
    }

    /// Maximum number of pushes so far, for each stack.
    pub(crate) fn pushes(&self) -> Vec<i64> {
        self.stacks.values().map(|stack| stack.pushes).collect()
    }

    /// Restores earlier numbers of pushes. Stacks created since then keep theirs.
    pub(crate) fn set_pushes(&mut self, pushes: &[i64]) {
        for (k, stack) in self.stacks.values_mut().enumerate() {
            if let Some(&pushes) = pushes.get(k) {
                stack.pushes = pushes;
            }
        }
    }

    /// The larger of the numbers of pushes so far and `others`, for each stack.
    pub(crate) fn most_pushes(&self, others: &[i64]) -> Vec<i64> {
        let most = |(k, pushes): (usize, i64)| others.get(k).map_or(pushes, |&other| other.max(pushes));
        self.pushes().into_iter().enumerate().map(most).collect()
    }

    /// The shapes of the elements of tensor arrays, as far as they are known.
    pub(crate) fn element_shapes(&self) -> Vec<Option<Vec<i64>>> {
        self.tensor_arrays.values().map(|array| array.element.clone()).collect()
    }

    /// Adopts such shapes where none were known.
    pub(crate) fn learn_element_shapes(&mut self, learned: Vec<Option<Vec<i64>>>) {
        for (array, learned) in self.tensor_arrays.values_mut().zip(learned) {
            array.element = array.element.take().or(learned);
        }
    }
}

impl State<'_> {
    /// The name of a variable in messages.
    pub(crate) fn variable_name(&self, variable: VariableId) -> &str {
        match self.program.variables.get(variable.index()) {
            Some(variable) => &variable.node_name,
            None => &self.locals[variable.index() - self.program.variables.len()].node,
        }
    }

    /// Creates a local variable of a node, with a value in an open scope.
    pub(crate) fn new_local(&mut self, node: &str, level: usize, value: InstructionId) -> VariableId {
        self.locals.push(Local { node: node.to_owned(), level });
        let variable = VariableId::from_index(self.program.variables.len() + self.locals.len() - 1);
        self.add_variable(variable, level, value);
        variable
    }

    /// Level of the scope that a variable lives in. Variables of the config live in the entry.
    pub(crate) fn variable_level(&self, variable: VariableId) -> usize {
        let local = variable.index().checked_sub(self.program.variables.len());
        local.map_or(0, |local| self.locals[local].level)
    }

    /// Declares that a variable of the config has no value. A placeholder represents it in the
    /// entry.
    pub(crate) fn add_unset_variable(&mut self, variable: VariableId) {
        let nothing = self.literal(Literal::scalar(false));
        self.add_variable(variable, 0, nothing);
        self.unset.insert(variable, nothing);
    }

    /// The first variable that was read before it had a value.
    pub(crate) fn read_unset(&self) -> Option<VariableId> {
        self.read_unset
    }

    /// Returns the current value of a variable.
    pub(crate) fn read_variable(&mut self, variable: VariableId) -> InstructionId {
        if self.is_unset(variable) {
            self.read_unset.get_or_insert(variable);
        }
        self.variable_value(variable)
    }

    /// Returns the value itself, or the current value of the variable that it refers to.
    pub(crate) fn dereferenced(&mut self, value: Value) -> Value {
        match value {
            Value::Reference(variable) => Value::Array(self.read_variable(variable)),
            value => value,
        }
    }

    /// True if a variable has no value at this point.
    pub(crate) fn is_unset(&self, variable: VariableId) -> bool {
        self.unset.get(&variable).is_some_and(|&nothing| self.untouched_variable(variable) == Some(nothing))
    }

    /// True if a variable's shape never changes.
    pub(crate) fn keeps_shape(&self, variable: VariableId) -> bool {
        let variable = self.program.variables.get(variable.index());
        variable.is_none_or(|variable| variable.state == VariableState::InPlace)
    }

    /// Assigns a new value to a variable.
    pub(crate) fn write_variable(&mut self, variable: VariableId, value: InstructionId, writer: &str) {
        let is_local =
            variable.index() >= self.program.variables.len() && self.variable_level(variable) == self.level();
        self.set_variable(variable, value, (!is_local).then_some(writer));
    }

    /// Describes the feeds, variables, and random numbers that an instruction depends on.
    pub(crate) fn origins(&self, id: InstructionId) -> Vec<String> {
        self.origin_set(id).iter().map(Origin::to_string).collect()
    }

    /// Returns the node of the feed that an instruction depends on, if it depends on nothing else.
    pub(crate) fn only_feed(&self, id: InstructionId) -> Option<String> {
        let mut origins = self.origin_set(id).into_iter();
        match (origins.next(), origins.next()) {
            (Some(Origin::Feed(node, 0)), None) => Some(node),
            _ => None,
        }
    }

    fn origin_set(&self, id: InstructionId) -> BTreeSet<Origin> {
        let mut origins = BTreeSet::new();
        for (level, id) in self.dependencies(id) {
            let scope = self.scope_at(level);
            let instruction = &scope.computation()[id];
            match (instruction.op(), scope.captures()) {
                (Op::Parameter { number }, None) => origins.insert(self.parameter_origin(*number)),
                (Op::RngGetAndUpdateState { .. }, _) => {
                    origins.insert(Origin::Random(instruction.metadata().op_name.clone()))
                }
                _ => false,
            };
        }
        origins
    }

    /// Names a parameter of the entry: feeds come first, then sizes and variables.
    fn parameter_origin(&self, number: usize) -> Origin {
        let tf::Program { feeds, dimensions, variables, .. } = self.program;
        if let Some(feed) = feeds.get(number) {
            return Origin::Feed(feed.id.0.clone(), feed.id.1);
        }
        let number = number - feeds.len();
        if let Some(dimension) = dimensions.get(number) {
            return Origin::Size(dimension.name.clone());
        }
        let mut initialized =
            variables.iter().filter(|variable| variable.state != VariableState::Uninitialized);
        let variable = initialized.nth(number - dimensions.len());
        Origin::Variable(variable.map_or_else(String::new, |variable| variable.node_name.clone()))
    }
}

/// Something that a value depends on, by the name of its node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// A feed: a node and its output.
    Feed(String, i64),
    /// The size of a named dimension.
    Size(String),
    /// A variable.
    Variable(String),
    /// A node that draws random numbers.
    Random(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Feed(node, output) => write!(f, "the feed '{node}:{output}'"),
            Self::Size(name) => write!(f, "the size '{name}'"),
            Self::Variable(node) => write!(f, "the variable '{node}'"),
            Self::Random(node) => write!(f, "random numbers (node '{node}')"),
        }
    }
}

impl Deref for State<'_> {
    type Target = Builder;

    fn deref(&self) -> &Builder {
        &self.builder
    }
}

impl DerefMut for State<'_> {
    fn deref_mut(&mut self) -> &mut Builder {
        &mut self.builder
    }
}

impl Index<ListId> for State<'_> {
    type Output = List;

    fn index(&self, id: ListId) -> &List {
        &self.lists[id]
    }
}

impl Index<StackId> for State<'_> {
    type Output = Stack;

    fn index(&self, id: StackId) -> &Stack {
        &self.stacks[id]
    }
}

impl IndexMut<StackId> for State<'_> {
    fn index_mut(&mut self, id: StackId) -> &mut Stack {
        &mut self.stacks[id]
    }
}

impl Index<TensorArrayId> for State<'_> {
    type Output = TensorArray;

    fn index(&self, id: TensorArrayId) -> &TensorArray {
        &self.tensor_arrays[id]
    }
}

impl IndexMut<TensorArrayId> for State<'_> {
    fn index_mut(&mut self, id: TensorArrayId) -> &mut TensorArray {
        &mut self.tensor_arrays[id]
    }
}
