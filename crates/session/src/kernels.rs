//! Compiled nodes. Each gets its own kernel, compiled when its types and shapes first occur.
//!
//! Kernels are cached by op, attributes, and types and shapes of their operands, so that nodes
//! share them. An input that determines the shape of a result or the form of the code is a constant
//! of the kernel and part of its key. All other inputs are operands. Sizes of a cluster's inputs
//! that change from run to run become ranges.

mod background;
mod cache;
mod cluster;
mod constants;
mod dynamism;
mod gpu_launch;
mod launch;
mod one_node;
mod timing;

pub(crate) use background::Background;
pub(crate) use cache::Kernels;

use crate::context::Context;
use crate::device::Place;
use crate::lock::lock;
use crate::op_kind::must_compile;
use crate::recorder::profile::Span;
use crate::recorder::{GpuTrace, Launch, Recorder};
use crate::value::{Tensor, Value};
use cache::Kernel;
use dynamism::{Dynamism, MAX_FIXED};
use launch::{LockedVariables, Shapes};
use prost::Message;
use sha2::{Digest, Sha256};
use shape::ArrayShape;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use support::{Error, Result};
use tf::proto::NameAttrList;
use tf::{DataType, FunctionLibrary};

/// A compiled node: what is known about it before its shapes are, and the kernel that it used last.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) node: tf::Node,
    pub(crate) input_types: Vec<DataType>,
    /// Encoded op and attributes; part of the key.
    identity: Vec<u8>,
    /// Hash of the functions that the node calls. Their names are not unique across programs.
    functions: OnceLock<Vec<u8>>,
    /// Inputs that are constants of the kernel. Importing a kernel can add to them.
    constants: Mutex<BTreeSet<usize>>,
    has_variables: bool,
    /// True if a variable's new value gets its own memory because its shape may differ from the old
    /// one.
    replaces: AtomicBool,
    last: Mutex<Option<Arc<Binding>>>,
    /// The last kernel that computes a batch of any size in pieces.
    in_pieces: Mutex<Option<Arc<Binding>>>,
    dynamism: Mutex<Dynamism>,
    /// Number of kernels compiled for the node. Nodes share kernels, so it may have more.
    compilations: AtomicU64,
    is_expensive: AtomicBool,
    /// Request history, if the node is a cluster.
    requests: Mutex<cluster::Requests>,
}

/// A kernel and the operands that it was compiled for.
#[derive(Debug)]
struct Binding {
    /// Identifies the code of the device; see [`Place::code_key`].
    code_key: String,
    operands: Vec<Operand>,
    kernel: Arc<Kernel>,
}

/// Operands of the kernel to compile for a run.
struct Request {
    operands: Vec<Operand>,
    /// Identity of the runs that the kernel is for, if sizes have become ranges.
    class: Option<Vec<u8>>,
}

/// Compile-time knowledge about an input of a kernel.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    /// Shape of an array.
    Array(Arc<ArrayShape>),
    /// Shape of an array some of whose dimensions are named, with their bounds as sizes, and the
    /// number of the name of each.
    Sized { shape: Arc<ArrayShape>, named: BTreeMap<usize, usize> },
    /// Value of a constant.
    Constant(Tensor),
    /// Shape of a variable, its index among the node's variables, and whether a new value may have
    /// another shape.
    Variable { shape: Arc<ArrayShape>, index: usize, is_replaced: bool },
    /// A variable without a value.
    Unset { name: String, data_type: DataType, index: usize },
}

impl Site {
    /// Creates the site of a node whose inputs have these types.
    pub(crate) fn new(node: &tf::Node, input_types: &[DataType]) -> Result<Self> {
        let is_variable = |t: &DataType| t.is_ref() || *t == DataType::Resource;
        let odd = input_types.iter().position(|t| !is_variable(t) && t.primitive_type().is_none());
        if let Some(k) = odd {
            return Err(Error::unsupported(format!(
                "node '{}' (op {}): no kernel supports input {k} of type {}",
                node.name, node.op, input_types[k]
            )));
        }
        // Names and hints do not affect what is computed.
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
            in_pieces: Mutex::default(),
            dynamism: Mutex::default(),
            compilations: AtomicU64::new(0),
            is_expensive: AtomicBool::new(false),
            requests: Mutex::default(),
        })
    }

    /// True if running the node is worth another thread, as far as is known.
    pub(crate) fn is_expensive(&self) -> bool {
        self.is_expensive.load(Ordering::Relaxed)
    }

    /// A launch of a kernel, for traces.
    fn launch(&self, kernel: &Kernel, span: Span, ticks: Vec<i64>, gpu: Option<GpuTrace>) -> Launch {
        let compilations = self.compilations.load(Ordering::Relaxed);
        let compilations = if must_compile(&self.node) { compilations } else { 0 };
        Launch { counts: kernel.counts.clone(), span, ticks, gpu, compilations }
    }

    /// True if input `k` is a variable.
    pub(crate) fn is_variable(&self, k: usize) -> bool {
        self.input_types[k].is_ref() || self.input_types[k] == DataType::Resource
    }

    /// Operands of a kernel for these inputs.
    fn operands(&self, inputs: &[Value], locked: &dyn Shapes) -> Result<Vec<Operand>> {
        let constants = lock(&self.constants);
        let operands = inputs.iter().enumerate().map(|(k, input)| {
            if self.is_variable(k) {
                let is_replaced = self.replaces.load(Ordering::Relaxed);
                let variable = input.variable()?;
                return match locked.variable(input)? {
                    (index, Some(shape)) => Ok(Operand::Variable { shape, index, is_replaced }),
                    // A function may initialize the variable; every other op needs its value.
                    (index, None) if must_compile(&self.node) => Ok(Operand::Unset {
                        name: variable.node().to_owned(),
                        data_type: variable.data_type(),
                        index,
                    }),
                    (_, None) => Err(variable.uninitialized()),
                };
            }
            let Value::Tensor(tensor) = input else {
                return Err(Error::invalid(format!("input {k}: expected an array, got {}", input.kind())));
            };
            Ok(if constants.contains(&k) {
                tensor.on_host()?;
                Operand::Constant(tensor.clone())
            } else {
                Operand::Array(tensor.shared_shape().clone())
            })
        });
        operands.collect()
    }

    /// The last kernel or the last one in pieces, if it fits.
    fn recent(&self, device: &Place, inputs: &[Value], locked: &dyn Shapes) -> Option<Arc<Binding>> {
        let find = |recent: &Mutex<Option<Arc<Binding>>>| {
            lock(recent).clone().filter(|binding| binding.fits(device, inputs, locked))
        };
        find(&self.last).or_else(|| find(&self.in_pieces))
    }

    /// Replaces sizes that change from run to run by ranges, unless there is a kernel for these
    /// operands.
    fn request(
        &self,
        operands: Vec<Operand>,
        kernels: &Kernels,
        library: &FunctionLibrary,
        device: &Place,
    ) -> Request {
        let may_range = must_compile(&self.node) && device.gpu.is_none() && !kernels.profiles_clusters();
        if may_range && !kernels.has_kernel(&kernels.key(self, &operands, library, device)) {
            let class = Sha256::digest(self.key(&dynamism::class(&operands), library)).to_vec();
            if let Some(operands) = lock(&self.dynamism).observe(&class, &operands) {
                return Request { operands, class: Some(class) };
            }
        }
        Request { operands, class: None }
    }

    /// Kernel for these inputs: a recent one if it fits, otherwise a cached one, otherwise a new
    /// one.
    fn bind(
        &self,
        locked: &LockedVariables<'_>,
        cx: &Context<'_>,
        launcher: &Launcher<'_>,
    ) -> Result<Arc<Binding>> {
        let device = &cx.shared.devices[cx.device];
        if let Some(recent) = self.recent(device, cx.inputs, locked) {
            return Ok(recent);
        }
        self.find(cx.inputs, locked, launcher.kernels, launcher.library, device)
    }

    /// Cached kernel for these inputs, or a new one.
    fn find(
        &self,
        inputs: &[Value],
        locked: &dyn Shapes,
        kernels: &Kernels,
        library: &FunctionLibrary,
        device: &Place,
    ) -> Result<Arc<Binding>> {
        let mut first_error = None;
        let (kernel, operands) = loop {
            let operands = self.operands(inputs, locked)?;
            let Request { operands, class } = self.request(operands, kernels, library, device);
            let known = lock(&self.constants).clone();
            match (kernels.get(self, &operands, library, device)?, class) {
                (Ok(kernel), _) => break (kernel, operands),
                (Err(_), Some(class)) => lock(&self.dynamism).refuse(&class),
                (Err((error, requested)), None) => {
                    let mut constants = lock(&self.constants);
                    let new = constants::additional(self, inputs, &known, &requested);
                    if !new.is_empty() {
                        constants.extend(new);
                        continue;
                    }
                    // A function may change the shape of a variable. Its new value then needs its
                    // own memory.
                    let may_replace = self.has_variables && must_compile(&self.node);
                    if may_replace && !self.replaces.swap(true, Ordering::Relaxed) {
                        first_error = Some(error);
                        continue;
                    }
                    if first_error.is_some() {
                        self.replaces.store(false, Ordering::Relaxed);
                    }
                    return Err(first_error.unwrap_or(error));
                }
            }
        };
        let binding = Arc::new(Binding { code_key: device.code_key(), operands, kernel });
        self.is_expensive.store(binding.kernel.is_expensive, Ordering::Relaxed);
        if binding.kernel.is_in_pieces() {
            *lock(&self.in_pieces) = Some(binding.clone());
        }
        *lock(&self.last) = Some(binding.clone());
        Ok(binding)
    }

    /// Encodes op, attributes, functions, and operands as bytes.
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
                Operand::Array(array_shape) => shape(&mut key, 1, array_shape),
                Operand::Sized { shape: bounds, named } => {
                    shape(&mut key, 6, bounds);
                    let name = |d: usize| named.get(&d).map_or(0, |&name| 1 + name as u32);
                    key.extend((0..bounds.rank()).flat_map(|d| name(d).to_le_bytes()));
                }
                Operand::Constant(tensor) => {
                    shape(&mut key, 2, tensor.shape());
                    key.extend(tensor.bytes());
                }
                Operand::Variable { shape: value_shape, index, is_replaced } => {
                    shape(&mut key, if *is_replaced { 4 } else { 3 }, value_shape);
                    key.extend((*index as u32).to_le_bytes());
                }
                Operand::Unset { name, data_type, index } => {
                    key.extend([5, data_type.number() as u8]);
                    key.extend((*index as u32).to_le_bytes());
                    // The name occurs in messages.
                    key.extend((name.len() as u64).to_le_bytes());
                    key.extend(name.as_bytes());
                }
            }
        }
        key
    }
}

impl Binding {
    /// True if the kernel can run these inputs on a device.
    fn fits(&self, device: &Place, inputs: &[Value], locked: &dyn Shapes) -> bool {
        let same = |a: &Arc<ArrayShape>, b: &Arc<ArrayShape>| Arc::ptr_eq(a, b) || a == b;
        let low = if self.kernel.is_in_pieces() { 1 } else { MAX_FIXED + 1 };
        let mut sizes: BTreeMap<usize, i64> = BTreeMap::new();
        let mut has_range = |bounds: &ArrayShape, named: &BTreeMap<usize, usize>, shape: &ArrayShape| {
            (bounds.element_type, bounds.rank()) == (shape.element_type, shape.rank())
                && bounds.sizes().iter().zip(shape.sizes()).enumerate().all(|(d, (&bound, size))| match named
                    .get(&d)
                {
                    Some(&name) => {
                        (low..=bound).contains(&size) && *sizes.entry(name).or_insert(size) == size
                    }
                    None => bound == size,
                })
        };
        self.operands.len() == inputs.len()
            && device.has_code_key(&self.code_key)
            && self.operands.iter().zip(inputs).all(|(operand, input)| match (operand, input) {
                (Operand::Array(shape), Value::Tensor(tensor)) => same(shape, tensor.shared_shape()),
                (Operand::Sized { shape, named }, Value::Tensor(tensor)) => {
                    has_range(shape, named, tensor.shape())
                }
                (Operand::Constant(value), Value::Tensor(tensor)) => {
                    value.is_same(tensor)
                        || (value.shape() == tensor.shape() && value.bytes() == tensor.bytes())
                }
                (Operand::Variable { shape, index, .. }, input) => locked
                    .variable(input)
                    .is_ok_and(|(at, value)| at == *index && value.is_some_and(|value| same(shape, &value))),
                (Operand::Unset { index, name, .. }, input) => {
                    locked.variable(input).is_ok_and(|(at, value)| at == *index && value.is_none())
                        && input.variable().is_ok_and(|variable| variable.node() == name)
                }
                _ => false,
            })
    }
}

/// Runs the compiled nodes of a run.
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
        // Clusters may run node by node. Functions that the graph itself marks for compilation
        // always run as one kernel.
        if site.node.op == "_XlaLaunch" {
            return cluster::run(site, &variables, cx, self);
        }
        let mut locked = LockedVariables::new(&variables);
        let binding = site.bind(&locked, cx, self)?;
        launch::launch(site, &binding.kernel, &mut locked, cx, self.recorder)
    }
}
