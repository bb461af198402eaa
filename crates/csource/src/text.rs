//! Texts of C: expressions with their precedence, names, and comments.

use std::collections::BTreeSet;

/// Precedence of an expression's outermost operator, from loose to tight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Any operator that needs parentheses in every other expression.
    Loose,
    Add,
    Multiply,
    /// A cast or an operator with one operand.
    Unary,
    /// A name, a constant, a call, or a subscript.
    Primary,
}

/// An expression of C.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) level: Level,
    /// True if its value depends on memory.
    pub(crate) reads: bool,
}

impl Text {
    pub(crate) fn new(level: Level, text: impl Into<String>) -> Self {
        Self { text: text.into(), level, reads: false }
    }

    pub(crate) fn primary(text: impl Into<String>) -> Self {
        Self::new(Level::Primary, text)
    }

    /// The text as an operand of an operator that binds as tight as `level`.
    pub(crate) fn at(&self, level: Level) -> String {
        if self.level >= level { self.text.clone() } else { format!("({})", self.text) }
    }

    /// The text converted to a type.
    pub(crate) fn cast(&self, ty: &str) -> Self {
        Self { text: format!("({ty}){}", self.at(Level::Unary)), level: Level::Unary, reads: self.reads }
    }
}

/// Returns a text whose characters are those of identifiers.
pub(crate) fn identifier(text: &str) -> String {
    let clean = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut name: String = text.chars().map(clean).collect();
    while name.contains("__") {
        name = name.replace("__", "_");
    }
    let name = name.trim_matches('_');
    if name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() {
        format!("x{name}")
    } else {
        name.to_owned()
    }
}

/// Returns a text that may stand in a comment.
pub(crate) fn comment(text: &str) -> String {
    let clean = |c: char| if c.is_ascii_graphic() && c != '\\' || c == ' ' { c } else { '?' };
    let text: String = text.chars().map(clean).collect();
    text.replace("*/", "* /").replace("/*", "/ *").replace("//", "/ /").replace("??", "? ?")
}

/// Names of a function that are in use.
#[derive(Default)]
pub(crate) struct Names {
    taken: BTreeSet<String>,
}

/// Words that cannot be names of variables: those of C and C++, of its headers, and of OpenCL C.
const WORDS: &[&str] = &[
    "auto", "bool", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
    "extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return",
    "short", "signed", "sizeof", "static", "struct", "switch", "true", "false", "typedef", "union",
    "unsigned", "void", "volatile", "while", "asm", "near", "far", "kernel", "global", "local", "private",
    "constant", "half", "uint", "uchar", "ushort", "ulong", "size_t", "memcpy", "memset", "main", "unix",
    "linux", "i386", "abs", "min", "max", "select", "shuffle", "mix", "step", "sign", "exp", "log", "sin",
    "cos", "fma", "fabs", "sqrt", "floor", "ceil", "trunc", "rint", "clz", "popcount", "barrier", "index",
    "y0", "y1", "j0", "j1", "yn", "jn", "gamma", "status",
];

impl Names {
    /// Returns a name that no other variable has.
    pub(crate) fn unique(&mut self, base: &str) -> String {
        let mut name = base.to_owned();
        let mut number = 2;
        while WORDS.contains(&name.as_str()) || !self.taken.insert(name.clone()) {
            name = format!("{base}{number}");
            number += 1;
        }
        name
    }
}

/// The names and numbers of a text.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// True if a text mentions a name.
pub(crate) fn mentions(text: &str, name: &str) -> bool {
    words(text).any(|word| word == name)
}
