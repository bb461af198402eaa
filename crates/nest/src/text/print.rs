//! Printer of programs as text.

use std::fmt::{self, Display, Formatter, Result};

use super::{BINARY, CONVERSIONS, GROUPS, MATRICES, PREDICATES, UNARY, name_of, tiles};
use crate::language::*;

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (i, function) in self.functions.values().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{function}")?;
        }
        Ok(())
    }
}

impl Display for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let linkage = match self.linkage {
            Linkage::Entry => "entry",
            Linkage::Internal => "internal",
            Linkage::Inline => "inline",
            Linkage::Kernel { .. } => "kernel",
            Linkage::Routine => "routine",
        };
        f.write_str(linkage)?;
        if let Linkage::Kernel { threads } = self.linkage {
            write!(f, " {threads}")?;
        }
        write!(f, " fn {} (", Quoted(&self.name))?;
        for (i, parameter) in self.parameters.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            let value = parameter.value;
            write!(f, "{comma}{value} {}: {}", Quoted(&parameter.name), Typed(self, value))?;
            let facts = parameter.pointer;
            f.write_str(if facts.no_alias { " noalias" } else { "" })?;
            f.write_str(if facts.read_only { " readonly" } else { "" })?;
            if facts.alignment != 1 {
                write!(f, " align {}", facts.alignment)?;
            }
        }
        f.write_str(") {\n")?;
        let printer = Printer { function: self };
        printer.block(f, &self.body, 1)?;
        f.write_str("}\n")
    }
}

/// A quoted string that can be parsed back.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("\"")?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                c if c.is_control() => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("\"")
    }
}

/// Prints the type of a value, or `?` if the function has no such value.
struct Typed<'a>(&'a Function, ValueId);

impl Display for Typed<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.0.values.get(self.1) {
            Some(ty) => ty.fmt(f),
            None => f.write_str("?"),
        }
    }
}

/// The first line of a statement, without its regions.
pub(crate) struct StatementHead<'a>(pub &'a Function, pub &'a Statement);

impl Display for StatementHead<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        Printer { function: self.0 }.head(f, self.1)
    }
}

/// Values separated by commas.
struct List<'a>(&'a [ValueId]);

impl Display for List<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (i, value) in self.0.iter().enumerate() {
            write!(f, "{}{value}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

struct Printer<'a> {
    function: &'a Function,
}

impl Printer<'_> {
    fn block(&self, f: &mut Formatter<'_>, block: &Block, depth: usize) -> Result {
        for statement in &block.statements {
            indent(f, depth)?;
            self.head(f, statement)?;
            match statement {
                Statement::For { body, .. } => self.region(f, body, depth, "\n")?,
                Statement::While { condition, body, .. } => {
                    self.region(f, condition, depth, " do")?;
                    self.region(f, body, depth, "\n")?;
                }
                Statement::If { then, otherwise, .. } => {
                    self.region(f, then, depth, " else")?;
                    self.region(f, otherwise, depth, "\n")?;
                }
                Statement::Let(..)
                | Statement::Store { .. }
                | Statement::Call { .. }
                | Statement::Parallel { .. }
                | Statement::CallExternal { .. }
                | Statement::LeaveIf { .. }
                | Statement::CopyBytes { .. }
                | Statement::FillBytes { .. }
                | Statement::Prefetch { .. }
                | Statement::Barrier
                | Statement::Tiles(_) => f.write_str("\n")?,
            }
        }
        if !block.yields.is_empty() {
            indent(f, depth)?;
            writeln!(f, "yield {}", List(&block.yields))?;
        }
        Ok(())
    }

    fn region(&self, f: &mut Formatter<'_>, block: &Block, depth: usize, after: &str) -> Result {
        f.write_str(" {\n")?;
        self.block(f, block, depth + 1)?;
        indent(f, depth)?;
        write!(f, "}}{after}")
    }

    fn head(&self, f: &mut Formatter<'_>, statement: &Statement) -> Result {
        match statement {
            Statement::Let(id, expression) => {
                write!(f, "{id}: {} = ", Typed(self.function, *id))?;
                self.expression(f, *id, expression)
            }
            Statement::Store { value, pointer, alignment, mask } => {
                write!(f, "store {value} to {pointer} align {alignment}")?;
                print_mask(f, *mask)
            }
            Statement::For { index, begin, end, step, carried, .. } => {
                self.results(f, carried.iter().map(|c| c.result))?;
                write!(f, "for {index} in {begin}..{end} step {step}")?;
                print_carried(f, carried)
            }
            Statement::While { carried, .. } => {
                self.results(f, carried.iter().map(|c| c.result))?;
                f.write_str("while")?;
                print_carried(f, carried)
            }
            Statement::If { condition, results, .. } => {
                self.results(f, results.iter().copied())?;
                write!(f, "if {condition}")
            }
            Statement::Call { function, arguments } => write!(f, "call {function} ({})", List(arguments)),
            Statement::Parallel { function, count, arguments } => {
                write!(f, "parallel {count} {function} ({})", List(arguments))
            }
            Statement::CallExternal { symbol, arguments, status } => {
                write!(f, "call_external {status} {symbol:?} ({})", List(arguments))
            }
            Statement::LeaveIf { condition, status } => write!(f, "leave_if {condition}, {status}"),
            Statement::CopyBytes { to, from, bytes } => write!(f, "copy_bytes {to}, {from}, {bytes}"),
            Statement::FillBytes { to, byte, bytes } => write!(f, "fill_bytes {to}, {byte}, {bytes}"),
            Statement::Prefetch { pointer, cache } => write!(f, "prefetch {cache} {pointer}"),
            Statement::Barrier => f.write_str("barrier"),
            Statement::Tiles(operation) => tiles::print(f, *operation),
        }
    }

    fn results(&self, f: &mut Formatter<'_>, results: impl Iterator<Item = ValueId>) -> Result {
        let mut any = false;
        for id in results {
            write!(f, "{}{id}: {}", if any { ", " } else { "" }, Typed(self.function, id))?;
            any = true;
        }
        if any { f.write_str(" = ") } else { Ok(()) }
    }

    fn expression(&self, f: &mut Formatter<'_>, id: ValueId, expression: &Expression) -> Result {
        match expression {
            Expression::Constant(Constant::Integer(value)) => write!(f, "constant {value}"),
            Expression::Constant(Constant::FloatBits(bits)) => {
                f.write_str("constant ")?;
                let scalar = self.function.values.get(id).map(|ty| ty.scalar);
                print_float(f, *bits, scalar == Some(ScalarType::F32))
            }
            Expression::Unary(op, a) => write!(f, "{} {a}", name_of(UNARY, op)),
            Expression::Binary(op, a, b) => write!(f, "{} {a}, {b}", name_of(BINARY, op)),
            Expression::MultiplyAdd(a, b, c) => write!(f, "multiply_add {a}, {b}, {c}"),
            Expression::GroupMultiplyAdd { kind, a, b, c } => {
                write!(f, "group_multiply_add {} {a}, {b}, {c}", name_of(GROUPS, kind))
            }
            Expression::MatrixMultiplyAdd { kind, a, b, c } => {
                write!(f, "matrix_multiply_add {} {a}, {b}, {c}", name_of(MATRICES, kind))
            }
            Expression::Compare(predicate, a, b) => {
                write!(f, "compare {} {a}, {b}", name_of(PREDICATES, predicate))
            }
            Expression::Select(condition, a, b) => write!(f, "select {condition}, {a}, {b}"),
            Expression::Convert(op, a) => write!(f, "convert {} {a}", name_of(CONVERSIONS, op)),
            Expression::Splat(a) => write!(f, "splat {a}"),
            Expression::Extract(vector, lane) => write!(f, "extract {vector}, {lane}"),
            Expression::Insert(vector, lane, scalar) => write!(f, "insert {vector}, {lane}, {scalar}"),
            Expression::Shuffle(a, b, lanes) => write!(f, "shuffle {a}, {b}, {lanes:?}"),
            Expression::Iota => f.write_str("iota"),
            Expression::Offset { pointer, index, scale } => write!(f, "offset {pointer} + {index} * {scale}"),
            Expression::Load { pointer, alignment, mask } => {
                write!(f, "load {pointer} align {alignment}")?;
                print_mask(f, *mask)
            }
            Expression::StackSlot { bytes, alignment } => write!(f, "stack_slot {bytes} align {alignment}"),
            Expression::FunctionAddress(function) => write!(f, "function_address {function}"),
            Expression::Bytes(bytes) => {
                f.write_str("bytes \"")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("\"")
            }
            Expression::ByteLookup { table, index } => {
                f.write_str("byte_lookup \"")?;
                table.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                write!(f, "\" {index}")
            }
            Expression::CycleCounter => f.write_str("cycle_counter"),
            Expression::Thread(ThreadIndex::Local) => f.write_str("thread"),
            Expression::Thread(ThreadIndex::Workgroup) => f.write_str("workgroup"),
            Expression::WorkgroupMemory { bytes, alignment } => {
                write!(f, "workgroup_memory {bytes} align {alignment}")
            }
        }
    }
}

fn indent(f: &mut Formatter<'_>, depth: usize) -> Result {
    (0..depth).try_for_each(|_| f.write_str("  "))
}

fn print_mask(f: &mut Formatter<'_>, mask: Option<ValueId>) -> Result {
    match mask {
        Some(mask) => write!(f, " mask {mask}"),
        None => Ok(()),
    }
}

fn print_carried(f: &mut Formatter<'_>, carried: &[Carried]) -> Result {
    if carried.is_empty() {
        return Ok(());
    }
    for (i, c) in carried.iter().enumerate() {
        write!(f, "{}{} = {}", if i == 0 { " carry (" } else { ", " }, c.inner, c.initial)?;
    }
    f.write_str(")")
}

/// Prints the shortest decimal that parses to the same value, or the bits in hexadecimal if there
/// is none.
fn print_float(f: &mut Formatter<'_>, bits: u64, single: bool) -> fmt::Result {
    match u32::try_from(bits) {
        Ok(bits) if single => {
            let value = f32::from_bits(bits);
            if value.is_finite() { write!(f, "{value:?}") } else { write!(f, "{bits:#010x}") }
        }
        _ => {
            let value = f64::from_bits(bits);
            if value.is_finite() && !single { write!(f, "{value:?}") } else { write!(f, "{bits:#018x}") }
        }
    }
}
