//! Strings, and what is printed.

use super::{Context, Row};
use crate::value::{Strings, Value};
use bytes::Bytes;
use shape::{PrimitiveType, Scalar};
use std::ops::Range;
use support::{Error, Result};

pub(super) const OPS: &[Row] = &[
    ("Print", print),
    ("PrintV2", |cx| {
        let mut text = String::from_utf8_lossy(&cx.input(0)?.text()?).into_owned();
        text.push_str(&String::from_utf8_lossy(&cx.node.attributes.string_or("end", Bytes::from("\n"))?));
        (cx.shared.output)(&text);
        Ok(())
    }),
    ("Assert", assert),
    ("StringFormat", format),
    ("StringJoin", join),
    ("ShardedFilename", |cx| {
        let base = cx.input(0)?.text()?;
        let name = format!("-{:05}-of-{:05}", cx.integer(1)?, cx.integer(2)?);
        let mut text = base.to_vec();
        text.extend(name.into_bytes());
        cx.push(Strings::scalar(text));
        Ok(())
    }),
    ("AsString", as_string),
];

/// How many elements of each tensor are printed if the node says nothing.
const SUMMARIZE: i64 = 3;

fn print(cx: &mut Context<'_>) -> Result<()> {
    let attributes = &cx.node.attributes;
    let most = attributes.int_or("summarize", SUMMARIZE)?;
    let first = attributes.int_or("first_n", -1)?;
    let is_told = first < 0 || {
        let counter = cx.shared.resources.counter(&cx.node.name, 0);
        let mut count = crate::lock::lock(&counter);
        *count += 1;
        *count <= u128::from(first.unsigned_abs())
    };
    if is_told {
        let mut text = String::from_utf8_lossy(&attributes.string_or("message", Bytes::new())?).into_owned();
        for value in &cx.inputs[1..] {
            text.push('[');
            text.push_str(&summary(value, most)?);
            text.push(']');
        }
        text.push('\n');
        (cx.shared.output)(&text);
    }
    let value = cx.input(0)?.clone();
    cx.push(value);
    Ok(())
}

fn assert(cx: &mut Context<'_>) -> Result<()> {
    if cx.tensor(0)?.truth()? {
        return Ok(());
    }
    let most = cx.node.attributes.int_or("summarize", SUMMARIZE)?;
    let data: Vec<String> = cx.inputs[1..]
        .iter()
        .map(|value| Ok(format!("[{}]", summary(value, most)?)))
        .collect::<Result<_>>()?;
    Err(Error::invalid(format!("assertion failed: {}", data.join(" "))))
}

/// The first elements of a value in words; negative is all.
pub(crate) fn summary(value: &Value, most: i64) -> Result<String> {
    let elements = Elements::new(value.clone().read()?)?;
    let shown = usize::try_from(most).unwrap_or(usize::MAX).min(elements.count);
    elements.check_room(shown)?;
    let more = if elements.count > shown { "..." } else { "" };
    let shown: Vec<String> = (0..shown).map(|at| elements.text(at)).collect();
    Ok(shown.join(" ") + more)
}

/// The elements of a value in words, each when it is asked for: of large values few are printed.
struct Elements {
    value: Value,
    count: usize,
}

impl Elements {
    fn new(value: Value) -> Result<Self> {
        let count = match &value {
            Value::Strings(strings) => strings.strings.len(),
            Value::Tensor(tensor) => tensor.shape().element_count() as usize,
            _ => 1,
        };
        Ok(Self { value, count })
    }

    /// The element at a row-major position.
    fn text(&self, at: usize) -> String {
        match &self.value {
            Value::Strings(strings) => String::from_utf8_lossy(&strings.strings[at]).into_owned(),
            Value::Tensor(tensor) => {
                let element_type = tensor.shape().element_type;
                number(tensor.scalar_at(at), element_type)
            }
            other => other.kind().to_owned(),
        }
    }

    /// An error if there is no memory for so many of the elements in words, which are joined.
    fn check_room(&self, shown: usize) -> Result<()> {
        let bytes = match &self.value {
            Value::Strings(strings) => length(strings.strings.iter().take(shown)),
            _ => 0,
        };
        let each = (size_of::<String>() + NUMBER_BYTES) as u64;
        let bytes = bytes.saturating_mul(COPIES).saturating_add(each.saturating_mul(shown as u64));
        support::check_memory(bytes, "what is printed wants memory")
    }
}

/// What a number takes, printed, with its memory's own overhead.
const NUMBER_BYTES: usize = 48;

/// How often strings are copied until they are joined: read, quoted, joined, joined with others.
const COPIES: u64 = 4;

/// How long strings are together.
fn length<'s>(strings: impl Iterator<Item = &'s Bytes>) -> u64 {
    strings.map(|text| text.len() as u64).sum()
}

/// A number as C++ prints it by default: six digits that count.
fn number(scalar: Scalar, element_type: PrimitiveType) -> String {
    match scalar {
        Scalar::Pred(value) => u8::from(value).to_string(),
        Scalar::Signed(value) => value.to_string(),
        Scalar::Unsigned(value) => value.to_string(),
        Scalar::Float(value) => float(value),
        Scalar::Complex(re, im) => format!("({},{})", float(re), float(im)),
    }
    .replace("-nan", if element_type.is_floating_point() { "nan" } else { "-nan" })
}

fn float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    // Rounded first: the exponent is that of the rounded number.
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).unwrap_or(0);
        return trimmed(&format!("{value:.decimals$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}

/// Puts values into a template.
fn format(cx: &mut Context<'_>) -> Result<()> {
    let attributes = &cx.node.attributes;
    let text = |name: &str| -> Result<String> {
        let bytes = attributes.string_or(name, Bytes::from("%s"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let (template, placeholder) = (text("template")?, text("placeholder")?);
    let most = attributes.int_or("summarize", SUMMARIZE)?;
    if placeholder.is_empty() {
        return Err(Error::invalid("the placeholder of a template must not be empty"));
    }
    let parts: Vec<&str> = template.split(placeholder.as_str()).collect();
    if parts.len() != cx.inputs.len() + 1 {
        return Err(Error::invalid(format!(
            "num placeholders in template and num inputs must match: {} vs. {}",
            parts.len() - 1,
            cx.inputs.len()
        )));
    }
    let mut out = parts[0].to_owned();
    let bytes: u64 =
        cx.inputs.iter().filter_map(|value| Some(length(value.strings().ok()?.strings.iter()))).sum();
    support::check_memory(bytes.saturating_mul(COPIES), "a text of these strings wants memory")?;
    for (value, part) in cx.inputs.iter().zip(&parts[1..]) {
        out.push_str(&nested(&value.clone().read()?, most)?);
        out.push_str(part);
    }
    cx.push(Strings::scalar(out));
    Ok(())
}

/// A value with brackets for its dimensions, the first and last of each.
fn nested(value: &Value, most: i64) -> Result<String> {
    let sizes = super::arrays::sizes(value)?;
    let elements = Elements::new(value.clone())?;
    let most = if most < 0 { usize::MAX } else { most.unsigned_abs() as usize };
    let shown = sizes.iter().map(|&size| (size.max(0) as usize).min(most.saturating_mul(2)));
    elements.check_room(shown.fold(1, usize::saturating_mul).min(elements.count))?;
    let mut out = String::new();
    write_nested(&mut out, &sizes, &elements, 0..elements.count, most);
    Ok(out)
}

fn write_nested(out: &mut String, sizes: &[i64], elements: &Elements, range: Range<usize>, most: usize) {
    let Some((&size, inner)) = sizes.split_first() else {
        if !range.is_empty() {
            let text = elements.text(range.start);
            match &elements.value {
                Value::Strings(_) => out.extend(["\"", &text, "\""]),
                _ => out.push_str(&text),
            }
        }
        return;
    };
    let size = size.max(0) as usize;
    let each = range.len().checked_div(size).unwrap_or(0);
    let is_cut = size > most.saturating_mul(2);
    let separator = if inner.is_empty() { " " } else { "\n" };
    out.push('[');
    for k in 0..size {
        if is_cut && k == most {
            out.push_str(separator);
            out.push_str("...");
        }
        if is_cut && (most..size - most).contains(&k) {
            continue;
        }
        if k > 0 {
            out.push_str(separator);
        }
        let start = range.start + k * each;
        write_nested(out, inner, elements, start..start + each, most);
    }
    out.push(']');
}

/// Joins strings element by element; a scalar goes with all.
fn join(cx: &mut Context<'_>) -> Result<()> {
    let separator = cx.node.attributes.string_or("separator", Bytes::new())?;
    let inputs: Vec<_> = cx.inputs.iter().map(Value::strings).collect::<Result<_>>()?;
    let whole = inputs.iter().find(|strings| !strings.sizes.is_empty()).or(inputs.first());
    let sizes = whole.map(|strings| strings.sizes.clone()).unwrap_or_default();
    if let Some(other) = inputs.iter().find(|strings| !strings.sizes.is_empty() && strings.sizes != sizes) {
        return Err(Error::invalid(format!(
            "strings of the sizes {sizes:?} and {:?} are joined",
            other.sizes
        )));
    }
    let count = whole.map_or(0, |strings| strings.strings.len());
    let lengths = inputs.iter().map(|strings| {
        let times = if strings.sizes.is_empty() { count as u64 } else { 1 };
        length(strings.strings.iter()).saturating_mul(times)
    });
    let each = (separator.len() * inputs.len() + size_of::<Bytes>()) as u64;
    let bytes = lengths.fold(each.saturating_mul(count as u64), u64::saturating_add);
    support::check_memory(bytes, "joined strings want memory")?;
    let element = |k: usize| {
        let parts =
            inputs.iter().map(|strings| &strings.strings[if strings.sizes.is_empty() { 0 } else { k }][..]);
        Bytes::from(parts.collect::<Vec<_>>().join(&separator[..]))
    };
    let strings = Strings { sizes: sizes.clone(), strings: (0..count).map(element).collect() };
    cx.push(strings);
    Ok(())
}

/// Numbers as strings, in the plain form.
fn as_string(cx: &mut Context<'_>) -> Result<()> {
    let attributes = &cx.node.attributes;
    let is_plain = attributes.int_or("precision", -1)? < 0
        && attributes.int_or("width", -1)? < 0
        && attributes.string_or("fill", Bytes::new())?.is_empty()
        && !attributes.bool_or("scientific", false)?
        && !attributes.bool_or("shortest", false)?;
    let value = cx.input(0)?.clone();
    if let Value::Strings(_) = value {
        cx.push(value);
        return Ok(());
    }
    let tensor = value.tensor()?;
    let is_float =
        tensor.shape().element_type.is_floating_point() || tensor.shape().element_type.is_complex();
    if !is_plain {
        return Err(Error::unsupported("AsString with a width, a precision or a form is not supported"));
    }
    let each = (size_of::<Bytes>() + NUMBER_BYTES) as u64;
    let bytes = each.saturating_mul(tensor.shape().element_count().unsigned_abs());
    support::check_memory(bytes, format_args!("{} as strings wants memory", tensor.shape()))?;
    let scalars = tensor.to_literal();
    let strings = scalars.scalars().map(|scalar| match scalar {
        Scalar::Pred(value) => Bytes::from(if value { "true" } else { "false" }),
        Scalar::Float(value) if is_float => Bytes::from(fixed(value)),
        Scalar::Complex(re, im) => Bytes::from(format!("({},{})", fixed(re), fixed(im))),
        other => Bytes::from(number(other, tensor.shape().element_type)),
    });
    let strings = Strings { sizes: tensor.shape().sizes(), strings: strings.collect() };
    cx.push(strings);
    Ok(())
}

/// As C prints `%f`.
fn fixed(value: f64) -> String {
    if value.is_finite() { format!("{value:.6}") } else { float(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_printed_as_streams_of_cpp_print_them() {
        let cases = [
            (0.1, "0.1"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (1234567.0, "1.23457e+06"),
            (999999.5, "1e+06"),
            (123456.0, "123456"),
            (0.0001, "0.0001"),
            (0.00001234, "1.234e-05"),
            (1e100, "1e+100"),
            (f64::INFINITY, "inf"),
        ];
        for (value, text) in cases {
            assert_eq!(float(value), text);
        }
    }
}
