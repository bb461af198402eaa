//! String ops and printing.

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

/// Number of elements of each tensor that are printed by default.
const SUMMARIZE: i64 = 3;

fn print(cx: &mut Context<'_>) -> Result<()> {
    let attributes = &cx.node.attributes;
    let limit = attributes.int_or("summarize", SUMMARIZE)?;
    let first = attributes.int_or("first_n", -1)?;
    let is_printed = first < 0 || {
        let counter = cx.shared.resources.counter(&cx.node.name, 0);
        let mut count = crate::lock::lock(&counter);
        *count += 1;
        *count <= u128::from(first.unsigned_abs())
    };
    if is_printed {
        let mut text = String::from_utf8_lossy(&attributes.string_or("message", Bytes::new())?).into_owned();
        for value in &cx.inputs[1..] {
            text.push('[');
            text.push_str(&summary(value, limit)?);
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
    let limit = cx.node.attributes.int_or("summarize", SUMMARIZE)?;
    let data: Vec<String> = cx.inputs[1..]
        .iter()
        .map(|value| Ok(format!("[{}]", summary(value, limit)?)))
        .collect::<Result<_>>()?;
    Err(Error::invalid(format!("assertion failed: {}", data.join(" "))))
}

/// Text of the first `limit` elements of a value; a negative limit means all.
pub(crate) fn summary(value: &Value, limit: i64) -> Result<String> {
    let elements = Elements::new(value.clone().read()?)?;
    let shown = usize::try_from(limit).unwrap_or(usize::MAX).min(elements.count);
    elements.check_room(shown)?;
    let more = if elements.count > shown { "..." } else { "" };
    let shown: Vec<String> = (0..shown).map(|at| elements.text(at)).collect();
    Ok(shown.join(" ") + more)
}

/// Elements of a value as text, converted on demand because only a few elements of a large value
/// are printed.
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

    /// Text of the element at a row-major position.
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

    /// Fails if there is not enough memory for the joined text of `shown` elements.
    fn check_room(&self, shown: usize) -> Result<()> {
        let bytes = match &self.value {
            Value::Strings(strings) => length(strings.strings.iter().take(shown)),
            _ => 0,
        };
        let each = (size_of::<String>() + NUMBER_BYTES) as u64;
        let bytes = bytes.saturating_mul(COPIES).saturating_add(each.saturating_mul(shown as u64));
        support::check_memory(bytes, "the printed text")
    }
}

/// Memory in bytes of a printed number, including allocation overhead.
const NUMBER_BYTES: usize = 48;

/// Number of copies of a string until it is joined: read, quoted, joined, and joined with others.
const COPIES: u64 = 4;

/// Total length of strings in bytes.
fn length<'s>(strings: impl Iterator<Item = &'s Bytes>) -> u64 {
    strings.map(|text| text.len() as u64).sum()
}

/// Formats a number like a C++ stream: with six significant digits.
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
    // Round first: the exponent is that of the rounded number.
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

/// Inserts values into a template.
fn format(cx: &mut Context<'_>) -> Result<()> {
    let attributes = &cx.node.attributes;
    let text = |name: &str| -> Result<String> {
        let bytes = attributes.string_or(name, Bytes::from("%s"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let (template, placeholder) = (text("template")?, text("placeholder")?);
    let limit = attributes.int_or("summarize", SUMMARIZE)?;
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
    support::check_memory(bytes.saturating_mul(COPIES), "the formatted text")?;
    for (value, part) in cx.inputs.iter().zip(&parts[1..]) {
        out.push_str(&nested(&value.clone().read()?, limit)?);
        out.push_str(part);
    }
    cx.push(Strings::scalar(out));
    Ok(())
}

/// Text of a value with brackets for its dimensions. Shows the first and last `limit` elements of
/// each dimension.
fn nested(value: &Value, limit: i64) -> Result<String> {
    let sizes = super::arrays::sizes(value)?;
    let elements = Elements::new(value.clone())?;
    let limit = if limit < 0 { usize::MAX } else { limit.unsigned_abs() as usize };
    let shown = sizes.iter().map(|&size| (size.max(0) as usize).min(limit.saturating_mul(2)));
    elements.check_room(shown.fold(1, usize::saturating_mul).min(elements.count))?;
    let mut out = String::new();
    write_nested(&mut out, &sizes, &elements, 0..elements.count, limit);
    Ok(out)
}

fn write_nested(out: &mut String, sizes: &[i64], elements: &Elements, range: Range<usize>, limit: usize) {
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
    let is_cut = size > limit.saturating_mul(2);
    let separator = if inner.is_empty() { " " } else { "\n" };
    out.push('[');
    for k in 0..size {
        if is_cut && k == limit {
            out.push_str(separator);
            out.push_str("...");
        }
        if is_cut && (limit..size - limit).contains(&k) {
            continue;
        }
        if k > 0 {
            out.push_str(separator);
        }
        let start = range.start + k * each;
        write_nested(out, inner, elements, start..start + each, limit);
    }
    out.push(']');
}

/// Joins strings elementwise. A scalar is broadcast.
fn join(cx: &mut Context<'_>) -> Result<()> {
    let separator = cx.node.attributes.string_or("separator", Bytes::new())?;
    let inputs: Vec<_> = cx.inputs.iter().map(Value::strings).collect::<Result<_>>()?;
    let whole = inputs.iter().find(|strings| !strings.sizes.is_empty()).or(inputs.first());
    let sizes = whole.map(|strings| strings.sizes.clone()).unwrap_or_default();
    if let Some(other) = inputs.iter().find(|strings| !strings.sizes.is_empty() && strings.sizes != sizes) {
        return Err(Error::invalid(format!("cannot join strings of sizes {sizes:?} and {:?}", other.sizes)));
    }
    let count = whole.map_or(0, |strings| strings.strings.len());
    let lengths = inputs.iter().map(|strings| {
        let times = if strings.sizes.is_empty() { count as u64 } else { 1 };
        length(strings.strings.iter()).saturating_mul(times)
    });
    let each = (separator.len() * inputs.len() + size_of::<Bytes>()) as u64;
    let bytes = lengths.fold(each.saturating_mul(count as u64), u64::saturating_add);
    support::check_memory(bytes, "the joined strings")?;
    let element = |k: usize| {
        let parts =
            inputs.iter().map(|strings| &strings.strings[if strings.sizes.is_empty() { 0 } else { k }][..]);
        Bytes::from(parts.collect::<Vec<_>>().join(&separator[..]))
    };
    let strings = Strings { sizes: sizes.clone(), strings: (0..count).map(element).collect() };
    cx.push(strings);
    Ok(())
}

/// Converts numbers to strings in the default format.
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
        return Err(Error::unsupported(
            "AsString with a width, a precision, or another format is not supported",
        ));
    }
    let each = (size_of::<Bytes>() + NUMBER_BYTES) as u64;
    let bytes = each.saturating_mul(tensor.shape().element_count().unsigned_abs());
    support::check_memory(bytes, format_args!("{} as strings", tensor.shape()))?;
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

/// Formats a number like `%f` in C.
fn fixed(value: f64) -> String {
    if value.is_finite() { format!("{value:.6}") } else { float(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_printed_as_by_cpp_streams() {
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
