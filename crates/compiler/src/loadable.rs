//! Compiled modules that can be loaded into a process without their HLO, and stored in a cache
//! across processes.
//!
//! The key of an entry is the hash of the module before any pass, of all options, and of the
//! identity of this build of the compiler. An entry is therefore never out of date. A truncated or
//! modified entry is a miss.

use crate::back::{compile_modules, has_several_modules, is_in_pieces};
use crate::{BackOptions, Compiled, CountedCode, MachineCode, NoObserver, ProfileCounter, compile_module};
use buffers::ConstantsBlock;
use codegen::{llvm_version, seal, unseal};
use hlo::analysis::Cost;
use hlo::custom_call::{CustomCallKind, custom_call};
use hlo::text::{PrintOptions, print};
use hlo::{Interface, Module, Op, Program};
use jit::{AlignedBytes, Memory};
use prost::Message;
use sha2::{Digest, Sha256};
use support::{Error, Result};

/// Magic bytes of entries: the kind and version of their contents.
const MAGIC: &[u8; 8] = b"tfcprog3";

/// Constants with more elements are hashed as bytes, not as text.
const PRINTED_ELEMENTS: usize = 16;

/// Compiled module that can be loaded into a process.
#[derive(Debug)]
pub struct Loadable {
    pub(crate) object: Vec<u8>,
    pub(crate) constants: AlignedBytes,
    pub(crate) interface: Interface,
    pub(crate) counters: Vec<ProfileCounter>,
    pub(crate) memory: Memory,
    persistent_bytes: u64,
    cost: Cost,
    is_cached: bool,
}

/// Compiles a program, or reads it from the cache. If it has modules for several sizes, the code is
/// made of all of them.
pub fn compile_loadable(program: Program, options: &BackOptions) -> Result<Loadable> {
    let Some((cache, compiler)) = options.cache.as_ref().and_then(|cache| Some((cache, cache.compiler()?)))
    else {
        return compile(program, options);
    };
    // The cache holds the whole module, so its parts are not cached.
    let inner = BackOptions { cache: None, ..options.clone() };
    let key = key(&program, &inner, compiler);
    let takes_true_sizes = is_in_pieces(&program, options);
    let interface = if has_several_modules(&program, options) {
        program.interface.clone()
    } else {
        Interface::of_module(&program.module)?
    };
    let cached =
        cache.get(&key).and_then(|entry| Loadable::decode(&key, &entry, interface, takes_true_sizes));
    if let Some(cached) = cached {
        return Ok(cached);
    }
    let loadable = compile(program, &inner)?;
    cache.put(&key, &loadable.encode(&key));
    Ok(loadable)
}

fn compile(program: Program, options: &BackOptions) -> Result<Loadable> {
    if !has_several_modules(&program, options) {
        return Loadable::of(&compile_module(program.module, options, &mut NoObserver)?);
    }
    let (code, constants) = compile_modules(&program, options, &mut NoObserver)?;
    Loadable::of_modules(&program, &code, &constants)
}

/// Key of a program: 64 hexadecimal digits.
fn key(program: &Program, options: &BackOptions, compiler: &str) -> String {
    let mut hasher = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    add(MAGIC);
    add(env!("CARGO_PKG_VERSION").as_bytes());
    add(compiler.as_bytes());
    add(llvm_version().as_bytes());
    add(options.cache_key().as_bytes());
    // A profile names the nodes of instructions, so they are part of the key.
    let print_options = PrintOptions {
        layouts: true,
        max_constant_elements: PRINTED_ELEMENTS,
        metadata: options.is_profiled,
    };
    let sized = program.sized.iter().map(|sized| (vec![sized.size, sized.is_required.into()], &sized.module));
    let exact = program.exact.iter().map(|exact| {
        let sizes = exact.sizes.iter().flat_map(|&(number, size)| [number as i64, size]);
        (sizes.collect(), &exact.module)
    });
    for (sizes, module) in std::iter::once((vec![], &program.module)).chain(sized).chain(exact) {
        add(&sizes.iter().flat_map(|size: &i64| size.to_le_bytes()).collect::<Vec<u8>>());
        add(print(module, print_options).as_bytes());
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
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Loadable {
    /// Extracts the parts of a compiled module that loading needs. Returns an error if it calls
    /// functions that must be linked.
    pub fn of(compiled: &Compiled) -> Result<Self> {
        let Compiled { module, code, constants, .. } = compiled;
        Self::of_code(module, Interface::of_module(module)?, code, constants)
    }

    /// Same as [`Self::of`], with the code that counts.
    pub(crate) fn of_counted(compiled: &Compiled, code: &CountedCode) -> Result<Self> {
        let plain = Self::of(compiled)?;
        Ok(Self {
            object: code.object.clone(),
            counters: code.counters.clone(),
            memory: Memory { profile_counters: code.counters.len(), ..plain.memory },
            ..plain
        })
    }

    /// Same as [`Self::of`], for a program with several modules.
    fn of_modules(program: &Program, code: &MachineCode, constants: &ConstantsBlock) -> Result<Self> {
        let largest = program.sized.last().map_or(&program.module, |sized| &sized.module);
        let mut loadable = Self::of_code(largest, program.interface.clone(), code, constants)?;
        loadable.memory.takes_true_sizes = !program.sized.is_empty();
        Ok(loadable)
    }

    fn of_code(
        module: &Module,
        interface: Interface,
        code: &MachineCode,
        constants: &ConstantsBlock,
    ) -> Result<Self> {
        refuse_functions(module)?;
        let (root, instructions) = (module.entry(), module.entry_computation().instructions());
        Ok(Self {
            object: code.output.object.clone(),
            constants: loaded(constants)?,
            interface,
            counters: code.counters.clone(),
            memory: match code.device {
                None => Memory {
                    temps_bytes: code.assignment.temps_size as usize,
                    scratch_bytes: code.assignment.worker_scratch_size as usize,
                    profile_counters: code.counters.len(),
                    takes_true_sizes: false,
                },
                // The temporaries are on the device.
                Some(_) => Memory::default(),
            },
            persistent_bytes: code.assignment.persistent_size,
            cost: instructions.map(|(id, _)| Cost::of_instruction(module, root, id)).sum(),
            is_cached: false,
        })
    }

    /// Number of bytes at the start of the temps that persist across runs.
    pub fn persistent_bytes(&self) -> u64 {
        self.persistent_bytes
    }

    /// Cost of a run.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// True if it was read from the cache instead of being compiled.
    pub fn is_cached(&self) -> bool {
        self.is_cached
    }

    fn encode(&self, key: &str) -> Vec<u8> {
        let message = Entry {
            object: self.object.clone(),
            constants: self.constants.to_vec(),
            counters: self.counters.iter().map(Counted::of).collect(),
            temps_bytes: self.memory.temps_bytes as u64,
            scratch_bytes: self.memory.scratch_bytes as u64,
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

    fn decode(key: &str, entry: &[u8], interface: Interface, takes_true_sizes: bool) -> Option<Self> {
        let message = Entry::decode(unseal(MAGIC, key, entry)?).ok()?;
        let [flops, transcendentals, bytes_read, bytes_written] = message.cost[..] else { return None };
        Some(Self {
            constants: AlignedBytes::from_bytes(&message.constants).ok()?,
            interface,
            memory: Memory {
                temps_bytes: message.temps_bytes as usize,
                scratch_bytes: message.scratch_bytes as usize,
                profile_counters: message.counters.len(),
                takes_true_sizes,
            },
            counters: message.counters.into_iter().map(Counted::counter).collect(),
            persistent_bytes: message.persistent_bytes,
            cost: Cost { flops, transcendentals, bytes_read, bytes_written },
            object: message.object,
            is_cached: true,
        })
    }
}

/// Copies the constants into one block of memory.
fn loaded(constants: &ConstantsBlock) -> Result<AlignedBytes> {
    let size = usize::try_from(constants.size)
        .map_err(|_| Error::unsupported(format!("{} bytes of constants", constants.size)))?;
    let chunks = constants.chunks.iter().map(|(offset, bytes)| (*offset, bytes.as_ref())).collect();
    let mut block = AlignedBytes::zeroed(size)?;
    codegen::Constants { size: constants.size, chunks }.copy_to(&mut block)?;
    Ok(block)
}

/// Rejects calls of the user's functions, which must be linked.
fn refuse_functions(module: &Module) -> Result<()> {
    for (_, computation) in module.computations() {
        for (_, instruction) in computation.instructions() {
            if let Some(CustomCallKind::Function { symbol, .. }) = custom_call(instruction.op()) {
                return Err(Error::unsupported(format!(
                    "node '{}' (op {}) calls the C function '{symbol}', which is not available in this process: compile ahead of \
                     time (tfcompile build) and link it, or feed the node's result",
                    instruction.metadata().op_name,
                    instruction.metadata().op_type
                )));
            }
        }
    }
    Ok(())
}

/// Contents of an entry.
#[derive(Clone, PartialEq, Message)]
struct Entry {
    #[prost(bytes = "vec", tag = "1")]
    object: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    constants: Vec<u8>,
    #[prost(message, repeated, tag = "3")]
    counters: Vec<Counted>,
    #[prost(uint64, tag = "4")]
    temps_bytes: u64,
    #[prost(uint64, tag = "5")]
    scratch_bytes: u64,
    #[prost(uint64, tag = "6")]
    persistent_bytes: u64,
    /// The fields of [`Cost`], in their order.
    #[prost(uint64, repeated, tag = "7")]
    cost: Vec<u64>,
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

    /// `2 x + y`, whose result replaces `y`, with a constant too large to be printed.
    fn module(first: f32) -> Program {
        let elements: String = (0..20).map(|k| format!("{}, ", if k == 7 { first } else { 2.0 })).collect();
        let module = hlo::text::parse(&format!(
            "HloModule m, input_output_alias={{ {{0}}: (1, {{}}, must-alias) }}\n\n\
             ENTRY e {{\n  x = f32[20] parameter(0)\n  y = f32[20] parameter(1)\n  \
             two = f32[20] constant({{{}}})\n  product = f32[20] multiply(x, two)\n  \
             sum = f32[20] add(product, y)\n  ROOT r = (f32[20]) tuple(sum)\n}}\n",
            elements.trim_end_matches(", ")
        ))
        .expect("a module");
        let interface = Interface::of_module(&module).expect("arrays");
        Program::new(module, interface)
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
    fn a_cached_module_equals_the_compiled_one() {
        let cache = Arc::new(Memory::default());
        let compiled = compile_loadable(module(2.0), &options(&cache)).expect("compiled");
        assert!(!compiled.is_cached());
        let cached = compile_loadable(module(2.0), &options(&cache)).expect("cached");
        assert!(cached.is_cached());
        assert_eq!(
            (cached.cost(), cached.persistent_bytes()),
            (compiled.cost(), compiled.persistent_bytes())
        );
        assert_eq!(cached.interface, compiled.interface);
        assert_eq!(cached.interface.results()[0].alias, Some(1), "it aliases the second argument");
        let expected: Vec<f32> = (0..20u8).map(|k| 2.0 * f32::from(k) + 1.0).collect();
        assert_eq!((run(cached), run(compiled)), (expected.clone(), expected));
        assert_eq!(cache.entries.lock().expect("whole").len(), 1, "only the whole module is cached");
    }

    /// Each of these changes the program: a constant that the text omits, the options, the
    /// compiler.
    #[test]
    fn the_key_contains_everything_that_affects_the_code() {
        let cache = Arc::new(Memory::default());
        let other = Arc::new(Memory { compiler: "another build".to_owned(), ..Memory::default() });
        let is_cached =
            |module, options: &BackOptions| compile_loadable(module, options).expect("compiled").is_cached();
        assert!(!is_cached(module(2.0), &options(&cache)));
        assert!(!is_cached(module(3.0), &options(&cache)));
        let passes = BackOptions { disabled_passes: vec!["fusion".to_owned()], ..options(&cache) };
        assert!(!is_cached(module(2.0), &passes));
        for (key, entry) in cache.entries.lock().expect("whole").iter() {
            other.put(key, entry);
        }
        assert!(!is_cached(module(2.0), &options(&other)));
        assert!(is_cached(module(2.0), &options(&cache)) && is_cached(module(2.0), &passes));
    }

    #[test]
    fn truncated_modified_and_swapped_entries_are_misses() {
        let cache = Arc::new(Memory::default());
        let compiled = compile_loadable(module(2.0), &options(&cache)).expect("compiled");
        let entry = compiled.encode("k");
        let decode =
            |key: &str, entry: &[u8]| Loadable::decode(key, entry, compiled.interface.clone(), false);
        assert!(decode("k", &entry).is_some() && decode("l", &entry).is_none());
        for at in (0..entry.len()).step_by(7) {
            assert!(decode("k", &entry[..at]).is_none(), "the first {at} bytes");
            let mut changed = entry.clone();
            changed[at] ^= 0x10;
            assert!(decode("k", &changed).is_none(), "byte {at}");
        }
        for entry in cache.entries.lock().expect("whole").values_mut() {
            entry.truncate(entry.len() / 2);
        }
        let again = compile_loadable(module(2.0), &options(&cache)).expect("compiled");
        assert!(!again.is_cached());
        assert!(
            compile_loadable(module(2.0), &options(&cache)).expect("kept").is_cached(),
            "the entry was replaced"
        );
    }
}
