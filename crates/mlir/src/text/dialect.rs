//! Dialect attributes: `#stablehlo<precision DEFAULT>`, `#stablehlo.gather<offset_dims = [0],
//! ...>`, and aliases.

use super::attribute;
use super::scanner::Scanner;
use crate::attribute::{Attribute, Attributes};
use support::Result;

/// Reads an attribute that begins with `#`.
pub(super) fn read(scanner: &mut Scanner<'_>) -> Result<Attribute> {
    let start = scanner.position();
    scanner.expect("#")?;
    let name = scanner.suffix();
    if let Some(&alias) = scanner.aliases.get(&scanner.since(start)) {
        return scanner.read_alias(alias, attribute::read);
    }
    if !scanner.at("<") {
        return Ok(Attribute::Other(scanner.since(start).to_owned()));
    }
    match name {
        "stablehlo" | "chlo" | "mhlo" | "vhlo" => {
            scanner.expect("<")?;
            read_enumerator(scanner)
        }
        "stablehlo.bounds" | "stablehlo.type_extensions" | "mhlo.type_extensions" => read_bounds(scanner),
        "stablehlo.conv" | "mhlo.conv" => {
            scanner.expect("<")?;
            let fields = read_convolution_dimensions(scanner)?;
            scanner.expect(">")?;
            Ok(Attribute::Dictionary(fields))
        }
        _ if ["stablehlo.", "chlo.", "mhlo."].iter().any(|dialect| name.starts_with(dialect)) => {
            scanner.expect("<")?;
            let fields = scanner.nest(|scanner| read_fields(scanner, ">"))?;
            // A single word is not a field but an enumerator:
            // `#stablehlo.result_accuracy_mode<HIGHEST>`.
            let words: Vec<(&str, &Attribute)> = fields.iter().take(2).collect();
            match words[..] {
                [(word, Attribute::Unit)] => Ok(Attribute::Keyword(word.to_owned())),
                _ => Ok(Attribute::Dictionary(fields)),
            }
        }
        _ => {
            scanner.expect("<")?;
            scanner.skip_balanced()?;
            Ok(Attribute::Other(scanner.since(start).to_owned()))
        }
    }
}

/// `precision DEFAULT>`: the kind adds nothing to the attribute's name.
fn read_enumerator(scanner: &mut Scanner<'_>) -> Result<Attribute> {
    let mut word = scanner.word();
    while !scanner.at(">") {
        let next = scanner.word();
        if next.is_empty() {
            return Err(scanner.expected("'>'"));
        }
        word = next;
    }
    scanner.expect(">")?;
    Ok(Attribute::Keyword(word.to_owned()))
}

/// Reads `name = value, ...` up to a closing bracket. A value is an attribute, a word, or a list of
/// them.
pub(super) fn read_fields(scanner: &mut Scanner<'_>, end: &str) -> Result<Attributes> {
    let mut fields = Attributes::default();
    let entries = scanner.list(end, |scanner| {
        let name = scanner.word().to_owned();
        if name.is_empty() {
            return Err(scanner.expected("the name of a field"));
        }
        let value = if scanner.eat("=") { read_value(scanner)? } else { Attribute::Unit };
        Ok((name, value))
    })?;
    for (name, value) in entries {
        fields.set(name, value);
    }
    Ok(fields)
}

/// Reads an attribute, or an enumerator, which is a plain word.
pub(super) fn read_value(scanner: &mut Scanner<'_>) -> Result<Attribute> {
    scanner.nest(|scanner| match scanner.peek() {
        // A type after a string's colon belongs to the operation.
        b'"' => Ok(Attribute::String(scanner.string()?.into_owned())),
        b'[' => {
            scanner.expect("[")?;
            let items = scanner.list("]", read_value)?;
            Ok(Attribute::list(items))
        }
        b'<' => {
            scanner.expect("<")?;
            read_fields(scanner, ">").map(Attribute::Dictionary)
        }
        b'-' | b'+' | b'0'..=b'9' => attribute::read_untyped_number(scanner),
        b'(' => {
            let start = scanner.position();
            scanner.expect("(")?;
            if !scanner.peek().is_ascii_digit() {
                scanner.set_position(start);
                return attribute::read(scanner);
            }
            read_sub_axis(scanner)
        }
        _ => {
            let word = scanner.peek_word();
            let is_enumerator = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && !matches!(word, "true" | "false" | "unit" | "dense" | "array" | "dense_resource" | "loc")
                && !super::types::is_type(scanner);
            if is_enumerator {
                return Ok(Attribute::Keyword(scanner.word().to_owned()));
            }
            attribute::read(scanner)
        }
    })
}

/// `2)4`, the rest after a parenthesis: the product of the sizes before a part of a mesh axis, and
/// its size.
fn read_sub_axis(scanner: &mut Scanner<'_>) -> Result<Attribute> {
    let mut fields = Attributes::default();
    fields.set("pre_size", attribute::read_untyped_number(scanner)?);
    scanner.expect(")")?;
    fields.set("size", attribute::read_untyped_number(scanner)?);
    Ok(Attribute::Dictionary(fields))
}

/// `<4, ?>`: the bounds of dynamic sizes; -1 for an unbounded size.
fn read_bounds(scanner: &mut Scanner<'_>) -> Result<Attribute> {
    let mut fields = Attributes::default();
    scanner.expect("<")?;
    let is_named = scanner.eat_word("bounds");
    if is_named {
        scanner.expect("=")?;
        scanner.expect("[")?;
    }
    let bound = |scanner: &mut Scanner<'_>| if scanner.eat("?") { Ok(-1) } else { scanner.integer() };
    let bounds = scanner.list(if is_named { "]" } else { ">" }, bound)?;
    if is_named {
        scanner.expect(">")?;
    }
    fields.set("bounds", Attribute::Integers(bounds));
    Ok(Attribute::Dictionary(fields))
}

/// `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`, converted to the fields of the generic form in a
/// portable artifact.
pub(super) fn read_convolution_dimensions(scanner: &mut Scanner<'_>) -> Result<Attributes> {
    let mut fields = Attributes::default();
    read_labels(scanner, &mut fields, "input", [Label::BATCH, Label::FEATURE])?;
    scanner.expect("x")?;
    read_labels(scanner, &mut fields, "kernel", [Label::INPUT_FEATURE, Label::OUTPUT_FEATURE])?;
    scanner.expect("->")?;
    read_labels(scanner, &mut fields, "output", [Label::BATCH, Label::FEATURE])?;
    Ok(fields)
}

/// A dimension of a convolution's operand that is not spatial.
struct Label {
    letter: &'static str,
    name: &'static str,
}

impl Label {
    const BATCH: Self = Self { letter: "b", name: "batch" };
    const FEATURE: Self = Self { letter: "f", name: "feature" };
    const INPUT_FEATURE: Self = Self { letter: "i", name: "input_feature" };
    const OUTPUT_FEATURE: Self = Self { letter: "o", name: "output_feature" };
}

/// Reads one operand's labels: two letters with their names, numbers for the spatial dimensions,
/// and `?` for dimensions without a meaning.
fn read_labels(
    scanner: &mut Scanner<'_>,
    fields: &mut Attributes,
    operand: &str,
    special: [Label; 2],
) -> Result<()> {
    scanner.expect("[")?;
    let labels = scanner.list("]", |scanner| {
        if scanner.eat("?") {
            return Ok(None);
        }
        match scanner.peek_word() {
            "" => Ok(Some(scanner.integer()?.to_string())),
            word => {
                scanner.word();
                Ok(Some(word.to_owned()))
            }
        }
    })?;
    let find = |label: &str| labels.iter().position(|l| l.as_deref() == Some(label));
    for Label { letter: label, name } in special {
        let Some(dimension) = find(label) else {
            return Err(scanner.error(format!("missing dimension '{label}' in the convolution's {operand}")));
        };
        fields.set(format!("{operand}_{name}_dimension"), Attribute::Integer(dimension as i128));
    }
    let spatial: Option<Vec<i64>> =
        (0..labels.iter().flatten().count() - 2).map(|n| find(&n.to_string()).map(|d| d as i64)).collect();
    let Some(spatial) = spatial else {
        return Err(
            scanner.error(format!("the spatial dimensions of the convolution's {operand} are not 0, 1, ..."))
        );
    };
    fields.set(format!("{operand}_spatial_dimensions"), Attribute::Integers(spatial));
    Ok(())
}
