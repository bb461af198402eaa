//! Functions of the loop-nest language as functions of C: values become expressions or variables,
//! and regions become `for`, `while`, and `if`.

use crate::Options;
use crate::frame;
use crate::prelude::{Prelude, Vector, scalar_type};
use crate::spaces::Space;
use crate::text::{Level, Names, Text, identifier, words};
use crate::uses::{Magnitudes, Uses};
use nest::{Constant, Expression, Function, Linkage, Program, ScalarType, Type, ValueId};
use std::collections::BTreeMap;
use support::{Error, Id, Result};

/// Expressions do not become longer than this by folding others into them.
const MAX_TEXT: usize = 70;

/// The same, for the next value of a loop, which is a statement of its own.
const MAX_NEXT: usize = 160;

/// The form in which a value is available.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Undefined,
    /// An expression, printed where the value is used.
    Folded(Text),
    /// A variable or a constant.
    Named(String),
    /// The address of a field of the frame.
    Field(i64),
    /// A list of addresses in the frame.
    List(&'static str),
    /// The address of an element of such a list.
    Element(&'static str, i64),
}

/// Printer of one function.
pub(crate) struct Printer<'a, 'p> {
    pub(crate) prelude: &'p mut Prelude,
    pub(crate) options: &'a Options,
    pub(crate) program: &'a Program,
    pub(crate) symbols: &'a [String],
    /// The parameters of each function through which it writes.
    pub(crate) written: &'p [Vec<bool>],
    pub(crate) function: &'a Function,
    pub(crate) uses: Uses<'a>,
    pub(crate) magnitudes: Magnitudes,
    pub(crate) names: Names,
    pub(crate) places: Vec<Place>,
    /// Bytes of the lanes of masks.
    masks: Vec<usize>,
    /// Addresses through which memory may be written.
    pub(crate) mutable: Vec<bool>,
    /// The kind of memory of each address, in OpenCL C.
    pub(crate) spaces: Vec<Space>,
    /// Folded values that depend on memory and are not printed yet.
    pending: Vec<ValueId>,
    /// Declarations at the function's start.
    pub(crate) declarations: Vec<String>,
    pub(crate) lines: Vec<String>,
    /// Lines that declare constant variables, and the variables.
    declared: Vec<(usize, String)>,
    /// Functions that run parts of parallel calls.
    pub(crate) parts: Vec<(String, String)>,
    pub(crate) depth: usize,
    pub(crate) layout: nest::FrameLayout,
    /// Where the function depends on the size of an address.
    pub(crate) pointer_bytes: &'p mut Option<i64>,
}

impl<'a> Printer<'a, '_> {
    pub(crate) fn ty(&self, id: ValueId) -> Type {
        self.function.values[id]
    }

    /// Bytes of a mask's lanes; 4 for other values.
    pub(crate) fn mask_bytes(&self, id: ValueId) -> usize {
        self.masks[id.index()]
    }

    pub(crate) fn set_mask_bytes(&mut self, id: ValueId, bytes: usize) {
        self.masks[id.index()] = bytes;
    }

    /// The type of a value that is a vector.
    pub(crate) fn vector(&self, id: ValueId) -> Vector {
        let ty = self.ty(id);
        if ty.scalar == ScalarType::Bool {
            Vector::mask(self.mask_bytes(id), ty.lanes)
        } else {
            Vector::of(ty)
        }
    }

    /// C's type of a value.
    pub(crate) fn c_type(&mut self, id: ValueId) -> String {
        let ty = self.ty(id);
        if ty.lanes > 1 {
            let vector = self.vector(id);
            return self.prelude.vector(vector);
        }
        match ty.scalar {
            ScalarType::Ptr => self.pointer_type(id),
            scalar => scalar_type(scalar).to_owned(),
        }
    }

    /// A declaration of a variable, without its value.
    pub(crate) fn declaration(&mut self, id: ValueId, name: &str) -> String {
        let ty = self.c_type(id);
        if ty.ends_with('*') { format!("{ty}{name}") } else { format!("{ty} {name}") }
    }

    pub(crate) fn line(&mut self, text: impl AsRef<str>) {
        self.lines.push(format!("{}{}", "  ".repeat(self.depth), text.as_ref()));
    }

    /// Returns the text of a value where it is used.
    pub(crate) fn operand(&mut self, id: ValueId) -> Result<Text> {
        let place = self.places[id.index()].clone();
        Ok(match place {
            Place::Undefined => return Err(Error::internal(format!("{id} is used before its definition"))),
            Place::Folded(text) => {
                self.pending.retain(|&pending| pending != id);
                text
            }
            Place::Named(name) => Text::primary(name),
            Place::Field(0) => self.raw_frame(),
            Place::Field(offset) => {
                let text = self.raw_frame();
                Text { text: format!("{} + {offset}", text.text), level: Level::Add, reads: false }
            }
            Place::List(name) => {
                self.depends_on_addresses();
                Text::new(Level::Unary, format!("(unsigned char *)(uintptr_t)frame->{name}"))
            }
            Place::Element(name, number) => {
                self.depends_on_addresses();
                Text::new(Level::Unary, format!("(unsigned char *)(uintptr_t)&frame->{name}[{number}]"))
            }
        })
    }

    fn raw_frame(&mut self) -> Text {
        self.depends_on_addresses();
        Text::new(Level::Unary, "(unsigned char *)frame")
    }

    /// Notes that the text holds only for addresses of the target's size.
    pub(crate) fn depends_on_addresses(&mut self) {
        *self.pointer_bytes = Some(self.layout.pointer_bytes());
    }

    /// Like [`Self::operand`]; a mask gets lanes of the size of those of `like`.
    pub(crate) fn operand_as(&mut self, id: ValueId, like: ValueId) -> Result<Text> {
        let ty = self.ty(id);
        if ty.scalar == ScalarType::Bool && ty.lanes > 1 {
            let bytes = self.mask_bytes(like);
            return self.mask(id, bytes);
        }
        self.operand(id)
    }

    /// The text of a mask with lanes of a size.
    pub(crate) fn mask(&mut self, id: ValueId, bytes: usize) -> Result<Text> {
        let ty = self.ty(id);
        if let Some(Expression::Constant(constant)) = self.uses.definition(id) {
            return Ok(self.constant(ty, *constant, bytes));
        }
        let text = self.operand(id)?;
        if self.mask_bytes(id) == bytes {
            return Ok(text);
        }
        Ok(self.prelude.converted(&text, Vector::mask(bytes, ty.lanes)))
    }

    /// Defines a value by an expression: folds it into its use, or declares a variable.
    pub(crate) fn define(&mut self, id: ValueId, expression: &Expression) -> Result<()> {
        self.magnitudes.learn(self.function, id, expression);
        if self.uses.count(id) == 0 {
            return Ok(());
        }
        self.choose_mask(id, expression);
        if let Expression::StackSlot { bytes, alignment } | Expression::WorkgroupMemory { bytes, alignment } =
            expression
        {
            self.declare_memory(id, (*bytes).max(1), *alignment);
            return Ok(());
        }
        if let Some(place) = self.place_in_frame(id, expression) {
            self.places[id.index()] = place;
            return Ok(());
        }
        let text = self.expression(id, expression)?;
        let is_simple = match expression {
            Expression::Bytes(_) | Expression::FunctionAddress(_) | Expression::Constant(_) => true,
            Expression::Splat(a) => matches!(self.uses.definition(*a), Some(Expression::Constant(_))),
            _ => false,
        };
        let limit = if self.uses.is_yielded(id) { MAX_NEXT } else { MAX_TEXT };
        if is_simple || self.uses.is_local(id) && text.text.len() <= limit {
            if text.reads {
                self.pending.push(id);
            }
            self.places[id.index()] = Place::Folded(text);
            return Ok(());
        }
        self.declare(id, &text);
        Ok(())
    }

    /// Declares memory of the function or, in a kernel, of the workgroup.
    fn declare_memory(&mut self, id: ValueId, bytes: u64, alignment: u32) {
        let base =
            if self.is_opencl() && self.spaces[id.index()] == Space::Local { "shared" } else { "slot" };
        let name = self.names.unique(base);
        if self.is_opencl() {
            let space = self.spaces[id.index()].qualifier();
            let size = self.names.unique(&format!("{name}_bytes"));
            self.declare_size(&size, i64::try_from(bytes).unwrap_or(i64::MAX));
            self.declarations
                .push(format!("{space} uchar {name}[{size}] __attribute__((aligned({alignment})));"));
        } else {
            self.declarations.push(format!("TFC_ALIGNED({alignment}) unsigned char {name}[{bytes}];"));
        }
        self.places[id.index()] = Place::Named(name);
    }

    /// Declares a constant variable with a value.
    fn declare(&mut self, id: ValueId, text: &Text) {
        let base = self.base_name(id);
        let name = self.names.unique(&base);
        let declaration = self.declaration(id, &format!("const {name}"));
        // The constant is the variable, not what an address points to.
        let declaration = match declaration.split_once(" const ") {
            Some((ty, name)) if !ty.contains('*') => format!("const {ty} {name}"),
            _ => declaration,
        };
        self.declared.push((self.lines.len(), name.clone()));
        self.line(format!("{declaration} = {};", text.text));
        self.places[id.index()] = Place::Named(name);
    }

    /// Removes declarations of variables that are used only in loops that do not run.
    fn remove_unused(&mut self) {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for line in self.lines.iter().chain(&self.declarations) {
            for word in words(line) {
                *counts.entry(word.to_owned()).or_default() += 1;
            }
        }
        for (line, name) in std::mem::take(&mut self.declared).into_iter().rev() {
            if counts.get(&name) == Some(&1) {
                for word in words(&std::mem::take(&mut self.lines[line])) {
                    if let Some(count) = counts.get_mut(word) {
                        *count -= 1;
                    }
                }
            }
        }
        self.lines.retain(|line| !line.is_empty());
    }

    /// Prints folded values that depend on memory, before memory changes.
    pub(crate) fn flush(&mut self) {
        for id in std::mem::take(&mut self.pending) {
            if let Place::Folded(text) = self.places[id.index()].clone() {
                self.declare(id, &text);
            }
        }
    }

    /// The start of a variable's name.
    pub(crate) fn base_name(&self, id: ValueId) -> String {
        let ty = self.ty(id);
        let word = match (ty.scalar, self.uses.definition(id)) {
            (ScalarType::Ptr, Some(Expression::Offset { pointer, .. })) => {
                return match &self.places[pointer.index()] {
                    Place::Named(name) => {
                        let root = name.trim_end_matches(|c: char| c.is_ascii_digit());
                        if root == "at" {
                            root.to_owned()
                        } else {
                            format!("{}_at", root.trim_end_matches("_at"))
                        }
                    }
                    _ => "at".to_owned(),
                };
            }
            (ScalarType::Ptr, _) => "address",
            (ScalarType::Bool, _) => "is",
            (_, Some(Expression::Thread(nest::ThreadIndex::Local))) => "thread",
            (_, Some(Expression::Thread(nest::ThreadIndex::Workgroup))) => "group",
            (_, Some(Expression::Load { .. })) => "value",
            (_, Some(Expression::Constant(_) | Expression::Splat(_))) => "all",
            (_, Some(Expression::Compare(..))) => "is",
            (_, Some(Expression::MultiplyAdd(..) | Expression::GroupMultiplyAdd { .. })) => "sum",
            (ScalarType::F32 | ScalarType::F64, _) => "x",
            (ScalarType::I64, _) if ty.lanes == 1 => "n",
            _ => "bits",
        };
        word.to_owned()
    }

    /// Chooses the size of a mask's lanes: that of the numbers from which it is computed.
    fn choose_mask(&mut self, id: ValueId, expression: &Expression) {
        let ty = self.ty(id);
        if ty.scalar != ScalarType::Bool || ty.lanes == 1 {
            return;
        }
        let bytes = |printer: &Self, of: ValueId| match printer.ty(of).scalar {
            ScalarType::Bool => printer.mask_bytes(of),
            scalar => scalar.byte_size(),
        };
        let chosen = match expression {
            Expression::Compare(_, a, _) | Expression::Shuffle(a, _, _) | Expression::Insert(a, _, _) => {
                bytes(self, *a)
            }
            Expression::Convert(nest::ConvertOp::Truncate, a) => bytes(self, *a),
            Expression::Unary(_, a) => bytes(self, *a),
            Expression::Binary(_, a, b) | Expression::Select(_, a, b) => {
                let is_constant = matches!(self.uses.definition(*a), Some(Expression::Constant(_)));
                bytes(self, if is_constant { *b } else { *a })
            }
            _ => 4,
        };
        self.set_mask_bytes(id, chosen);
    }
}

/// Returns the declaration of a function.
pub(crate) fn signature(printer: &mut Printer<'_, '_>, symbol: &str) -> String {
    let function = printer.function;
    match function.linkage {
        Linkage::Entry => return format!("int32_t {symbol}(struct tfcompile_frame *frame)"),
        Linkage::Kernel { threads } => return printer.kernel_signature(symbol, threads),
        _ => {}
    }
    let mut list = Vec::new();
    for parameter in &function.parameters {
        let name = match &printer.places[parameter.value.index()] {
            Place::Named(name) => name.clone(),
            _ => "unused".to_owned(),
        };
        let qualified = if parameter.pointer.no_alias { format!("restrict {name}") } else { name };
        list.push(printer.declaration(parameter.value, &qualified));
    }
    let list = if list.is_empty() { "void".to_owned() } else { list.join(", ") };
    let inline = if function.linkage == Linkage::Inline { "TFC_INLINE " } else { "" };
    format!("static {inline}void {symbol}({list})")
}

/// Prints a function.
pub(crate) fn print<'a>(
    prelude: &mut Prelude,
    options: &'a Options,
    (program, symbols): (&'a Program, &'a [String]),
    written: &[Vec<bool>],
    (function, symbol): (&'a Function, &str),
    pointer_bytes: (&mut Option<i64>, nest::FrameLayout),
) -> Result<(String, Vec<bool>)> {
    let mutable = crate::uses::written_addresses(function, |callee, k| {
        written[callee.index()].get(k).copied().unwrap_or(true)
    });
    let spaces = if prelude.is_opencl { crate::spaces::of(function)? } else { Vec::new() };
    let mut printer = Printer {
        prelude,
        options,
        program,
        symbols,
        written,
        function,
        uses: Uses::new(function),
        magnitudes: Magnitudes::new(function),
        names: Names::default(),
        places: vec![Place::Undefined; function.values.len()],
        masks: vec![4; function.values.len()],
        mutable,
        spaces,
        pending: Vec::new(),
        declarations: Vec::new(),
        lines: Vec::new(),
        declared: Vec::new(),
        parts: Vec::new(),
        depth: 1,
        layout: pointer_bytes.1,
        pointer_bytes: pointer_bytes.0,
    };
    for parameter in &function.parameters {
        let place = if function.linkage == Linkage::Entry {
            printer.names.unique("frame");
            Place::Field(0)
        } else {
            Place::Named(printer.names.unique(&identifier(&parameter.name)))
        };
        printer.places[parameter.value.index()] = place;
    }
    let signature = signature(&mut printer, symbol);
    if let Linkage::Kernel { .. } = function.linkage {
        printer.begin_kernel();
    }
    printer.block(&function.body)?;
    if let Linkage::Kernel { .. } = function.linkage {
        printer.end_kernel();
    }
    printer.remove_unused();
    let is_entry = function.linkage == Linkage::Entry;
    let mut text = String::new();
    let mut known = std::collections::BTreeSet::new();
    for (name, part) in &printer.parts {
        if known.insert(name) {
            text += part;
            text.push('\n');
        }
    }
    text += &format!("{signature}\n{{\n");
    for declaration in &printer.declarations {
        text += &format!("  {declaration}\n");
    }
    for parameter in &function.parameters {
        if printer.uses.count(parameter.value) == 0 && !printer.is_opencl() {
            let name = if is_entry { "frame" } else { printer.name_of(parameter.value) };
            text += &format!("  (void){name};\n");
        }
    }
    for line in &printer.lines {
        text += line;
        text.push('\n');
    }
    if is_entry {
        text += "  return 0;\n";
    }
    text += "}\n";
    let written = function.parameters.iter().map(|p| printer.mutable[p.value.index()]).collect();
    Ok((text, written))
}

impl Printer<'_, '_> {
    pub(crate) fn name_of(&self, id: ValueId) -> &str {
        match &self.places[id.index()] {
            Place::Named(name) => name,
            _ => "frame",
        }
    }

    /// Returns the place of an address in the frame, or of what is loaded from there.
    fn place_in_frame(&mut self, id: ValueId, expression: &Expression) -> Option<Place> {
        match expression {
            Expression::Offset { pointer, index, scale } => {
                let Some(Expression::Constant(Constant::Integer(index))) = self.uses.definition(*index)
                else {
                    return None;
                };
                let offset = index * scale;
                match self.places[pointer.index()] {
                    Place::Field(first) => Some(Place::Field(first + offset)),
                    Place::List(name) if offset % self.layout.pointer_bytes() == 0 => {
                        Some(Place::Element(name, offset / self.layout.pointer_bytes()))
                    }
                    _ => None,
                }
            }
            Expression::Load { pointer, .. } if self.ty(id) == Type::PTR => {
                match self.places[pointer.index()] {
                    Place::Field(offset) => frame::list(self.layout, offset).map(Place::List),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The text of an address that is loaded from the frame or from one of its lists.
    pub(crate) fn loaded_from_frame(&mut self, id: ValueId, pointer: ValueId) -> Option<Text> {
        if self.ty(id) != Type::PTR {
            return None;
        }
        let place = match self.places[pointer.index()] {
            Place::Field(offset) => format!("frame->{}", frame::field(self.layout, offset)?),
            Place::List(name) => format!("frame->{name}[0]"),
            Place::Element(name, number) => format!("frame->{name}[{number}]"),
            _ => {
                self.depends_on_addresses();
                return None;
            }
        };
        let place = Text { text: place, level: Level::Primary, reads: true };
        let ty = self.c_type(id);
        Some(place.cast(ty.trim_end()))
    }

    /// The text of an address `pointer + index * scale`.
    pub(crate) fn offset(&mut self, pointer: ValueId, index: ValueId, scale: i64) -> Result<Text> {
        let at = self.operand(pointer)?;
        if let Some(Expression::Constant(Constant::Integer(index))) = self.uses.definition(index) {
            let offset = index * scale;
            let (sign, distance) =
                if offset < 0 { ('-', offset.unsigned_abs()) } else { ('+', offset as u64) };
            return Ok(match distance {
                0 => at,
                _ => Text {
                    text: format!("{} {sign} {distance}", at.at(Level::Add)),
                    level: Level::Add,
                    reads: at.reads,
                },
            });
        }
        let index = self.operand(index)?;
        let reads = at.reads || index.reads;
        let distance = match scale {
            1 => index.at(Level::Multiply),
            _ => format!("{scale} * {}", index.at(Level::Unary)),
        };
        Ok(Text { text: format!("{} + {distance}", at.at(Level::Add)), level: Level::Add, reads })
    }
}
