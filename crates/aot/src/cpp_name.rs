//! Validation of the names that the user chooses for C++ and C: the class and the entry point.

use std::fmt;
use support::{Error, Result};

/// A class name with its namespaces, outermost first. All parts are C++ identifiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CppClass {
    namespaces: Vec<String>,
    class_name: String,
}

impl CppClass {
    /// Enclosing namespaces, outermost first; may be empty.
    pub fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    /// Name of the class without namespaces.
    pub fn class_name(&self) -> &str {
        &self.class_name
    }

    /// All parts joined by `_`, as in the symbols of the metadata object.
    pub fn symbol_part(&self) -> String {
        let parts: Vec<&str> =
            self.namespaces.iter().map(String::as_str).chain([self.class_name.as_str()]).collect();
        parts.join("_")
    }
}

impl fmt::Display for CppClass {
    /// Formats the qualified name, `foo::bar::Comp`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for namespace in &self.namespaces {
            write!(f, "{namespace}::")?;
        }
        f.write_str(&self.class_name)
    }
}

/// Parses `--cpp_class`: `[[::]namespace::]...Class`. Errors use TensorFlow's wording, followed by
/// a suggestion.
pub fn parse_cpp_class(cpp_class: &str) -> Result<CppClass> {
    if cpp_class.is_empty() {
        return Err(Error::invalid("Must specify --cpp_class"));
    }
    let mut parts: Vec<&str> = cpp_class.split("::").collect();
    if parts[0].is_empty() && parts.len() > 1 {
        parts.remove(0);
    }
    let (class_name, namespaces) = parts.split_last().expect("split returns at least one part");
    for namespace in namespaces {
        validate_identifier(namespace, &format!("in namespace component of cpp_class: {cpp_class}"))?;
    }
    validate_identifier(class_name, &format!("in class name of cpp_class: {cpp_class}"))?;
    let outermost = parts[0];
    if outermost == "std" || namespaces.is_empty() && NAMESPACES.contains(class_name) {
        return Err(Error::invalid(format!(
            "in cpp_class: {cpp_class}: '{outermost}' is a namespace that the header uses; choose another name"
        )));
    }
    if MEMBER_NAMES.contains(class_name) {
        return Err(Error::invalid(format!(
            "in class name of cpp_class: {cpp_class}: '{class_name}' is the name of a member that every \
             generated class has; choose another"
        )));
    }
    Ok(CppClass {
        namespaces: namespaces.iter().map(ToString::to_string).collect(),
        class_name: class_name.to_string(),
    })
}

/// Checks `--entry_point`: it must be a C identifier that is not a keyword of C or C++, not `main`,
/// and not [taken](is_taken).
pub fn validate_entry_point(entry_point: &str) -> Result<()> {
    validate_identifier(entry_point, &format!("in entry_point: {entry_point}"))?;
    if entry_point == "main" {
        return Err(Error::invalid(
            "in entry_point: main: every program has a function of this name; choose another",
        ));
    }
    if is_taken(entry_point) {
        return Err(Error::invalid(format!(
            "in entry_point: {entry_point}: this name is taken by a function of the C library or by a namespace of the header; \
             choose another, such as {entry_point}_model"
        )));
    }
    Ok(())
}

/// True if `name` already has a meaning in a program that uses the C or C++ library or our headers.
pub fn is_taken(name: &str) -> bool {
    // The variants for other types: sinf, sinl.
    let root = name.strip_suffix(['f', 'l']).unwrap_or(name);
    NAMESPACES.contains(&name)
        || LIBRARY_FUNCTIONS.contains(&name)
        || MATHEMATICS.contains(&name)
        || MATHEMATICS.contains(&root)
}

/// Rejects a class outside of namespaces whose name equals a symbol that its header declares: the
/// name of the function would hide the class.
pub(crate) fn validate_distinct(class: &CppClass, entry_point: &str) -> Result<()> {
    let symbols = [
        entry_point.to_owned(),
        format!("{entry_point}_constants"),
        format!("{entry_point}_constants_pointer"),
    ];
    if class.namespaces.is_empty() && symbols.contains(&class.class_name) {
        return Err(Error::invalid(format!(
            "the class '{}' has the same name as a C symbol of the program, which would hide it: give the class another \
             name, or a namespace",
            class.class_name
        )));
    }
    Ok(())
}

/// True if `text` consists of ASCII letters, digits, and underscores and does not begin with a
/// digit.
pub fn is_identifier(text: &str) -> bool {
    identifier_defect(text).is_none()
}

/// True if `text` is a reserved word of C++17 or C11.
pub fn is_keyword(text: &str) -> bool {
    KEYWORDS.contains(&text)
}

fn identifier_defect(text: &str) -> Option<&'static str> {
    let mut chars = text.chars();
    match chars.next() {
        None => Some("empty identifier"),
        Some(c) if c != '_' && !c.is_ascii_alphabetic() => Some("illegal leading char"),
        Some(_) if chars.any(|c| c != '_' && !c.is_ascii_alphanumeric()) => Some("illegal char"),
        Some(_) => None,
    }
}

fn validate_identifier(text: &str, place: &str) -> Result<()> {
    if let Some(defect) = identifier_defect(text) {
        return Err(Error::invalid(format!(
            "{defect}: {place} (use ASCII letters, digits and '_', not beginning with a digit)"
        )));
    }
    if is_keyword(text) {
        return Err(Error::invalid(format!("{place}: '{text}' is a C++ keyword; choose another name")));
    }
    Ok(())
}

/// Members that every generated class has. A class with such a name would hide them.
#[rustfmt::skip]
pub(crate) const MEMBER_NAMES: &[&str] = &[
    "ArgSize", "EigenPoolUser", "GetArgName", "GetResultName", "GetVariableName", "HasNameIndices",
    "LookupArgIndex", "LookupResultIndex", "LookupVariableIndex", "ProgramShape", "Run", "StaticData",
    "arg_data", "arg_size", "args", "eigen_pool_user", "error_msg", "hlo_profile_printer_data",
    "hlo_profiling_enabled", "is_thunk_mode", "kArgNames", "kArgs", "kNumArgs", "kNumResults",
    "kNumVariables", "kParameterNames", "kProfileCounters", "kProfilePrinterData", "kProgramShape",
    "kResultNames", "kResults", "kVariableNames", "kVariableResults", "num_args", "num_results",
    "num_variables", "profile_counters", "result_data", "result_size", "results", "run_options",
    "set_arg_data", "set_error_msg", "set_parallel_for", "set_thread_pool",
];

/// Namespaces of the generated header and of the headers that it includes.
const NAMESPACES: &[&str] = &["Eigen", "std", "tensorflow", "tfcompile", "xla"];

/// Functions of C's `math.h` and `complex.h`, which have variants for other types.
#[rustfmt::skip]
const MATHEMATICS: &[&str] = &[
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cabs", "carg", "cbrt", "ceil", "cexp", "cimag", "clog",
    "conj", "copysign", "cos", "cosh", "cpow", "cproj", "creal", "csin", "csqrt", "ctan", "erf", "erfc", "exp", "exp2",
    "expm1", "fabs", "fdim", "floor", "fma", "fmax", "fmin", "fmod", "frexp", "gamma", "hypot", "ilogb", "ldexp",
    "lgamma", "llrint", "llround", "log", "log10", "log1p", "log2", "logb", "lrint", "lround", "modf", "nan",
    "nearbyint", "nextafter", "nexttoward", "pow", "remainder", "remquo", "rint", "round", "scalbln", "scalbn", "sin",
    "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc",
];

/// Other functions of the C library, and functions of POSIX with names that a user may choose for a
/// model.
#[rustfmt::skip]
const LIBRARY_FUNCTIONS: &[&str] = &[
    "abort", "abs", "accept", "access", "aligned_alloc", "alarm", "asctime", "atexit", "atof", "atoi", "atol", "atoll",
    "bind", "bsearch", "calloc", "chdir", "chmod", "chown", "clearerr", "clock", "close", "connect", "creat", "ctime",
    "difftime", "div", "dup", "exit", "fclose", "feof", "ferror", "fflush", "ffs", "fgetc", "fgets", "fopen", "fork",
    "fprintf", "fputc", "fputs", "fread", "free", "freopen", "fscanf", "fseek", "fstat", "ftell", "ftime", "fwrite",
    "getc", "getchar", "getenv", "getline", "getopt", "gets", "gmtime", "index", "ioctl", "isalnum", "isalpha",
    "iscntrl", "isdigit", "isgraph", "islower", "isprint", "ispunct", "isspace", "isupper", "isxdigit", "j0", "j1",
    "jn", "kill", "labs", "ldiv", "link", "listen", "llabs", "lldiv", "localtime", "longjmp", "lseek", "malloc", "memchr",
    "memcmp", "memcpy", "memmove", "memset", "mkdir", "mktime", "mmap", "munmap", "nice", "open", "pause", "perror",
    "pipe", "poll", "printf", "putc", "putchar", "puts", "qsort", "raise", "rand", "random", "read", "realloc", "recv",
    "remove", "rename", "rewind", "rindex", "rmdir", "scanf", "select", "send", "setbuf", "setenv", "setjmp", "setvbuf",
    "shutdown", "signal", "sleep", "snprintf", "socket", "sprintf", "srand", "srandom", "sscanf", "stat", "strcat",
    "strchr", "strcmp", "strcoll", "strcpy", "strcspn", "strdup", "strerror", "strftime", "strlen", "strncat",
    "strncmp", "strncpy", "strpbrk", "strrchr", "strspn", "strstr", "strtod", "strtof", "strtok", "strtol", "strtold",
    "strtoll", "strtoul", "strtoull", "strxfrm", "swab", "symlink", "sync", "syscall", "system", "time", "times",
    "tmpfile", "tmpnam", "tolower", "toupper", "truncate", "umask", "ungetc", "unlink", "usleep", "utime", "vfprintf",
    "vprintf", "vsnprintf", "vsprintf", "wait", "write", "y0", "y1", "yn",
];

#[rustfmt::skip]
const KEYWORDS: &[&str] = &[
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch",
    "char", "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield", "compl", "concept",
    "const", "const_cast", "consteval", "constexpr", "constinit", "continue", "decltype", "default", "delete",
    "do", "double", "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for",
    "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq",
    "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register", "reinterpret_cast",
    "requires", "restrict", "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast",
    "struct", "switch", "template", "this", "thread_local", "throw", "true", "try", "typedef", "typeid",
    "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq",
];

/// Rust's words that cannot be names and are not C++ keywords.
#[rustfmt::skip]
pub(crate) const RUST_KEYWORDS: &[&str] = &[
    "Self", "abstract", "as", "async", "await", "become", "box", "crate", "dyn", "final", "fn", "gen", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "self", "super", "trait", "type",
    "unsafe", "unsized", "use", "where", "yield",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_parse_with_and_without_namespaces() {
        let class = parse_cpp_class("foo::bar::Comp").unwrap();
        assert_eq!(class.namespaces(), ["foo", "bar"]);
        assert_eq!(class.class_name(), "Comp");
        assert_eq!(class.symbol_part(), "foo_bar_Comp");
        assert_eq!(parse_cpp_class("::foo::bar::Comp").unwrap(), class);
        assert_eq!(parse_cpp_class("Comp").unwrap().to_string(), "Comp");
        assert_eq!(parse_cpp_class("::Comp").unwrap().to_string(), "Comp");
        assert_eq!(parse_cpp_class("tensorflow::tfcompile::Comp").unwrap().namespaces().len(), 2);
    }

    #[test]
    fn bad_classes_are_named_in_the_words_of_tfcompile() {
        let cases = [
            ("", "Must specify --cpp_class"),
            ("a-b::c", "illegal char: in namespace component of cpp_class: a-b::c"),
            ("a::::c", "empty identifier: in namespace component of cpp_class: a::::c"),
            ("::", "empty identifier: in class name of cpp_class: ::"),
            ("a::", "empty identifier: in class name of cpp_class: a::"),
            ("::::a", "empty identifier: in namespace component of cpp_class: ::::a"),
            ("a:b", "illegal char: in class name of cpp_class: a:b"),
            ("a::9b", "illegal leading char: in class name of cpp_class: a::9b"),
            ("a::B c", "illegal char: in class name of cpp_class: a::B c"),
            ("new::B", "in namespace component of cpp_class: new::B: 'new' is a C++ keyword"),
            ("a::é", "illegal leading char: in class name"),
            ("a::Run", "'Run' is the name of a member"),
            ("tensorflow", "'tensorflow' is a namespace that the header uses"),
            ("std::B", "'std' is a namespace"),
        ];
        for (class, message) in cases {
            let error = parse_cpp_class(class).unwrap_err();
            assert!(
                error.message().starts_with(message) || error.message().contains(message),
                "{class}: {error}"
            );
        }
    }

    #[test]
    fn entry_points_are_c_identifiers() {
        assert!(validate_entry_point("__xla_tensorflow_compiler_aot_tests__test_graph_tfadd").is_ok());
        for (name, message) in [
            ("", "empty identifier: in entry_point"),
            ("a-b", "illegal char: in entry_point: a-b"),
            ("a:b", "illegal char: in entry_point: a:b"),
            ("1a", "illegal leading char: in entry_point: 1a"),
            ("int", "'int' is a C++ keyword"),
            ("main", "every program has a function of this name"),
            ("malloc", "in entry_point: malloc: this name is taken by a function of the C library"),
            ("sinf", "such as sinf_model"),
            ("tfcompile", "or by a namespace of the header"),
        ] {
            let error = validate_entry_point(name).unwrap_err();
            assert!(error.message().contains(message), "{name}: {error}");
        }
    }

    #[test]
    fn a_class_is_not_called_as_its_function() {
        let check = |class: &str, entry: &str| validate_distinct(&parse_cpp_class(class).unwrap(), entry);
        assert!(check("Mlp", "mlp").is_ok());
        assert!(check("ns::Mlp", "Mlp").is_ok());
        for class in ["Mlp", "Mlp_constants", "Mlp_constants_pointer"] {
            assert!(check(class, "Mlp").unwrap_err().message().contains(&format!("the class '{class}'")));
        }
    }
}
