//! The assembly of operations: a list of items, attributes in braces, and types.
//!
//! An item is an operand, `key = value`, an enumerator (`EQ`), a symbol, a string, a constant, or
//! ranges in brackets after an operand. One parser accepts all of them in any order. Operations
//! differ only in the generic-form name under which a value is stored.

use super::operation::Reader;
use super::{attribute, dense, dialect, forms, types};
use crate::attribute::Attribute;
use crate::ir::Operation;
use crate::types::Type;
use support::Result;

/// Returns the name with its dialect, which the text may omit.
pub(super) fn full_name(word: &str) -> &str {
    match word {
        "module" => "builtin.module",
        "return" => "func.return",
        "call" => "func.call",
        _ => word,
    }
}

/// Reads the rest of an operation after its name; returns the types of the results.
pub(super) fn read(reader: &mut Reader<'_>, operation: &mut Operation) -> Result<Vec<Type>> {
    match operation.name.as_str() {
        "builtin.module" => forms::module(reader, operation),
        "func.func" => forms::function(reader, operation),
        "stablehlo.while" => forms::while_loop(reader, operation),
        "stablehlo.reduce" => forms::reduce(reader, operation),
        "chlo.scan" => forms::scan(reader, operation),
        _ => {
            items(reader, operation)?;
            rest(reader, operation)
        }
    }
}

fn items(reader: &mut Reader<'_>, operation: &mut Operation) -> Result<()> {
    if reader.scanner.eat("(") && !reader.scanner.eat(")") {
        loop {
            item(reader, operation)?;
            if reader.scanner.eat(")") {
                break;
            }
            reader.scanner.expect(",")?;
        }
    }
    while is_item(reader) {
        // A composite's operands follow its name without a comma.
        let is_name = reader.scanner.at("\"");
        item(reader, operation)?;
        // The operands of a call follow its name in parentheses.
        if reader.scanner.eat("(") {
            forms::read_operands(reader, operation, ")")?;
        }
        if !reader.scanner.eat(",") && !is_name && !reader.scanner.at("[") {
            break;
        }
    }
    Ok(())
}

fn is_item(reader: &mut Reader<'_>) -> bool {
    match reader.scanner.peek() {
        b'%' | b'@' | b'"' | b'[' => true,
        _ => !matches!(reader.scanner.peek_word(), "" | "loc" | "attributes"),
    }
}

fn item(reader: &mut Reader<'_>, operation: &mut Operation) -> Result<()> {
    match reader.scanner.peek() {
        b'%' => {
            let operand = reader.operand()?;
            operation.operands.push(operand);
            return Ok(());
        }
        b'@' => {
            let symbol = reader.scanner.symbol()?;
            return set(reader, operation, symbol_attribute, Attribute::Symbol(symbol));
        }
        b'"' => {
            let text = reader.scanner.string()?.into_owned();
            return set(reader, operation, |_| "name", Attribute::String(text));
        }
        b'[' => return subscript(reader, operation),
        _ => {}
    }
    let word = reader.scanner.word();
    if matches!(word, "dense" | "dense_resource") {
        let value = if word == "dense" {
            dense::read(&mut reader.scanner)?
        } else {
            dense::read_resource(&mut reader.scanner)?
        };
        return set(reader, operation, |_| "value", value);
    }
    if !reader.scanner.eat("=") {
        return set(reader, operation, enumerator_attribute, Attribute::Keyword(word.to_owned()));
    }
    match word {
        "dim_numbers" => {
            let fields = dialect::read_convolution_dimensions(&mut reader.scanner)?;
            set(reader, operation, |_| "dimension_numbers", Attribute::Dictionary(fields))
        }
        "window" => window(reader, operation),
        "batching_dims" => dimension_pair(reader, operation, "batching"),
        "contracting_dims" => dimension_pair(reader, operation, "contracting"),
        "format" => exponent_and_mantissa(reader, operation),
        key => {
            let value = dialect::read_value(&mut reader.scanner)?;
            let name = full_key(&operation.name, key).to_owned();
            operation.attributes.set(name, value);
            Ok(())
        }
    }
}

fn set(
    reader: &Reader<'_>,
    operation: &mut Operation,
    name: impl Fn(&Operation) -> &'static str,
    value: Attribute,
) -> Result<()> {
    let name = name(operation);
    if operation.attributes.set(name, value).is_some() {
        return Err(reader.scanner.error(format!("{} has two values for '{name}'", operation.name)));
    }
    Ok(())
}

fn symbol_attribute(operation: &Operation) -> &'static str {
    match operation.name.as_str() {
        "stablehlo.custom_call" => "call_target_name",
        _ => "callee",
    }
}

/// `compare EQ, %a, %b, SIGNED`.
fn enumerator_attribute(operation: &Operation) -> &'static str {
    if operation.operands.is_empty() { "comparison_direction" } else { "compare_type" }
}

/// The generic-form name of an abbreviated attribute.
fn full_key<'k>(operation: &str, key: &'k str) -> &'k str {
    match (key, operation) {
        ("dim", "stablehlo.iota" | "stablehlo.dynamic_iota") => "iota_dimension",
        ("dim", _) => "dimension",
        ("dims", "stablehlo.transpose") => "permutation",
        ("dims", "stablehlo.reverse") => "dimensions",
        ("dims", _) => "broadcast_dimensions",
        ("sizes", "stablehlo.broadcast") => "broadcast_sizes",
        ("sizes", _) => "slice_sizes",
        ("low", _) => "edge_padding_low",
        ("high", _) => "edge_padding_high",
        ("interior", _) => "interior_padding",
        ("type", _) => "fft_type",
        ("length", _) => "fft_length",
        ("distribution", _) => "rng_distribution",
        ("algorithm", "stablehlo.rng_bit_generator") => "rng_algorithm",
        ("precision", _) => "precision_config",
        ("config", _) => "einsum_config",
        _ => key,
    }
}

/// `[0:2, 0:8:2]` of a slice, `[1]` of a tuple.
fn subscript(reader: &mut Reader<'_>, operation: &mut Operation) -> Result<()> {
    reader.scanner.expect("[")?;
    if operation.name != "stablehlo.slice" {
        let index = reader.scanner.integer()?;
        reader.scanner.expect("]")?;
        return set(reader, operation, |_| "index", Attribute::Integer(i128::from(index)));
    }
    let ranges = reader.scanner.list("]", |scanner| {
        let start = scanner.integer()?;
        scanner.expect(":")?;
        let limit = scanner.integer()?;
        let stride = if scanner.eat(":") { scanner.integer()? } else { 1 };
        Ok((start, limit, stride))
    })?;
    let column = |field: fn(&(i64, i64, i64)) -> i64| Attribute::Integers(ranges.iter().map(field).collect());
    operation.attributes.set("start_indices", column(|range| range.0));
    operation.attributes.set("limit_indices", column(|range| range.1));
    operation.attributes.set("strides", column(|range| range.2));
    Ok(())
}

/// `{stride = [2, 2], pad = [[0, 1], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse =
/// [false, false]}`. The padding becomes a flat list of alternating low and high values.
fn window(reader: &mut Reader<'_>, operation: &mut Operation) -> Result<()> {
    reader.scanner.expect("{")?;
    let fields = dialect::read_fields(&mut reader.scanner, "}")?;
    for (key, value) in fields.iter() {
        let name = match key {
            "stride" => "window_strides",
            "pad" => "padding",
            "lhs_dilate" => "lhs_dilation",
            "rhs_dilate" => "rhs_dilation",
            "reverse" => "window_reversal",
            _ => {
                return Err(reader.scanner.error(format!("unknown field '{key}' in a convolution's window")));
            }
        };
        operation.attributes.set(name, flat(value));
    }
    Ok(())
}

/// Flattens a list of lists of numbers.
fn flat(value: &Attribute) -> Attribute {
    match value {
        Attribute::Array(rows) => {
            Attribute::Integers(rows.iter().filter_map(Attribute::integers).flatten().collect())
        }
        other => other.clone(),
    }
}

/// `[0] x [1]`: dimensions of the left and the right operand.
fn dimension_pair(reader: &mut Reader<'_>, operation: &mut Operation, kind: &str) -> Result<()> {
    let mut fields = match operation.attribute("dot_dimension_numbers") {
        Some(Attribute::Dictionary(fields)) => fields.clone(),
        _ => crate::Attributes::default(),
    };
    for (side, before) in [("lhs", ""), ("rhs", "x")] {
        if !before.is_empty() {
            reader.scanner.expect(before)?;
        }
        reader.scanner.expect("[")?;
        let dimensions = reader.scanner.list("]", |scanner| scanner.integer())?;
        fields.set(format!("{side}_{kind}_dimensions"), Attribute::Integers(dimensions));
    }
    operation.attributes.set("dot_dimension_numbers", Attribute::Dictionary(fields));
    Ok(())
}

/// `e5m10`.
fn exponent_and_mantissa(reader: &mut Reader<'_>, operation: &mut Operation) -> Result<()> {
    let word = reader.scanner.word();
    let bits = word.strip_prefix('e').and_then(|rest| rest.split_once('m'));
    let bits = bits.and_then(|(exponent, mantissa)| Some((exponent.parse().ok()?, mantissa.parse().ok()?)));
    let Some((exponent, mantissa)) = bits else {
        return Err(reader.scanner.error(format!("expected a format such as e5m10, got '{word}'")));
    };
    operation.attributes.set("exponent_bits", Attribute::Integer(exponent));
    operation.attributes.set("mantissa_bits", Attribute::Integer(mantissa));
    Ok(())
}

/// Reads attributes in braces, then types; returns the types of the results.
fn rest(reader: &mut Reader<'_>, operation: &mut Operation) -> Result<Vec<Type>> {
    reader.scanner.eat_word("attributes");
    if reader.scanner.at("{") {
        operation.attributes.extend(attribute::read_dictionary(&mut reader.scanner)?);
    }
    if let (Some(Attribute::Elements(elements)), false) =
        (operation.attribute("value"), reader.scanner.at(":"))
    {
        return Ok(if operation.name.starts_with("check.") { Vec::new() } else { vec![tensor_of(elements)] });
    }
    if !reader.scanner.eat(":") {
        return Ok(Vec::new());
    }
    if reader.scanner.at("(") {
        let (inputs, results) = types::read_signature(&mut reader.scanner)?;
        forms::check_operand_types(reader, operation, &inputs)?;
        return Ok(results);
    }
    let mut types = vec![types::read_type(&mut reader.scanner)?];
    while reader.scanner.eat(",") {
        types.push(types::read_type(&mut reader.scanner)?);
    }
    // The form of mathematical functions: `: operand type -> result type`.
    if reader.scanner.eat("->") {
        return types::read_results(&mut reader.scanner);
    }
    Ok(match operation.name.as_str() {
        "func.return" | "stablehlo.return" => {
            forms::check_operand_types(reader, operation, &types)?;
            Vec::new()
        }
        name if name.starts_with("check.") => Vec::new(),
        // One type for all results, or the condition's type and that of the results.
        "stablehlo.optimization_barrier" => types,
        _ => types.split_off(types.len() - 1),
    })
}

fn tensor_of(elements: &crate::Elements) -> Type {
    let sizes = elements.shape.sizes().into_iter().map(Some).collect();
    let element = Box::new(Type::Scalar(elements.shape.element_type));
    Type::Tensor(crate::TensorType { sizes, element, encoding: None })
}
