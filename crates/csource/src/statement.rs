//! Statements of the loop-nest language as statements of C.

use crate::frame;
use crate::function::{Place, Printer};
use crate::text::{Level, Text, mentions};
use nest::{Block, Carried, Constant, Expression, FunctionId, ScalarType, Statement, Type, ValueId};
use support::{Error, Id, Result};

/// Names of the indices of nested loops.
const INDICES: [&str; 6] = ["i", "j", "k", "l", "m", "p"];

impl<'a> Printer<'a, '_> {
    /// Prints the statements of a region.
    pub(crate) fn block(&mut self, block: &'a Block) -> Result<()> {
        block.statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &'a Statement) -> Result<()> {
        match statement {
            Statement::Let(id, expression) => self.define(*id, expression),
            Statement::Store { value, pointer, alignment, mask } => {
                self.store(*value, *pointer, *alignment, *mask)
            }
            Statement::For { index, begin, end, step, carried, body } => {
                self.for_loop((*index, *begin, *end, *step), carried, body)
            }
            Statement::While { carried, condition, body } => self.while_loop(carried, condition, body),
            Statement::If { condition, results, then, otherwise } => {
                self.branch(*condition, results, then, otherwise)
            }
            Statement::Call { function, arguments } => {
                let list = self.arguments(*function, arguments)?;
                self.flush();
                self.line(format!("{}({});", self.symbols[function.index()], list.join(", ")));
                Ok(())
            }
            Statement::Parallel { function, count, arguments } => self.parallel(*function, *count, arguments),
            Statement::CallExternal { symbol, arguments, status } => {
                self.external(symbol, arguments, *status)
            }
            Statement::LeaveIf { condition, status } => {
                let (condition, status) = (self.operand(*condition)?, self.operand(*status)?);
                self.line(format!("if ({}) {{", condition.text));
                self.line(format!("  return {};", status.cast("int32_t").text));
                self.line("}");
                Ok(())
            }
            Statement::CopyBytes { to, from, bytes } => {
                let name = self.copy_function(*to, *from);
                let (to, from, bytes) = (self.operand(*to)?, self.operand(*from)?, self.operand(*bytes)?);
                self.flush();
                self.line(format!("{name}({}, {}, {});", to.text, from.text, bytes.cast("size_t").text));
                Ok(())
            }
            Statement::FillBytes { to, byte, bytes } => {
                let name = self.is_opencl().then(|| {
                    let to = self.access(*to, Type::scalar(ScalarType::I8), 1);
                    self.prelude.opencl_fill(to)
                });
                let (to, byte, bytes) = (self.operand(*to)?, self.operand(*byte)?, self.operand(*bytes)?);
                self.flush();
                if let Some(name) = name {
                    let bytes = bytes.cast("size_t").text;
                    self.line(format!("{name}({}, {}, {bytes});", to.text, byte.text));
                    return Ok(());
                }
                self.line(format!(
                    "(void)memset({}, (int){}, {});",
                    to.text,
                    byte.at(Level::Unary),
                    bytes.cast("size_t").text
                ));
                Ok(())
            }
            Statement::Prefetch { pointer, cache } => {
                if self.is_opencl() {
                    return Ok(());
                }
                let pointer = self.operand(*pointer)?;
                self.line(format!("TFC_PREFETCH({}, {});", pointer.text, 4 - cache));
                Ok(())
            }
            Statement::Barrier if self.is_opencl() => {
                self.flush();
                self.line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);");
                Ok(())
            }
            Statement::Barrier => Err(Error::internal("unexpected barrier outside a kernel of a device")),
            Statement::Tiles(_) => Err(Error::internal("C has no tile registers")),
        }
    }

    fn arguments(&mut self, callee: FunctionId, arguments: &[ValueId]) -> Result<Vec<String>> {
        let _ = callee;
        arguments.iter().map(|&argument| Ok(self.operand(argument)?.text)).collect()
    }

    /// The function that copies bytes.
    fn copy_function(&mut self, to: ValueId, from: ValueId) -> String {
        if !self.is_opencl() {
            return "(void)memcpy".to_owned();
        }
        let byte = Type::scalar(ScalarType::I8);
        let (to, from) = (self.access(to, byte, 1), self.access(from, byte, 1));
        self.prelude.opencl_copy(to, from)
    }

    fn store(
        &mut self,
        value: ValueId,
        pointer: ValueId,
        alignment: u32,
        mask: Option<ValueId>,
    ) -> Result<()> {
        let ty = self.ty(value);
        if let (Type::PTR, Place::Field(offset)) = (ty, &self.places[pointer.index()])
            && let Some(name) = frame::field(self.layout, *offset)
        {
            let text = self.operand(value)?.cast("const char *").text;
            self.flush();
            self.line(format!("frame->{name} = {text};"));
            return Ok(());
        }
        if ty == Type::PTR {
            self.depends_on_addresses();
        }
        let (text, at) = (self.operand(value)?, self.operand(pointer)?);
        let access = self.access(pointer, ty, alignment);
        let line = match mask {
            None if ty.lanes == 1 => {
                let at_text = at.text;
                format!("{}({at_text}, {});", self.prelude.store(access), text.text)
            }
            None => format!("{}({}, {});", self.prelude.store_vector(access), at.text, text.text),
            Some(mask) if ty.lanes == 1 => {
                let condition = self.operand(mask)?;
                self.flush();
                let name = self.prelude.store(access);
                self.line(format!("if ({}) {{", condition.text));
                self.line(format!("  {name}({}, {});", at.text, text.text));
                self.line("}");
                return Ok(());
            }
            Some(mask) => {
                let mask = self.mask(mask, ty.scalar.byte_size())?;
                format!("{}({}, {}, {});", self.prelude.store_masked(access), at.text, text.text, mask.text)
            }
        };
        self.flush();
        self.line(line);
        Ok(())
    }

    fn constant_of(&self, id: ValueId) -> Option<i64> {
        match self.uses.definition(id) {
            Some(Expression::Constant(Constant::Integer(value))) => Some(*value),
            _ => None,
        }
    }

    fn for_loop(
        &mut self,
        (index, begin, end, step): (ValueId, ValueId, ValueId, i64),
        carried: &[Carried],
        body: &'a Block,
    ) -> Result<()> {
        self.magnitudes.index(index, begin, end);
        if let (Some(first), Some(last)) = (self.constant_of(begin), self.constant_of(end)) {
            let trips = if last > first {
                (last as i128 - first as i128 + i128::from(step) - 1) / i128::from(step)
            } else {
                0
            };
            if trips == 0 {
                return self.pass_on(carried.iter().map(|c| (c.result, c.initial)));
            }
            if trips == 1 {
                self.places[index.index()] =
                    Place::Folded(crate::expression::integer(ScalarType::I64, first));
                self.pass_on(carried.iter().map(|c| (c.inner, c.initial)))?;
                self.block(body)?;
                return self.pass_on(carried.iter().zip(&body.yields).map(|(c, &last)| (c.result, last)));
            }
        }
        let first = self.operand(begin)?;
        let last = self.operand(end)?;
        self.start_carried(carried)?;
        self.flush();
        let name = INDICES[(self.loops()).min(INDICES.len() - 1)];
        let name = self.names.unique(name);
        let last = match self.constant_of(end) {
            Some(value) if value > 8 => {
                let constant = format!("{name}_end");
                let constant = self.names.unique(&constant);
                self.declare_size(&constant, value);
                constant
            }
            Some(value) => value.to_string(),
            None if last.level == Level::Primary && !last.reads => last.text,
            None => {
                let limit = self.names.unique(&format!("{name}_end"));
                self.line(format!("const int64_t {limit} = {};", last.text));
                limit
            }
        };
        let next = match step {
            1 => format!("{name}++"),
            _ => format!("{name} += {step}"),
        };
        self.line(format!("for (int64_t {name} = {}; {name} < {last}; {next}) {{", first.text));
        self.places[index.index()] = Place::Named(name);
        self.depth += 1;
        self.block(body)?;
        self.assign(carried, &body.yields)?;
        self.depth -= 1;
        self.line("}");
        self.finish_carried(carried);
        Ok(())
    }

    /// Declares the size of a loop as a named constant of the function.
    pub(crate) fn declare_size(&mut self, name: &str, value: i64) {
        let declaration = match i32::try_from(value) {
            Ok(value) => format!("enum {{ {name} = {value} }};"),
            Err(_) => format!("const int64_t {name} = INT64_C({value});"),
        };
        self.declarations.push(declaration);
    }

    fn loops(&self) -> usize {
        self.depth - 1
    }

    /// Gives values the places of other values.
    fn pass_on(&mut self, pairs: impl Iterator<Item = (ValueId, ValueId)>) -> Result<()> {
        let pairs: Vec<_> = pairs.collect();
        for (to, from) in pairs {
            if self.uses.count(to) == 0 {
                continue;
            }
            let bytes = self.mask_bytes(from);
            self.set_mask_bytes(to, bytes);
            match self.places[from.index()].clone() {
                Place::Folded(text)
                    if !text.reads && (text.level == Level::Primary && !text.text.contains('(')) =>
                {
                    self.places[to.index()] = Place::Folded(text);
                }
                Place::Folded(_) => {
                    let text = self.operand(from)?;
                    let name = self.names.unique(&self.base_name(to));
                    let declaration = self.declaration(to, &name);
                    self.line(format!("{declaration} = {};", text.text));
                    self.places[to.index()] = Place::Named(name);
                }
                place => self.places[to.index()] = place,
            }
        }
        Ok(())
    }

    /// True if a carried value is neither read in the loop nor after it.
    fn is_unused(&self, carried: &Carried) -> bool {
        self.uses.count(carried.inner) == 0 && self.uses.count(carried.result) == 0
    }

    /// Declares the variables of carried values.
    fn start_carried(&mut self, carried: &[Carried]) -> Result<()> {
        for c in carried {
            if self.is_unused(c) {
                continue;
            }
            let bytes = self.mask_bytes(c.initial);
            self.set_mask_bytes(c.inner, bytes);
            self.set_mask_bytes(c.result, bytes);
            let initial = self.operand_as(c.initial, c.inner)?;
            let ty = self.ty(c.inner);
            let base = match ty.scalar {
                ScalarType::Ptr => "address",
                ScalarType::Bool => "is",
                ScalarType::I64 if ty.lanes == 1 => "n",
                _ => "sum",
            };
            let name = self.names.unique(base);
            let declaration = self.declaration(c.inner, &name);
            self.line(format!("{declaration} = {};", initial.text));
            self.places[c.inner.index()] = Place::Named(name);
        }
        Ok(())
    }

    fn finish_carried(&mut self, carried: &[Carried]) {
        for c in carried {
            self.places[c.result.index()] = self.places[c.inner.index()].clone();
        }
    }

    /// Assigns the values for the next iteration, all at once.
    fn assign(&mut self, carried: &[Carried], yields: &[ValueId]) -> Result<()> {
        let mut moves: Vec<(String, Text, ValueId)> = Vec::new();
        for (c, &next) in carried.iter().zip(yields) {
            if self.is_unused(c) {
                continue;
            }
            let text = self.operand_as(next, c.inner)?;
            let Place::Named(name) = &self.places[c.inner.index()] else {
                return Err(Error::internal("a carried value has no variable"));
            };
            if text.text != *name {
                moves.push((name.clone(), text, c.inner));
            }
        }
        self.flush();
        while !moves.is_empty() {
            let is_free = |k: usize| {
                moves
                    .iter()
                    .enumerate()
                    .all(|(other, (_, text, _))| other == k || !mentions(&text.text, &moves[k].0))
            };
            match (0..moves.len()).find(|&k| is_free(k)) {
                Some(k) => {
                    let (name, text, _) = moves.remove(k);
                    self.line(format!("{name} = {};", text.text));
                }
                None => {
                    // A cycle: the first value waits in a variable.
                    let (name, text, id) = moves.remove(0);
                    let next = self.names.unique("next");
                    let declaration = self.declaration(id, &next);
                    self.line(format!("{declaration} = {};", text.text));
                    moves.push((name, Text::primary(next), id));
                }
            }
        }
        Ok(())
    }

    fn while_loop(&mut self, carried: &[Carried], condition: &'a Block, body: &'a Block) -> Result<()> {
        self.start_carried(carried)?;
        self.flush();
        let head = self.lines.len();
        // The loop's first line depends on the statements of its condition.
        self.lines.push(String::new());
        self.depth += 1;
        self.block(condition)?;
        let [again] = condition.yields[..] else {
            return Err(Error::internal("expected a loop condition that yields one Bool"));
        };
        let again = self.operand(again)?;
        self.flush();
        let has_statements = self.lines.len() > head + 1;
        let loop_head =
            if has_statements { "for (;;) {".to_owned() } else { format!("while ({}) {{", again.text) };
        self.lines[head] = format!("{}{loop_head}", "  ".repeat(self.depth - 1));
        if has_statements {
            self.line(format!("if (!({})) {{", again.text));
            self.line("  break;");
            self.line("}");
        }
        self.block(body)?;
        self.assign(carried, &body.yields)?;
        self.depth -= 1;
        self.line("}");
        self.finish_carried(carried);
        Ok(())
    }

    fn branch(
        &mut self,
        condition: ValueId,
        results: &[ValueId],
        then: &'a Block,
        otherwise: &'a Block,
    ) -> Result<()> {
        let condition = self.operand(condition)?;
        self.flush();
        for &result in results {
            if self.uses.count(result) == 0 {
                continue;
            }
            let base = self.base_name(result);
            let name = self.names.unique(&base);
            let declaration = self.declaration(result, &name);
            self.line(format!("{declaration};"));
            self.places[result.index()] = Place::Named(name);
        }
        self.line(format!("if ({}) {{", condition.text));
        self.region(results, then)?;
        let end = self.lines.len();
        self.line("} else {");
        self.region(results, otherwise)?;
        if self.lines.len() == end + 1 {
            self.lines.pop();
        }
        self.line("}");
        Ok(())
    }

    fn region(&mut self, results: &[ValueId], block: &'a Block) -> Result<()> {
        self.depth += 1;
        self.block(block)?;
        self.flush();
        for (&result, &value) in results.iter().zip(&block.yields) {
            if self.uses.count(result) == 0 {
                continue;
            }
            let text = self.operand_as(value, result)?;
            let Place::Named(name) = self.places[result.index()].clone() else {
                return Err(Error::internal("the result of a branch has no variable"));
            };
            self.line(format!("{name} = {};", text.text));
        }
        self.depth -= 1;
        Ok(())
    }

    /// Runs a function over the items `0..count`, with the frame's `parallel_for` if there is one.
    fn parallel(&mut self, function: FunctionId, count: i64, arguments: &[ValueId]) -> Result<()> {
        let symbol = self.symbols[function.index()].clone();
        let mut list = self.arguments(function, arguments)?;
        self.flush();
        let callee = &self.program.functions[function];
        let part = format!("{symbol}_part");
        let record = format!("{symbol}_arguments");
        let mut members = String::new();
        let mut values = Vec::new();
        for (k, parameter) in callee.parameters.iter().take(arguments.len()).enumerate() {
            let ty = callee.values[parameter.value];
            let is_written = self.written[function.index()].get(k).copied().unwrap_or(true);
            let c = match ty {
                Type::PTR if !is_written => "const unsigned char *".to_owned(),
                _ if ty.lanes > 1 => self.prelude.vector(crate::prelude::Vector::of(ty)),
                _ => crate::prelude::scalar_type(ty.scalar).to_owned(),
            };
            let space = if c.ends_with('*') { "" } else { " " };
            members += &format!("  {c}{space}a{k};\n");
            values.push(format!("arguments->a{k}"));
        }
        values.extend(["begin", "end", "worker"].map(str::to_owned));
        if arguments.is_empty() {
            members += "  unsigned char none;\n";
        }
        let used = if arguments.is_empty() {
            "  (void)data;\n".to_owned()
        } else {
            format!("  const struct {record} *const arguments = (const struct {record} *)data;\n")
        };
        self.parts.push((
            part.clone(),
            format!(
                "struct {record} {{\n{members}}};\n\n\
                 /* A part of the items of {symbol}. */\n\
                 static int32_t {part}(void *data, int64_t begin, int64_t end, int64_t worker)\n{{\n{used}  {symbol}({});\n  return 0;\n}}\n",
                values.join(", ")
            ),
        ));
        self.line("if (frame->parallel_for == NULL) {");
        let mut direct = list.clone();
        direct.extend(["0".to_owned(), count.to_string(), "0".to_owned()]);
        self.line(format!("  {symbol}({});", direct.join(", ")));
        self.line("} else {");
        if list.is_empty() {
            list.push("0u".to_owned());
        }
        self.line(format!("  struct {record} arguments = {{{}}};", list.join(", ")));
        self.line(format!(
            "  const int32_t status = frame->parallel_for(frame->context, {count}, {part}, &arguments);"
        ));
        self.line("  if (status != 0) {");
        self.line("    return status;");
        self.line("  }");
        self.line("}");
        Ok(())
    }

    fn external(&mut self, symbol: &str, arguments: &[ValueId], status: ValueId) -> Result<()> {
        let known = self.prelude.external(symbol, arguments.len());
        if known != arguments.len() || self.symbols.iter().any(|other| other == symbol) {
            return Err(Error::invalid(format!("the program has another function named '{symbol}'")));
        }
        let list = arguments.iter().map(|&a| Ok(self.operand(a)?.text)).collect::<Result<Vec<_>>>()?;
        self.flush();
        let call = format!("{symbol}({})", list.join(", "));
        if self.uses.count(status) == 0 {
            self.line(format!("(void){call};"));
            return Ok(());
        }
        let name = self.names.unique("result");
        self.line(format!("const uint32_t {name} = (uint32_t){call};"));
        self.places[status.index()] = Place::Named(name);
        Ok(())
    }
}
