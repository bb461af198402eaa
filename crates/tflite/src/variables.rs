//! The variables of a model: those that operators name, and tensors whose value persists.
//!
//! Functions take the handles of the variables that they use as arguments, because only the graph
//! itself has nodes for them.

use crate::names::of_node;
use crate::schema::{Model, Operator, Quantization, Tensor};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use support::{Error, Result};
use tf::DataType;

/// Most uses of variables, summed over the subgraphs.
const MOST_USES: usize = 100_000;

/// A variable.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    /// The name of its node.
    pub(crate) name: String,
    pub(crate) data_type: DataType,
    pub(crate) sizes: Vec<i64>,
    pub(crate) quantization: Option<Quantization>,
}

impl Variable {
    /// A variable with values like this tensor.
    fn of_value(name: String, tensor: &Tensor) -> Self {
        let Tensor { data_type, sizes, quantization, .. } = tensor.clone();
        Self { name, data_type, sizes, quantization }
    }
}

/// The variables of a model by key, a name that differs from those of all others.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    known: BTreeMap<String, Variable>,
    /// The keys of the variables that a subgraph and those that it calls use.
    used: BTreeMap<usize, Rc<BTreeSet<String>>>,
    uses: usize,
}

/// The key of the variable that an operator `VAR_HANDLE` names.
pub(crate) fn key_of_handle(operator: &Operator<'_>) -> Result<String> {
    let (container, name) = (operator.options.text(0)?, operator.options.text(1)?);
    Ok(if container.is_empty() { name } else { format!("{container}/{name}") })
}

/// The key of a tensor whose value persists.
pub(crate) fn key_of_tensor(subgraph: usize, tensor: usize, name: &str) -> String {
    format!("{subgraph}/{tensor}/{name}")
}

/// The key of the counter of an operator that draws random numbers, by its first output.
pub(crate) fn key_of_counter(subgraph: usize, output: usize) -> String {
    format!("{subgraph}/{output}/counter")
}

/// The first output of an operator that draws random numbers.
fn drawn(operator: &Operator<'_>) -> Option<usize> {
    let draws = matches!(operator.op, "MULTINOMIAL" | "RANDOM_STANDARD_NORMAL" | "RANDOM_UNIFORM");
    operator.outputs.first().copied().filter(|_| draws)
}

impl Variables {
    /// Finds types and shapes, which are those of the values that are read and written.
    pub(crate) fn new(model: &Model<'_>) -> Result<Self> {
        let mut variables = Self::default();
        for (number, subgraph) in model.subgraphs.iter().enumerate() {
            let mut handles: BTreeMap<usize, String> = BTreeMap::new();
            for operator in &subgraph.operators {
                if operator.op == "VAR_HANDLE" {
                    let key = key_of_handle(operator)?;
                    handles.extend(operator.outputs.iter().map(|&handle| (handle, key.clone())));
                }
            }
            for operator in subgraph.operators.iter().filter(|_| !handles.is_empty()) {
                let value = match operator.op {
                    "READ_VARIABLE" => operator.outputs.first().copied(),
                    "ASSIGN_VARIABLE" => operator.inputs.get(1).copied().flatten(),
                    _ => None,
                };
                let handle = operator.inputs.first().copied().flatten();
                if let (Some(value), Some(key)) = (value, handle.and_then(|handle| handles.get(&handle))) {
                    let variable = Variable::of_value(key.clone(), &subgraph.tensors[value]);
                    variables.known.entry(key.clone()).or_insert(variable);
                }
            }
            for output in subgraph.operators.iter().filter_map(drawn) {
                let name = format!("{}/counter", of_node(&subgraph.tensors[output].name));
                let variable =
                    Variable { name, data_type: DataType::Int64, sizes: vec![1], quantization: None };
                variables.known.insert(key_of_counter(number, output), variable);
            }
            for (k, tensor) in subgraph.tensors.iter().enumerate().filter(|(_, tensor)| tensor.is_variable) {
                let variable = Variable::of_value(tensor.name.clone(), tensor);
                variables.known.insert(key_of_tensor(number, k, &tensor.name), variable);
            }
        }
        Ok(variables)
    }

    /// A variable by its key.
    pub(crate) fn get(&self, key: &str) -> Result<&Variable> {
        self.known
            .get(key)
            .ok_or_else(|| Error::invalid(format!("variable '{key}' is neither read nor written")))
    }

    /// The keys of the variables that a subgraph and those that it calls use.
    pub(crate) fn used(
        &mut self,
        model: &Model<'_>,
        number: usize,
        deepest: usize,
    ) -> Result<Rc<BTreeSet<String>>> {
        if let Some(used) = self.used.get(&number) {
            return Ok(used.clone());
        }
        let deeper = deepest.checked_sub(1).ok_or_else(|| Error::unsupported("calls are nested too deep"))?;
        // A subgraph that calls itself is refused where it is converted.
        self.used.insert(number, Rc::default());
        let subgraph = &model.subgraphs[number];
        let mut used = BTreeSet::new();
        for operator in &subgraph.operators {
            if operator.op == "VAR_HANDLE" {
                used.insert(key_of_handle(operator)?);
            }
            used.extend(drawn(operator).map(|output| key_of_counter(number, output)));
            for &tensor in operator.inputs.iter().flatten() {
                if subgraph.tensors[tensor].is_variable {
                    used.insert(key_of_tensor(number, tensor, &subgraph.tensors[tensor].name));
                }
            }
            for callee in callees(operator)? {
                let callee = usize::try_from(callee).ok().filter(|&callee| callee < model.subgraphs.len());
                if let Some(callee) = callee {
                    used.extend(self.used(model, callee, deeper)?.iter().cloned());
                }
            }
        }
        self.uses += used.len();
        if self.uses > MOST_USES {
            return Err(Error::unsupported(format!("more than {MOST_USES} uses of variables")));
        }
        let used = Rc::new(used);
        self.used.insert(number, used.clone());
        Ok(used)
    }
}

/// The subgraphs that an operator calls.
fn callees(operator: &Operator<'_>) -> Result<Vec<i64>> {
    let options = &operator.options;
    Ok(match operator.op {
        "CALL" => vec![options.int(0, 0)?],
        "IF" | "WHILE" => vec![options.int(0, 0)?, options.int(1, 0)?],
        "STABLEHLO_CASE" => options.ints(0)?,
        "STABLEHLO_COMPOSITE" => vec![options.int(1, 0)?],
        _ => Vec::new(),
    })
}
