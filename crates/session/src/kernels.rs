//! Nodes that are compiled: each is a kernel of its own, made when its types and shapes are first met.
//!
//! Kernels are kept by op, attributes, types and shapes of their operands, so that nodes share them. What decides the shape
//! of a result, or the form of the code, is a constant of the kernel and part of its key; all else is an operand.

mod background;
mod cache;
mod cluster;
mod constants;
mod launch;
mod one_node;

pub(crate) use background::Background;
pub(crate) use cache::Kernels;

use crate::context::Context;
use crate::device::Device;
use crate::lock::lock;
use crate::op_kind::must_compile;
use crate::recorder::Recorder;
use crate::value::{Tensor, Value};
use cache::Kernel;
use launch::{Held, Shapes};
use prost::Message;
use shape::ArrayShape;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use support::{Error, Result};
use tf::proto::NameAttrList;
use tf::{DataType, FunctionLibrary};

/// The place of a compiled node: what is known of it before shapes are, and the kernel that it used last.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) node: tf::Node,
    pub(crate) input_types: Vec<DataType>,
    /// Op and attributes, as part of the key.
    identity: Vec<u8>,
    /// A hash of the functions that the node calls; their names say nothing across programs.
    functions: OnceLock<Vec<u8>>,
    /// The inputs that are constants of the kernel; importing adds to them.
    constants: Mutex<BTreeSet<usize>>,
    has_variables: bool,
    /// Whether new values of variables do not take the memory of old ones: their shapes may differ.
    replaces: AtomicBool,
    last: Mutex<Option<Arc<Bound>>>,
    is_expensive: AtomicBool,
    /// What is known of its runs, if it is a cluster.
    requests: Mutex<cluster::Requests>,
}

/// A kernel and what it was made for.
#[derive(Debug)]
struct Bound {
    operands: Vec<Operand>,
    kernel: Arc<Kernel>,
}

/// What a kernel knows of an input.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    /// Its shape.
    Array(Arc<ArrayShape>),
    /// Its value.
    Constant(Tensor),
    /// The shape of the variable, which of the node's variables it is, and whether a new value may have another shape.
    Variable { shape: Arc<ArrayShape>, index: usize, is_replaced: bool },
    /// A variable without a value.
    Unset { name: String, data_type: DataType, index: usize },
}

impl Site {
    /// The place of a node whose inputs have these types.
    pub(crate) fn new(node: &tf::Node, input_types: &[DataType]) -> Result<Self> {
        let is_variable = |t: &DataType| t.is_ref() || *t == DataType::Resource;
        let odd = input_types.iter().position(|t| !is_variable(t) && t.primitive_type().is_none());
        if let Some(k) = odd {
            return Err(Error::unsupported(format!(
                "node '{}' (op {}): input {k} is of {}, and no kernel takes such",
                node.name, node.op, input_types[k]
            )));
        }
        // Names and hints to others say nothing of what is computed.
        let attributes = node.attributes.values().iter();
        let attr = attributes
            .filter(|(name, _)| {
                !name.starts_with('_') && !matches!(name.as_str(), "shared_name" | "container")
            })
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        Ok(Self {
            node: node.clone(),
            input_types: input_types.to_vec(),
            identity: NameAttrList { name: node.op.clone(), attr }.encode_to_vec(),
            functions: OnceLock::new(),
            constants: Mutex::new(constants::of(node)),
            has_variables: input_types.iter().any(is_variable),
            replaces: AtomicBool::new(false),
            last: Mutex::default(),
            is_expensive: AtomicBool::new(false),
            requests: Mutex::default(),
        })
    }

    /// Whether running it is worth another thread, as far as is known.
    pub(crate) fn is_expensive(&self) -> bool {
        self.is_expensive.load(Ordering::Relaxed)
    }

    /// Whether an input is a variable.
    pub(crate) fn is_variable(&self, k: usize) -> bool {
        self.input_types[k].is_ref() || self.input_types[k] == DataType::Resource
    }

    /// What a kernel for these inputs must know.
    fn operands(&self, inputs: &[Value], held: &dyn Shapes) -> Result<Vec<Operand>> {
        let constants = lock(&self.constants);
        let operands = inputs.iter().enumerate().map(|(k, input)| {
            if self.is_variable(k) {
                let is_replaced = self.replaces.load(Ordering::Relaxed);
                let variable = input.variable()?;
                return match held.variable(input)? {
                    (index, Some(shape)) => Ok(Operand::Variable { shape, index, is_replaced }),
                    // A function may give it its first value; any other op wants one.
                    (index, None) if must_compile(&self.node) => Ok(Operand::Unset {
                        name: variable.node().to_owned(),
                        data_type: variable.data_type(),
                        index,
                    }),
                    (_, None) => Err(variable.uninitialized()),
                };
            }
            let Value::Tensor(tensor) = input else {
                return Err(Error::invalid(format!("input {k} is {}, but an array is wanted", input.kind())));
            };
            Ok(if constants.contains(&k) {
                Operand::Constant(tensor.clone())
            } else {
                Operand::Array(tensor.shared_shape().clone())
            })
        });
        operands.collect()
    }

    /// The kernel for these inputs: the last one if it fits, else one that is known, else a new one.
    fn bind(&self, held: &Held<'_>, cx: &Context<'_>, launcher: &Launcher<'_>) -> Result<Arc<Bound>> {
        let last = lock(&self.last).clone();
        if let Some(last) = last.filter(|bound| bound.fits(cx.inputs, held)) {
            return Ok(last);
        }
        let device = &*cx.shared.devices[cx.device];
        self.find(cx.inputs, held, launcher.kernels, launcher.library, device)
    }

    /// A kernel that is known for these inputs, else a new one.
    fn find(
        &self,
        inputs: &[Value],
        held: &dyn Shapes,
        kernels: &Kernels,
        library: &FunctionLibrary,
        device: &dyn Device,
    ) -> Result<Arc<Bound>> {
        let mut refused = None;
        let (kernel, operands) = loop {
            let operands = self.operands(inputs, held)?;
            let known = lock(&self.constants).clone();
            match kernels.get(self, &operands, library, device)? {
                Ok(kernel) => break (kernel, operands),
                Err((error, wanted)) => {
                    let mut constants = lock(&self.constants);
                    let new = constants::more(self, inputs, &known, &wanted);
                    if !new.is_empty() {
                        constants.extend(new);
                        continue;
                    }
                    // Where a function gives a variable another shape, its new value has memory of its own.
                    let may_replace = self.has_variables && must_compile(&self.node);
                    if may_replace && !self.replaces.swap(true, Ordering::Relaxed) {
                        refused = Some(error);
                        continue;
                    }
                    if refused.is_some() {
                        self.replaces.store(false, Ordering::Relaxed);
                    }
                    return Err(refused.unwrap_or(error));
                }
            }
        };
        let bound = Arc::new(Bound { operands, kernel });
        self.is_expensive.store(bound.kernel.is_expensive, Ordering::Relaxed);
        *lock(&self.last) = Some(bound.clone());
        Ok(bound)
    }

    /// Op, attributes, functions and operands as bytes.
    fn key(&self, operands: &[Operand], library: &FunctionLibrary) -> Vec<u8> {
        let mut key = self.identity.clone();
        if must_compile(&self.node) {
            key.extend(self.functions.get_or_init(|| one_node::hash_of_called(&self.node, library)));
        }
        let shape = |key: &mut Vec<u8>, tag: u8, shape: &ArrayShape| {
            key.extend([tag, shape.element_type as u8, shape.rank() as u8]);
            shape.dimensions.iter().for_each(|d| key.extend(d.size.to_le_bytes()));
        };
        for (operand, data_type) in operands.iter().zip(&self.input_types) {
            key.push(data_type.number() as u8);
            match operand {
                Operand::Array(of) => shape(&mut key, 1, of),
                Operand::Constant(tensor) => {
                    shape(&mut key, 2, tensor.shape());
                    key.extend(tensor.bytes());
                }
                Operand::Variable { shape: of, index, is_replaced } => {
                    shape(&mut key, if *is_replaced { 4 } else { 3 }, of);
                    key.extend((*index as u32).to_le_bytes());
                }
                Operand::Unset { name, data_type, index } => {
                    key.extend([5, data_type.number() as u8]);
                    key.extend((*index as u32).to_le_bytes());
                    // Messages name it.
                    key.extend((name.len() as u64).to_le_bytes());
                    key.extend(name.as_bytes());
                }
            }
        }
        key
    }
}

impl Bound {
    /// Whether the kernel is right for these inputs.
    fn fits(&self, inputs: &[Value], held: &dyn Shapes) -> bool {
        let same = |a: &Arc<ArrayShape>, b: &Arc<ArrayShape>| Arc::ptr_eq(a, b) || a == b;
        self.operands.len() == inputs.len()
            && self.operands.iter().zip(inputs).all(|(operand, input)| match (operand, input) {
                (Operand::Array(shape), Value::Tensor(tensor)) => same(shape, tensor.shared_shape()),
                (Operand::Constant(value), Value::Tensor(tensor)) => {
                    value.is_same(tensor)
                        || (value.shape() == tensor.shape() && value.bytes() == tensor.bytes())
                }
                (Operand::Variable { shape, index, .. }, input) => held
                    .variable(input)
                    .is_ok_and(|(at, of)| at == *index && of.is_some_and(|of| same(shape, &of))),
                (Operand::Unset { index, name, .. }, input) => {
                    held.variable(input).is_ok_and(|(at, of)| at == *index && of.is_none())
                        && input.variable().is_ok_and(|variable| variable.node() == name)
                }
                _ => false,
            })
    }
}

/// Runs compiled nodes of a run.
pub(crate) struct Launcher<'r> {
    pub(crate) kernels: &'r Arc<Kernels>,
    pub(crate) background: &'r Background,
    pub(crate) library: &'r Arc<FunctionLibrary>,
    pub(crate) recorder: Option<&'r Recorder>,
}

impl Launcher<'_> {
    /// Runs a node.
    pub(crate) fn run(&self, site: &Arc<Site>, cx: &mut Context<'_>) -> Result<()> {
        let variables = if site.has_variables { launch::variables(site, cx.inputs)? } else { Vec::new() };
        // Functions that the graph itself wants compiled have no choice.
        if site.node.op == "_XlaLaunch" {
            return cluster::run(site, &variables, cx, self);
        }
        let mut held = Held::new(&variables);
        let bound = site.bind(&held, cx, self)?;
        launch::launch(site, &bound.kernel, &mut held, cx, self.recorder)
    }
}
