//! What is needed to run a compiled module in a process, without the module: it is kept from one process to the next.
//!
//! A key is the hash of the module before any pass, of all options, and of what tells this build of the compiler from others. So
//! an entry is never out of date; what is cut or changed is no entry, and is made again.

use crate::in_process::Executable;
use crate::{BackOptions, Compiled, NoObserver, ProfileCounter, compile_module};
use buffers::BufferAssignment;
use codegen::{llvm_version, seal, unseal};
use hlo::analysis::Cost;
use hlo::custom_call::{CustomCallKind, custom_call};
use hlo::text::{PrintOptions, print};
use hlo::{BoundedDimension, Module, Op};
use jit::AlignedBytes;
use prost::Message;
use sha2::{Digest, Sha256};
use shape::{ArrayShape, PrimitiveType, Shape};
use support::{Error, Result};

/// What entries begin with: the kind and version of their contents.
const MAGIC: &[u8; 8] = b"tfcprog1";

/// Constants of more elements go into keys as bytes, not as text.
const PRINTED_ELEMENTS: usize = 16;

/// A compiled module that can be loaded into a process.
#[derive(Debug)]
pub struct Loadable {
    pub(crate) object: Vec<u8>,
    pub(crate) constants: AlignedBytes,
    pub(crate) arguments: Vec<ArrayShape>,
    pub(crate) results: Vec<(ArrayShape, Option<usize>)>,
    pub(crate) bounded: Vec<BoundedDimension>,
    pub(crate) counters: Vec<ProfileCounter>,
    pub(crate) temps_bytes: u64,
    pub(crate) scratch_bytes: u64,
    persistent_bytes: u64,
    cost: Cost,
    is_kept: bool,
}

/// Compiles a module, or takes what was kept of it.
pub fn compile_loadable(module: Module, options: &BackOptions) -> Result<Loadable> {
    let Some((cache, compiler)) = options.cache.as_ref().and_then(|cache| Some((cache, cache.compiler()?)))
    else {
        return Loadable::of(&compile_module(module, options, &mut NoObserver)?);
    };
    // The whole is kept; its parts need not be.
    let inner = BackOptions { cache: None, ..options.clone() };
    let key = key(&module, &inner, compiler);
    if let Some(kept) = cache.get(&key).and_then(|entry| Loadable::decode(&key, &entry)) {
        return Ok(kept);
    }
    let made = Loadable::of(&compile_module(module, &inner, &mut NoObserver)?)?;
    if made.is_plain() {
        cache.put(&key, &made.encode(&key));
    }
    Ok(made)
}

/// The key of a module: 64 hexadecimal digits.
fn key(module: &Module, options: &BackOptions, compiler: &str) -> String {
    let mut hasher = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    add(MAGIC);
    add(env!("CARGO_PKG_VERSION").as_bytes());
    add(compiler.as_bytes());
    add(llvm_version().as_bytes());
    add(format!("{options:?}").as_bytes());
    // Who asked for an instruction is part of what a profile says of it.
    let print_options = PrintOptions {
        layouts: true,
        max_constant_elements: PRINTED_ELEMENTS,
        metadata: options.is_profiled,
    };
    add(print(module, print_options).as_bytes());
    add(format!("{:?}", module.bounded_dimensions()).as_bytes());
    for (_, computation) in module.computations() {
        for (_, instruction) in computation.instructions() {
            if let Op::Constant { literal } = instruction.op()
                && literal.array_shape().element_count() > PRINTED_ELEMENTS as i64
            {
                add(instruction.name().as_bytes());
                add(literal.bytes());
            }
        }
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Loadable {
    /// What a compiled module needs to be loaded. An error if it calls functions that only linking brings.
    pub fn of(compiled: &Compiled) -> Result<Self> {
        refuse_functions(&compiled.module)?;
        let entry = compiled.module.entry_computation().program_shape();
        let array = |shape: &Shape| {
            let array = shape.as_array().cloned();
            array.ok_or_else(|| Error::unsupported(format!("{shape} as an argument or result")))
        };
        let elements =
            entry.result.as_tuple().ok_or_else(|| Error::internal("the entry's result is a tuple"))?;
        let alias_of = |index: usize| {
            let aliases = compiled.module.input_output_alias().iter();
            aliases.filter(|a| a.output_index == [index]).map(|a| a.parameter_number).next()
        };
        let results = elements.iter().enumerate().map(|(k, shape)| Ok((array(shape)?, alias_of(k))));
        let mut results: Vec<(ArrayShape, Option<usize>)> = results.collect::<Result<_>>()?;
        // Behind them stand the sizes of bounded dimensions.
        let bounded = compiled.module.bounded_dimensions().to_vec();
        results.truncate(results.len() - bounded.len());
        let root = compiled.module.entry();
        let instructions = compiled.module.entry_computation().instructions();
        Ok(Self {
            object: compiled.code.object.clone(),
            constants: constants(&compiled.assignment)?,
            arguments: entry.parameters.iter().map(array).collect::<Result<_>>()?,
            results,
            bounded,
            counters: compiled.counters.clone(),
            temps_bytes: compiled.assignment.temps_size,
            scratch_bytes: compiled.assignment.worker_scratch_size,
            persistent_bytes: compiled.assignment.persistent_size,
            cost: instructions.map(|(id, _)| Cost::of_instruction(&compiled.module, root, id)).sum(),
            is_kept: false,
        })
    }

    /// Loads the code.
    pub fn load(self) -> Result<Executable> {
        Executable::of(self)
    }

    /// Bytes at the beginning of the temps that persist from run to run.
    pub fn persistent_bytes(&self) -> u64 {
        self.persistent_bytes
    }

    /// What a run costs.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Whether it was compiled before, and only taken from where it was kept.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Whether type and sizes are all there is to say of its arrays: entries hold nothing else.
    fn is_plain(&self) -> bool {
        let shapes = self.arguments.iter().chain(self.results.iter().map(|(shape, _)| shape));
        shapes.into_iter().all(|shape| *shape == ArrayShape::new(shape.element_type, &shape.sizes()))
    }

    fn encode(&self, key: &str) -> Vec<u8> {
        let array = |shape: &ArrayShape| Array {
            element_type: shape.element_type.name().to_owned(),
            sizes: shape.sizes(),
        };
        let alias = |alias: Option<usize>| alias.map_or(0, |alias| alias as u64 + 1);
        let message = Kept {
            object: self.object.clone(),
            constants: self.constants.to_vec(),
            arguments: self.arguments.iter().map(array).collect(),
            results: self.results.iter().map(|(shape, _)| array(shape)).collect(),
            aliases: self.results.iter().map(|(_, of)| alias(*of)).collect(),
            bounded: self.bounded.iter().flat_map(|b| [b.result as u64, b.dimension as u64]).collect(),
            counters: self.counters.iter().map(Counted::of).collect(),
            temps_bytes: self.temps_bytes,
            scratch_bytes: self.scratch_bytes,
            persistent_bytes: self.persistent_bytes,
            cost: vec![
                self.cost.flops,
                self.cost.transcendentals,
                self.cost.bytes_read,
                self.cost.bytes_written,
            ],
        };
        seal(MAGIC, key, &message.encode_to_vec())
    }

    fn decode(key: &str, entry: &[u8]) -> Option<Self> {
        let kept = Kept::decode(unseal(MAGIC, key, entry)?).ok()?;
        let array = |array: &Array| {
            let of = PrimitiveType::ALL.into_iter().find(|t| t.name() == array.element_type)?;
            Some(ArrayShape::new(of, &array.sizes))
        };
        let results = kept.results.iter().zip(&kept.aliases).map(|(shape, &alias)| {
            let alias = alias.checked_sub(1).map(usize::try_from).transpose().ok()?;
            Some((array(shape)?, alias))
        });
        let [flops, transcendentals, bytes_read, bytes_written] = kept.cost[..] else { return None };
        let bounded = kept.bounded.as_chunks::<2>().0.iter().map(|&[result, dimension]| BoundedDimension {
            result: result as usize,
            dimension: dimension as usize,
        });
        Some(Self {
            constants: AlignedBytes::from_bytes(&kept.constants).ok()?,
            arguments: kept.arguments.iter().map(array).collect::<Option<_>>()?,
            results: results.collect::<Option<_>>()?,
            bounded: bounded.collect(),
            counters: kept.counters.into_iter().map(Counted::counter).collect(),
            temps_bytes: kept.temps_bytes,
            scratch_bytes: kept.scratch_bytes,
            persistent_bytes: kept.persistent_bytes,
            cost: Cost { flops, transcendentals, bytes_read, bytes_written },
            object: kept.object,
            is_kept: true,
        })
    }
}

/// The block of constants.
fn constants(assignment: &BufferAssignment) -> Result<AlignedBytes> {
    let size = usize::try_from(assignment.constants_size)
        .map_err(|_| Error::unsupported(format!("{} bytes of constants", assignment.constants_size)))?;
    let chunks = assignment.constants.iter().map(|(offset, bytes)| (*offset, bytes.as_ref())).collect();
    let mut block = AlignedBytes::zeroed(size)?;
    codegen::Constants { size: assignment.constants_size, chunks }.copy_to(&mut block)?;
    Ok(block)
}

/// Refuses functions of the user's, which only linking brings.
fn refuse_functions(module: &Module) -> Result<()> {
    for (_, computation) in module.computations() {
        for (_, instruction) in computation.instructions() {
            if let Some(CustomCallKind::Function { symbol, .. }) = custom_call(instruction.op()) {
                return Err(Error::unsupported(format!(
                    "node '{}' (op {}) calls the C function '{symbol}', which is not in this process: compile ahead of time \
                     (tfcompile build) and link it, or feed what the node computes",
                    instruction.metadata().op_name,
                    instruction.metadata().op_type
                )));
            }
        }
    }
    Ok(())
}

/// An entry's contents.
#[derive(Clone, PartialEq, Message)]
struct Kept {
    #[prost(bytes = "vec", tag = "1")]
    object: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    constants: Vec<u8>,
    #[prost(message, repeated, tag = "3")]
    arguments: Vec<Array>,
    #[prost(message, repeated, tag = "4")]
    results: Vec<Array>,
    /// For each result 0, or one more than the argument that it lives in.
    #[prost(uint64, repeated, tag = "5")]
    aliases: Vec<u64>,
    /// Pairs of results and dimensions.
    #[prost(uint64, repeated, tag = "6")]
    bounded: Vec<u64>,
    #[prost(message, repeated, tag = "7")]
    counters: Vec<Counted>,
    #[prost(uint64, tag = "8")]
    temps_bytes: u64,
    #[prost(uint64, tag = "9")]
    scratch_bytes: u64,
    #[prost(uint64, tag = "10")]
    persistent_bytes: u64,
    /// The fields of [`Cost`], in their order.
    #[prost(uint64, repeated, tag = "11")]
    cost: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct Array {
    #[prost(string, tag = "1")]
    element_type: String,
    #[prost(int64, repeated, tag = "2")]
    sizes: Vec<i64>,
}

/// A [`ProfileCounter`].
#[derive(Clone, PartialEq, Message)]
struct Counted {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    short_name: String,
    #[prost(string, tag = "3")]
    category: String,
    #[prost(uint64, tag = "4")]
    flops: u64,
    #[prost(uint64, tag = "5")]
    transcendentals: u64,
    #[prost(uint64, tag = "6")]
    bytes: u64,
}

impl Counted {
    fn of(counter: &ProfileCounter) -> Self {
        let ProfileCounter { name, short_name, category, flops, transcendentals, bytes } = counter.clone();
        Self { name, short_name, category, flops, transcendentals, bytes }
    }

    fn counter(self) -> ProfileCounter {
        let Self { name, short_name, category, flops, transcendentals, bytes } = self;
        ProfileCounter { name, short_name, category, flops, transcendentals, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codegen::UnitCache;
    use shape::Literal;
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    #[derive(Debug, Default)]
    struct Memory {
        entries: Mutex<BTreeMap<String, Vec<u8>>>,
        compiler: String,
    }

    impl UnitCache for Memory {
        fn get(&self, key: &str) -> Option<Vec<u8>> {
            self.entries.lock().expect("whole").get(key).cloned()
        }

        fn put(&self, key: &str, entry: &[u8]) {
            self.entries.lock().expect("whole").insert(key.to_owned(), entry.to_vec());
        }

        fn compiler(&self) -> Option<&str> {
            Some(&self.compiler)
        }
    }

    /// `2 x + y`, and `y` replaced by it; a constant too large to be printed.
    fn module(first: f32) -> Module {
        let elements: String = (0..20).map(|k| format!("{}, ", if k == 7 { first } else { 2.0 })).collect();
        hlo::text::parse(&format!(
            "HloModule m, input_output_alias={{ {{0}}: (1, {{}}, must-alias) }}\n\n\
             ENTRY e {{\n  x = f32[20] parameter(0)\n  y = f32[20] parameter(1)\n  \
             two = f32[20] constant({{{}}})\n  product = f32[20] multiply(x, two)\n  \
             sum = f32[20] add(product, y)\n  ROOT r = (f32[20]) tuple(sum)\n}}\n",
            elements.trim_end_matches(", ")
        ))
        .expect("a module")
    }

    fn options(cache: &Arc<Memory>) -> BackOptions {
        let mut options = crate::in_process_options(crate::host("").expect("this machine"));
        options.cache = Some(cache.clone());
        options
    }

    fn run(loadable: Loadable) -> Vec<f32> {
        let iota: Vec<f32> = (0..20u8).map(f32::from).collect();
        let [x, y] = [iota, vec![1.0; 20]].map(|v| Literal::from_elements(&[20], &v));
        let results = loadable.load().and_then(|code| code.run(&[x, y])).expect("it runs");
        results[0].to_vec().expect("floats")
    }

    #[test]
    fn what_is_kept_is_what_was_compiled() {
        let cache = Arc::new(Memory::default());
        let made = compile_loadable(module(2.0), &options(&cache)).expect("compiled");
        assert!(!made.is_kept());
        let kept = compile_loadable(module(2.0), &options(&cache)).expect("kept");
        assert!(kept.is_kept());
        assert_eq!((kept.cost(), kept.persistent_bytes()), (made.cost(), made.persistent_bytes()));
        assert_eq!(kept.results[0].1, Some(1), "it lives in the second argument");
        let wanted: Vec<f32> = (0..20u8).map(|k| 2.0 * f32::from(k) + 1.0).collect();
        assert_eq!((run(kept), run(made)), (wanted.clone(), wanted));
        assert_eq!(cache.entries.lock().expect("whole").len(), 1, "nothing but the whole");
    }

    /// Each of these makes another program of it: a constant that no text shows, the options, the compiler.
    #[test]
    fn whatever_decides_the_code_is_in_the_key() {
        let cache = Arc::new(Memory::default());
        let other = Arc::new(Memory { compiler: "another build".to_owned(), ..Memory::default() });
        let kept =
            |module, options: &BackOptions| compile_loadable(module, options).expect("compiled").is_kept();
        assert!(!kept(module(2.0), &options(&cache)));
        assert!(!kept(module(3.0), &options(&cache)));
        let passes = BackOptions { disabled_passes: vec!["fusion".to_owned()], ..options(&cache) };
        assert!(!kept(module(2.0), &passes));
        for (key, entry) in cache.entries.lock().expect("whole").iter() {
            other.put(key, entry);
        }
        assert!(!kept(module(2.0), &options(&other)));
        assert!(kept(module(2.0), &options(&cache)) && kept(module(2.0), &passes));
    }

    #[test]
    fn entries_that_are_cut_changed_or_of_another_key_are_none() {
        let cache = Arc::new(Memory::default());
        let made = compile_loadable(module(2.0), &options(&cache)).expect("compiled");
        let entry = made.encode("k");
        assert!(Loadable::decode("k", &entry).is_some() && Loadable::decode("l", &entry).is_none());
        for at in (0..entry.len()).step_by(7) {
            assert!(Loadable::decode("k", &entry[..at]).is_none(), "the first {at} bytes");
            let mut changed = entry.clone();
            changed[at] ^= 0x10;
            assert!(Loadable::decode("k", &changed).is_none(), "byte {at}");
        }
        for entry in cache.entries.lock().expect("whole").values_mut() {
            entry.truncate(entry.len() / 2);
        }
        let again = compile_loadable(module(2.0), &options(&cache)).expect("compiled");
        assert!(!again.is_kept());
        assert!(compile_loadable(module(2.0), &options(&cache)).expect("kept").is_kept(), "it was mended");
    }
}
