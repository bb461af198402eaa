//! Forms with a special grammar: the generic form, functions, modules, loops, and reductions.

use super::operation::{Argument, Reader};
use super::{attribute, types};
use crate::attribute::{Attribute, Attributes};
use crate::ir::{Block, Operation, Region};
use crate::types::Type;
use support::Result;

/// `"name"(operands) <{properties}> ({regions}) {attributes} : (types) -> types`; returns the types
/// of the results.
pub(super) fn generic(reader: &mut Reader<'_>, operation: &mut Operation) -> Result<Vec<Type>> {
    operation.name = reader.scanner.string()?.into_owned();
    reader.scanner.expect("(")?;
    read_operands(reader, operation, ")")?;
    if reader.scanner.at("[") {
        return Err(reader
            .scanner
            .error("successors are not supported: only structured control flow is supported"));
    }
    if reader.scanner.eat("<") {
        operation.attributes = attribute::read_dictionary(&mut reader.scanner)?;
        reader.scanner.expect(">")?;
    }
    if reader.scanner.eat("(") {
        loop {
            operation.regions.push(reader.region(Vec::new())?);
            if !reader.scanner.eat(",") {
                break;
            }
        }
        reader.scanner.expect(")")?;
    }
    if reader.scanner.at("{") {
        operation.attributes.extend(attribute::read_dictionary(&mut reader.scanner)?);
    }
    reader.scanner.expect(":")?;
    let (inputs, results) = types::read_signature(&mut reader.scanner)?;
    check_operand_types(reader, operation, &inputs)?;
    Ok(results)
}

/// Reads `%a, %b` up to a closing bracket.
pub(super) fn read_operands(reader: &mut Reader<'_>, operation: &mut Operation, end: &str) -> Result<()> {
    while !reader.scanner.eat(end) {
        if !operation.operands.is_empty() {
            reader.scanner.expect(",")?;
        }
        let operand = reader.operand()?;
        operation.operands.push(operand);
    }
    Ok(())
}

/// Checks that the types after a colon are those of the operands.
pub(super) fn check_operand_types(reader: &Reader<'_>, operation: &Operation, types: &[Type]) -> Result<()> {
    let fits = types.len() == operation.operands.len()
        && types.iter().zip(&operation.operands).all(|(types, &id)| types == reader.type_of(id));
    if fits {
        return Ok(());
    }
    Err(reader
        .scanner
        .error(format!("the types of {}'s operands differ from those in their definitions", operation.name)))
}

/// `module @name attributes {...} {`
pub(super) fn module(reader: &mut Reader<'_>, operation: &mut Operation) -> Result<Vec<Type>> {
    if reader.scanner.at("@") {
        operation.attributes.set("sym_name", Attribute::String(reader.scanner.symbol()?));
    }
    if reader.scanner.eat_word("attributes") {
        operation.attributes.extend(attribute::read_dictionary(&mut reader.scanner)?);
    }
    operation.regions.push(reader.region(Vec::new())?);
    Ok(Vec::new())
}

/// `func.func public @name(%a: tensor<f32> {...}) -> (tensor<f32> {...}) attributes {...} {`
pub(super) fn function(reader: &mut Reader<'_>, operation: &mut Operation) -> Result<Vec<Type>> {
    for visibility in ["public", "private", "nested"] {
        if reader.scanner.eat_word(visibility) {
            operation.attributes.set("sym_visibility", Attribute::String(visibility.to_owned()));
        }
    }
    operation.attributes.set("sym_name", Attribute::String(reader.scanner.symbol()?));
    let arguments = reader.arguments()?;
    let mut results = Vec::new();
    if reader.scanner.eat("->") {
        results = if reader.scanner.at("(") {
            reader.arguments()?
        } else {
            vec![Argument {
                name: "",
                value_type: types::read_type(&mut reader.scanner)?,
                attributes: Attributes::default(),
                location: String::new(),
            }]
        };
    }
    if reader.scanner.eat_word("attributes") {
        operation.attributes.extend(attribute::read_dictionary(&mut reader.scanner)?);
    }
    let attribute_list = |list: &[Argument<'_>]| {
        Attribute::Array(list.iter().map(|item| Attribute::Dictionary(item.attributes.clone())).collect())
    };
    operation.attributes.set("arg_attrs", attribute_list(&arguments));
    operation.attributes.set("res_attrs", attribute_list(&results));
    let inputs = arguments.iter().map(|argument| argument.value_type.clone()).collect();
    let results = results.into_iter().map(|result| result.value_type).collect();
    operation.attributes.set("function_type", Attribute::Type(Type::Function { inputs, results }));
    if reader.scanner.at("{") {
        let parameters =
            arguments.iter().map(|argument| (argument.name, argument.value_type.clone())).collect();
        let region = reader.region(parameters)?;
        let ids = region.blocks.iter().flat_map(|block| &block.arguments);
        for (&id, argument) in ids.zip(arguments) {
            reader.rename(id, argument.location);
        }
        operation.regions.push(region);
    }
    Ok(Vec::new())
}

/// `stablehlo.while(%a = %x, %b = %y) : types attributes {...} cond {...} do {...}`
pub(super) fn while_loop(reader: &mut Reader<'_>, operation: &mut Operation) -> Result<Vec<Type>> {
    reader.scanner.expect("(")?;
    let mut names = Vec::new();
    while !reader.scanner.eat(")") {
        if !names.is_empty() {
            reader.scanner.expect(",")?;
        }
        names.push(reader.value_name()?);
        reader.scanner.expect("=")?;
        let operand = reader.operand()?;
        operation.operands.push(operand);
    }
    let mut results = Vec::new();
    if reader.scanner.eat(":") {
        results.push(types::read_type(&mut reader.scanner)?);
        while reader.scanner.eat(",") {
            results.push(types::read_type(&mut reader.scanner)?);
        }
    }
    check_operand_types(reader, operation, &results)?;
    if reader.scanner.eat_word("attributes") {
        operation.attributes = attribute::read_dictionary(&mut reader.scanner)?;
    }
    for word in ["cond", "do"] {
        reader.scanner.expect_word(word)?;
        let arguments = names.iter().copied().zip(results.iter().cloned()).collect();
        operation.regions.push(reader.region(arguments)?);
    }
    Ok(results)
}

/// `stablehlo.reduce(%x init: %y), (...) across dimensions = [0] : ... reducer(%a: t, %b: t)
/// {...}`, and the short form `stablehlo.reduce(%x init: %y) applies stablehlo.add across
/// dimensions = [0] : ...`.
pub(super) fn reduce(reader: &mut Reader<'_>, operation: &mut Operation) -> Result<Vec<Type>> {
    let mut inits = Vec::new();
    loop {
        reader.scanner.expect("(")?;
        let operand = reader.operand()?;
        operation.operands.push(operand);
        reader.scanner.expect_word("init")?;
        reader.scanner.expect(":")?;
        inits.push(reader.operand()?);
        reader.scanner.expect(")")?;
        if !reader.scanner.eat(",") {
            break;
        }
    }
    operation.operands.extend(inits);
    let combiner = if reader.scanner.eat_word("applies") { reader.scanner.word() } else { "" };
    reader.scanner.expect_word("across")?;
    reader.scanner.expect_word("dimensions")?;
    reader.scanner.expect("=")?;
    reader.scanner.expect("[")?;
    let dimensions = reader.scanner.list("]", |scanner| scanner.integer())?;
    operation.attributes.set("dimensions", Attribute::Integers(dimensions));
    if reader.scanner.at("{") {
        operation.attributes.extend(attribute::read_dictionary(&mut reader.scanner)?);
    }
    reader.scanner.expect(":")?;
    let (inputs, results) = types::read_signature(&mut reader.scanner)?;
    check_operand_types(reader, operation, &inputs)?;
    if combiner.is_empty() {
        reader.scanner.expect_word("reducer")?;
        let (mut left, mut right) = (Vec::new(), Vec::new());
        while reader.scanner.at("(") {
            let pair = reader.arguments()?;
            let [lhs, rhs] = <[_; 2]>::try_from(pair).map_err(|_| {
                reader.scanner.error("expected two arguments in each group of a reducer's arguments")
            })?;
            left.push((lhs.name, lhs.value_type));
            right.push((rhs.name, rhs.value_type));
        }
        left.extend(right);
        operation.regions.push(reader.region(left)?);
    } else {
        let region = applied_region(reader, combiner, &inputs)?;
        operation.regions.push(region);
    }
    Ok(results)
}

/// `chlo.scan(%x) inits(%y) dimension=0 attributes {...} {...} : types`. The [`Attribute::Integer`]
/// `inits` holds the number of operands that are initial values.
pub(super) fn scan(reader: &mut Reader<'_>, operation: &mut Operation) -> Result<Vec<Type>> {
    reader.scanner.expect("(")?;
    read_operands(reader, operation, ")")?;
    let inputs = operation.operands.len();
    reader.scanner.expect_word("inits")?;
    reader.scanner.expect("(")?;
    let mut inits = Operation::default();
    read_operands(reader, &mut inits, ")")?;
    operation.operands.extend(inits.operands);
    operation.attributes.set("inits", Attribute::Integer((operation.operands.len() - inputs) as i128));
    reader.scanner.expect_word("dimension")?;
    reader.scanner.expect("=")?;
    operation.attributes.set("dimension", Attribute::Integer(i128::from(reader.scanner.integer()?)));
    if reader.scanner.eat_word("attributes") {
        operation.attributes.extend(attribute::read_dictionary(&mut reader.scanner)?);
    }
    operation.regions.push(reader.region(Vec::new())?);
    reader.scanner.expect(":")?;
    let (inputs, results) = types::read_signature(&mut reader.scanner)?;
    check_operand_types(reader, operation, &inputs)?;
    Ok(results)
}

/// Returns the region that `applies NAME` abbreviates.
fn applied_region(reader: &mut Reader<'_>, combiner: &str, inputs: &[Type]) -> Result<Region> {
    let [Type::Tensor(input), _] = inputs else {
        return Err(reader.scanner.error("'applies' requires one tensor and its initial value"));
    };
    let element = input.element.as_ref().clone().scalar_tensor();
    let arguments: Vec<_> = (0..2).map(|_| reader.add_value(element.clone(), "")).collect();
    let result = reader.add_value(element, "");
    let line = reader.scanner.line();
    let combine = Operation {
        name: combiner.to_owned(),
        operands: arguments.clone(),
        results: vec![result],
        line,
        ..Operation::default()
    };
    let end = Operation {
        name: "stablehlo.return".to_owned(),
        operands: vec![result],
        line,
        ..Operation::default()
    };
    Ok(Region { blocks: vec![Block { arguments, operations: vec![combine, end] }] })
}
