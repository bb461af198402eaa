//! Tables that `tidy` enforces. A change of structure is a change here and is reviewed as such.

/// Crates of the workspace that each crate may depend on: the arrows of `ARCHITECTURE.md`.
/// Development dependencies are not restricted, except that only tests may use `filetest`.
pub const EDGES: &[(&str, &[&str])] = &[
    ("support", &[]),
    ("terminal", &[]),
    // Part of users' programs, so a dependency here would be one of theirs.
    ("tfcompile-runtime", &[]),
    ("tfcompile-build", &[]),
    ("shape", &["support"]),
    ("hlo", &["support", "shape"]),
    ("evaluator", &["support", "shape", "hlo"]),
    ("bounded", &["support", "shape", "hlo", "evaluator"]),
    ("composite", &["support", "shape", "hlo"]),
    ("flatbuffer", &["support"]),
    ("mlir", &["support", "shape"]),
    ("stablehlo", &["support", "shape", "hlo", "bounded", "composite", "flatbuffer", "mlir"]),
    ("picture", &["support", "shape", "hlo"]),
    ("report", &["support", "terminal"]),
    ("tf", &["support", "shape"]),
    ("tflite", &["support", "shape", "flatbuffer", "tf"]),
    ("tfjs", &["support", "shape", "tf"]),
    ("onnx", &["support", "shape", "tf"]),
    ("trace", &["tf"]),
    ("cluster", &["support", "tf"]),
    ("import", &["support", "shape", "hlo", "tf", "bounded", "composite", "mlir", "stablehlo"]),
    ("passes", &["support", "shape", "hlo", "evaluator", "composite"]),
    ("quantize", &["support", "shape", "hlo", "passes"]),
    ("target", &["support"]),
    ("plan", &["support", "shape", "hlo", "target"]),
    ("buffers", &["support", "shape", "hlo", "plan"]),
    ("nest", &["support"]),
    ("routines", &["support", "nest"]),
    ("wasm", &["support"]),
    ("kernel", &["support", "shape", "hlo", "target", "plan", "buffers", "nest"]),
    ("codegen", &["support", "target", "nest", "routines", "wasm"]),
    ("csource", &["support", "target", "nest"]),
    ("aot", &["support", "shape", "hlo", "codegen", "nest", "wasm"]),
    ("device", &["support", "tfcompile-runtime"]),
    ("jit", &["support", "shape", "hlo", "codegen", "device", "tfcompile-runtime"]),
    (
        "compiler",
        &[
            "support",
            "shape",
            "hlo",
            "evaluator",
            "mlir",
            "stablehlo",
            "tf",
            "tflite",
            "tfjs",
            "onnx",
            "bounded",
            "import",
            "passes",
            "target",
            "plan",
            "buffers",
            "nest",
            "kernel",
            "codegen",
            "csource",
            "aot",
            "jit",
        ],
    ),
    (
        "runner",
        &[
            "support",
            "terminal",
            "shape",
            "hlo",
            "evaluator",
            "target",
            "buffers",
            "nest",
            "codegen",
            "jit",
            "compiler",
            "quantize",
            "report",
            "trace",
        ],
    ),
    ("session", &["support", "shape", "hlo", "tf", "cluster", "import", "jit", "compiler", "trace"]),
    ("tfcompile", &["support", "shape", "tf", "cluster", "compiler", "session", "trace"]),
    ("npz", &["support", "shape"]),
    (
        "cli",
        &[
            "support",
            "terminal",
            "cluster",
            "compiler",
            "stablehlo",
            "tf",
            "target",
            "codegen",
            "aot",
            "shape",
            "hlo",
            "runner",
            "session",
            "npz",
            "picture",
            "report",
            "trace",
        ],
    ),
    // Loaded by a server, so a dependency here is loaded, too: no compiler.
    ("triton", &["support", "shape", "hlo", "aot", "device", "tfcompile-runtime"]),
    ("recorded", &["support", "shape", "npz"]),
    ("gpu-check", &["support", "shape", "recorded", "device"]),
    // Uses `tf` to read the graphs of cases as the command line does.
    (
        "conformance",
        &[
            "support",
            "shape",
            "npz",
            "recorded",
            "hlo",
            "evaluator",
            "mlir",
            "stablehlo",
            "target",
            "tf",
            "nest",
            "codegen",
            "compiler",
        ],
    ),
    (
        "filetest",
        &[
            "support",
            "shape",
            "hlo",
            "evaluator",
            "tf",
            "import",
            "passes",
            "target",
            "plan",
            "buffers",
            "nest",
            "kernel",
            "codegen",
            "jit",
            "compiler",
            "npz",
        ],
    ),
    ("xtask", &[]),
];

/// Crates that may read or write files, start processes, or read the environment or the clock, with
/// the reason.
pub const IO_ALLOWED: &[(&str, &str)] = &[
    ("cli", "the command line: reads inputs, writes outputs"),
    ("conformance", "test runners: case files, child processes, times"),
    ("recorded", "test runners: case files"),
    ("gpu-check", "measures programs on another machine: files, times"),
    ("filetest", "test runner: reads and, on request, rewrites test files"),
    ("runner", "measures how long runs take"),
    ("session", "ops that save and restore checkpoints; traces read the clock"),
    ("tf", "maps model files"),
    ("tfcompile-build", "build scripts: runs the tool"),
    (
        "tfcompile-runtime",
        "the user's programs: reads constants files, ends the process when an assert fails",
    ),
    ("triton", "reads libraries and constants files of a server's model repository"),
    ("xtask", "reads the repository"),
];

/// Single uses outside those crates: file, word, reason.
pub const IO_EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "crates/codegen/src/llvm.rs",
        "std::process",
        "LLVM does not return from a fatal error; the process ends with one message and status 1 instead of an abort",
    ),
    ("crates/kernel/benches/every_single.rs", "std::env", "a measurement's command line"),
];

/// Words by which source names IO. Tests and comments may contain them.
pub const IO_WORDS: &[&str] = &[
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::time::Instant",
    "SystemTime",
    "File::open",
    "File::create",
    "Mmap",
];

/// The only crate that may name LLVM.
pub const LLVM_CRATE: &str = "codegen";
/// Packages that bind LLVM.
pub const LLVM_PACKAGES: &[&str] = &["inkwell", "llvm-sys"];

/// Types that only their own crate constructs, so that every value of them has passed its checks:
/// crate, type, reason. They are `#[non_exhaustive]`, so that the compiler rejects literals
/// elsewhere, and do not implement `Default`.
pub const SEALED_TYPES: &[(&str, &str, &str)] = &[
    ("tf", "Graph", "its inputs are resolved and its types checked"),
    ("tf", "Node", "its attributes have the defaults of its op, and name the node"),
    ("tf", "Program", "front ends other than TensorFlow's describe programs by `hlo::Interface`"),
];

/// The most lines of a source file, inline tests not counted.
pub const MAX_LINES: usize = 600;

/// Files that may be longer, with the reason.
pub const LONG_FILES: &[(&str, &str)] = &[];

/// The most lines of a page, by the longest matching prefix of its path. A page answers one question.
pub const PAGE_LIMITS: &[(&str, usize)] = &[
    ("docs/", 250),
    // A reference that is generated from a schema.
    ("docs/json.md", 400),
    ("README.md", 150),
];

/// The most bytes of a committed file, by the longest matching prefix of its path.
pub const SIZE_LIMITS: &[(&str, u64)] = &[
    ("", 128 << 10),
    // One line for each digit of the data set.
    ("examples/digits/", 512 << 10),
    ("tests/conformance/", 32 << 10),
    ("tests/oracle/", 64 << 10),
    // An archive has all cases of an operator, each a model of about 1 kB.
    ("tests/tflite/", 512 << 10),
    // An archive has the smallest cases of all operators.
    ("tests/onnx/", 1 << 20),
    // The table of TensorFlow's op signatures, generated.
    ("crates/tf/", 512 << 10),
    ("Cargo.lock", 256 << 10),
];

/// File names that do not say what the file holds.
pub const DRAWER_NAMES: &[&str] = &["utils", "util", "misc", "common", "other", "base", "helpers"];

/// The most `.rs` files directly in a folder.
pub const MAX_FILES_IN_FOLDER: usize = 30;

/// Siblings that may use each other in a cycle: their folder, their names, and the reason.
pub type Cycle = (&'static str, &'static [&'static str], &'static str);

/// Import cycles that are inherent: recursive grammars, and analyses that need each other.
pub const CYCLES: &[Cycle] = &[
    (
        "crates/composite/src",
        &["expression", "function"],
        "recursive grammar: expressions call functions of expressions",
    ),
    (
        "crates/hlo/src/analysis",
        &["condition", "induction", "range", "trip_count"],
        "ranges in a loop follow from its trip count, which follows from ranges",
    ),
    (
        "crates/hlo/src/text",
        &["computation", "instruction", "parser"],
        "recursive grammar: an instruction may hold computations in braces",
    ),
    ("crates/mlir/src", &["attribute", "types"], "attributes hold types, and types attributes"),
    (
        "crates/mlir/src/bytecode",
        &["builtin", "pool", "vhlo"],
        "attributes and types of each dialect refer to others by number",
    ),
    (
        "crates/mlir/src/text",
        &["attribute", "dense", "dialect", "types"],
        "recursive grammar: attributes hold types, and types attributes",
    ),
    (
        "crates/mlir/src/text",
        &["assembly", "forms", "operation"],
        "recursive grammar: operations hold regions of operations",
    ),
    (
        "crates/tf/src/freeze",
        &["convert", "functions"],
        "bodies call functions, whose bodies are converted for the call",
    ),
];

/// The most columns of a line that holds a comment.
pub const MAX_COMMENT: usize = 100;

/// Stems of British spelling, in lower case, and the American ones.
pub const BRITISH: &[(&str, &str)] = &[
    ("artefact", "artifact"),
    ("behaviour", "behavior"),
    ("canonicalis", "canonicaliz"),
    ("catalogue", "catalog"),
    ("centred", "centered"),
    ("colour", "color"),
    ("favour", "favor"),
    ("finalis", "finaliz"),
    ("generalis", "generaliz"),
    ("honour", "honor"),
    ("initialis", "initializ"),
    ("judgement", "judgment"),
    ("labelled", "labeled"),
    ("licence", "license"),
    ("linearis", "lineariz"),
    ("materialis", "materializ"),
    ("maximis", "maximiz"),
    ("minimis", "minimiz"),
    ("modelled", "modeled"),
    ("neighbour", "neighbor"),
    ("normalis", "normaliz"),
    ("optimis", "optimiz"),
    ("organis", "organiz"),
    ("parallelis", "paralleliz"),
    ("quantis", "quantiz"),
    ("randomis", "randomiz"),
    ("recognis", "recogniz"),
    ("serialis", "serializ"),
    ("specialis", "specializ"),
    ("stabilis", "stabiliz"),
    ("summaris", "summariz"),
    ("symmetris", "symmetriz"),
    ("tokenis", "tokeniz"),
    ("utilis", "utiliz"),
    ("vectoris", "vectoriz"),
];

/// Files that keep the spelling of their source: the start of their paths, and why.
pub const SPELLED_BY_OTHERS: &[(&str, &str)] =
    &[("tests/conformance/", "recorded cases"), ("tests/oracle/", "recorded programs")];

/// Phrases that a reader has to decode, in lower case, and what to write instead.
pub const PHRASES: &[(&str, &str)] = &[
    ("are wanted", "\"expected\" or \"required\""),
    ("behind", "\"after\""),
    ("in front of", "\"before\""),
    ("is wanted", "\"expected\" or \"required\""),
    ("lacks", "\"missing\""),
    ("nobody", "\"nothing\" or \"no consumer\""),
    ("so many", "the quantity's name"),
    ("somebody", "\"another reader\" or \"a consumer\""),
    ("told", "\"reported\""),
    ("whoever", "the caller's name"),
];

/// Words that open a clause. A doc comment opens with a noun or a verb.
pub const CLAUSE_OPENERS: &[&str] = &["How", "What", "Whether", "Which", "Who", "Whom", "Whose"];
