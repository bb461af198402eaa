//! Sums of products given by an equation of subscripts.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::{Reducer, list};
use hlo::{ComparisonDirection, DotDimensionNumbers, InstructionId, Op};
use shape::PrimitiveType;
use std::collections::BTreeMap;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Einsum", einsum).types("T", NUMBERS),
    rule("XlaEinsum", xla_einsum).types("T", FLOATS_AND_COMPLEX),
];

/// The label of a dimension: a letter or, for a dimension covered by `...`, its distance from the
/// end of the ellipsis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Letter(char),
    Dots(usize),
}

/// A tensor with labeled dimensions. Each label occurs once.
struct Labeled {
    id: InstructionId,
    labels: Vec<Label>,
}

/// `Einsum(inputs...)`. More than two inputs, which ONNX allows, are multiplied from left to right.
fn einsum(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let inputs = cx.inputs_from(0)?;
    sum_of_products(cx, &inputs)
}

/// Like [`einsum`], with two inputs by position.
fn xla_einsum(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let inputs = [cx.input(0)?, cx.input(1)?];
    sum_of_products(cx, &inputs)
}

fn sum_of_products(cx: &mut NodeContext<'_, '_>, inputs: &[InstructionId]) -> Result<InstructionId> {
    let equation = cx.attributes().text("equation")?;
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let wrong = |why: &str| format!("the equation '{equation}' {why}");
    let (left, output) = equation.split_once("->").ok_or_else(|| cx.invalid(wrong("has no ->")))?;
    let terms: Vec<&str> = left.split(',').collect();
    cx.check(terms.len() == inputs.len(), || {
        wrong(&format!("has {} terms for {} inputs", terms.len(), inputs.len()))
    })?;
    let mut labeled = Vec::new();
    let mut dots = 0;
    for (term, &id) in terms.iter().zip(inputs) {
        let rank = cx.rank(id);
        let letters = term.replace("...", "").chars().count();
        let own = if term.contains("...") { rank.saturating_sub(letters) } else { 0 };
        let labels =
            labels(term, own).ok_or_else(|| cx.invalid(wrong("has characters other than letters")))?;
        cx.check(labels.len() == rank, || {
            wrong(&format!("has the term '{term}' for an input of rank {rank}"))
        })?;
        dots = dots.max(own);
        labeled.push((id, labels));
    }
    let output =
        labels(output, dots).ok_or_else(|| cx.invalid(wrong("has characters other than letters")))?;
    let sizes = sizes_of_labels(cx, &labeled)?;
    cx.check(output.iter().all(|label| sizes.contains_key(label)), || {
        wrong("has letters in the result that do not occur in any term")
    })?;
    let mut terms = Vec::new();
    for (k, (id, labels)) in labeled.iter().enumerate() {
        let others: Vec<Label> = labeled
            .iter()
            .enumerate()
            .filter(|(j, _)| *j != k)
            .flat_map(|(_, other)| other.1.clone())
            .collect();
        let is_kept = |label: &Label| output.contains(label) || others.contains(label);
        terms.push(simplified(cx, *id, labels, &sizes, is_kept)?);
    }
    let mut terms = terms.into_iter();
    let mut all = terms.next().ok_or_else(|| cx.invalid(wrong("has no term")))?;
    while let Some(term) = terms.next() {
        // Later terms need their labels, too.
        let later = terms.as_slice().iter().flat_map(|term| &term.labels);
        let kept: Vec<Label> = output.iter().chain(later).copied().collect();
        all = product(cx, all, term, &kept)?;
    }
    spread(cx, all, &output, &sizes)
}

/// Returns the labels of a term, or `None` unless it consists of letters and at most one `...`,
/// which covers `dots` dimensions.
fn labels(term: &str, dots: usize) -> Option<Vec<Label>> {
    let mut labels = Vec::new();
    let mut rest = term.chars();
    let mut has_dots = false;
    while let Some(c) = rest.next() {
        match c {
            '.' if !has_dots && rest.next() == Some('.') && rest.next() == Some('.') => {
                has_dots = true;
                labels.extend((0..dots).rev().map(Label::Dots));
            }
            c if c.is_ascii_alphabetic() => labels.push(Label::Letter(c)),
            _ => return None,
        }
    }
    Some(labels)
}

/// Returns the size of every label. Dimensions of size 1 covered by `...` are broadcast.
fn sizes_of_labels(
    cx: &NodeContext<'_, '_>,
    terms: &[(InstructionId, Vec<Label>)],
) -> Result<BTreeMap<Label, i64>> {
    let mut sizes = BTreeMap::new();
    for (id, labels) in terms {
        for (&label, size) in labels.iter().zip(cx.sizes(*id)) {
            let known = sizes.entry(label).or_insert(size);
            if *known == 1 && matches!(label, Label::Dots(_)) {
                *known = size;
            }
            let fits = *known == size || size == 1 && matches!(label, Label::Dots(_));
            cx.check(fits, || {
                let name = match label {
                    Label::Letter(letter) => format!("'{letter}'"),
                    Label::Dots(_) => "'...'".to_owned(),
                };
                format!("the dimension {name} has different sizes: {known} and {size}")
            })?;
        }
    }
    Ok(sizes)
}

/// Reduces a tensor to one occurrence of each label: takes diagonals, sums the dimensions that are
/// not kept, and drops those to be broadcast.
fn simplified(
    cx: &mut NodeContext<'_, '_>,
    id: InstructionId,
    labels: &[Label],
    sizes: &BTreeMap<Label, i64>,
    is_kept: impl Fn(&Label) -> bool,
) -> Result<Labeled> {
    let actual = cx.sizes(id);
    let mut masked = id;
    let mut summed = Vec::new();
    let mut unique = Vec::new();
    let mut squeezed = Vec::new();
    for (d, label) in labels.iter().enumerate() {
        if let Some(first) = labels[..d].iter().position(|other| other == label) {
            masked = diagonal(cx, masked, first, d)?;
            summed.push(d);
        } else if actual[d] != sizes[label] {
            // This dimension has size 1 and is broadcast against the other input.
            summed.push(d);
        } else if !is_kept(label) {
            summed.push(d);
        } else {
            unique.push(*label);
            squeezed.push(actual[d]);
        }
    }
    if summed.iter().all(|&d| actual[d] == 1) {
        return Ok(Labeled { id: cx.reshape(masked, &squeezed)?, labels: unique });
    }
    Ok(Labeled { id: cx.reduce(masked, Reducer::Add, &summed)?, labels: unique })
}

/// Zeroes the elements whose positions in two dimensions differ.
fn diagonal(
    cx: &mut NodeContext<'_, '_>,
    id: InstructionId,
    first: usize,
    second: usize,
) -> Result<InstructionId> {
    let sizes = cx.sizes(id);
    let row = cx.iota(PrimitiveType::S32, &sizes, first)?;
    let column = cx.iota(PrimitiveType::S32, &sizes, second)?;
    let on = cx.compare(ComparisonDirection::Eq, row, column)?;
    let zero = cx.splat_like(id, 0.0)?;
    cx.select(on, id, zero)
}

/// Returns the product of two tensors, summed over the labels that both have and are not kept.
fn product(cx: &mut NodeContext<'_, '_>, a: Labeled, b: Labeled, kept: &[Label]) -> Result<Labeled> {
    let position = |labels: &[Label], label: &Label| labels.iter().position(|other| other == label);
    let mut numbers = DotDimensionNumbers {
        lhs_batch_dims: Vec::new(),
        rhs_batch_dims: Vec::new(),
        lhs_contracting_dims: Vec::new(),
        rhs_contracting_dims: Vec::new(),
    };
    let mut batch = Vec::new();
    for (d, label) in a.labels.iter().enumerate() {
        let Some(other) = position(&b.labels, label) else { continue };
        if kept.contains(label) {
            numbers.lhs_batch_dims.push(d);
            numbers.rhs_batch_dims.push(other);
            batch.push(*label);
        } else {
            numbers.lhs_contracting_dims.push(d);
            numbers.rhs_contracting_dims.push(other);
        }
    }
    let free = |own: &[Label], other: &[Label]| -> Vec<Label> {
        own.iter().filter(|label| !other.contains(label)).copied().collect()
    };
    let labels = [batch, free(&a.labels, &b.labels), free(&b.labels, &a.labels)].concat();
    let id = cx.op(Op::Dot { dot_dimension_numbers: numbers }, &[a.id, b.id])?;
    Ok(Labeled { id, labels })
}

/// Permutes the dimensions to the order of the result. A label that occurs twice in the result
/// becomes a diagonal.
fn spread(
    cx: &mut NodeContext<'_, '_>,
    product: Labeled,
    output: &[Label],
    sizes: &BTreeMap<Label, i64>,
) -> Result<InstructionId> {
    let mut unique: Vec<Label> = Vec::new();
    for label in output {
        if !unique.contains(label) {
            unique.push(*label);
        }
    }
    let place = |label: &Label| product.labels.iter().position(|other| other == label);
    let permutation: Option<Vec<usize>> = unique.iter().map(place).collect();
    let Some(permutation) = permutation.filter(|p| p.len() == product.labels.len()) else {
        let labels = product.labels.len();
        return Err(
            cx.invalid(format!("the result has {} dimensions, but the product has {labels}", unique.len()))
        );
    };
    let id = cx.transpose(product.id, &permutation)?;
    if unique.len() == output.len() {
        return Ok(id);
    }
    let result: Vec<i64> = output.iter().map(|label| sizes[label]).collect();
    cx.check(shape::index::element_count(&result).is_some(), || {
        format!("the result is too large: {}", list(&result))
    })?;
    let first = |label: &Label| output.iter().position(|other| other == label);
    let dimensions: Vec<usize> = unique.iter().filter_map(first).collect();
    let mut id = cx.broadcast(id, &result, &dimensions)?;
    for (d, label) in output.iter().enumerate() {
        if let Some(first) = output[..d].iter().position(|other| other == label) {
            id = diagonal(cx, id, first, d)?;
        }
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_letters_and_dots() {
        let letter = Label::Letter;
        assert_eq!(labels("ab", 0), Some(vec![letter('a'), letter('b')]));
        assert_eq!(labels("a...b", 2), Some(vec![letter('a'), Label::Dots(1), Label::Dots(0), letter('b')]));
        assert_eq!(labels("", 0), Some(Vec::new()));
        for bad in ["a.b", "..", "a1", "......"] {
            assert_eq!(labels(bad, 1), None, "{bad}");
        }
    }
}
