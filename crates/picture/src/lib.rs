//! Pictures of HLO: a graph for Graphviz ([`dot`]) and an interactive page ([`html`]).
//!
//! Both show each computation once as a graph of instructions, with shapes and the cost of each
//! instruction ([`hlo::analysis::Cost`]). Names come from untrusted models, so each format escapes
//! them.

mod dot;
mod html;
mod kind;

pub use dot::dot;
pub use html::html;

/// Maximum number of elements of constants that are shown as values at their consumers.
pub(crate) const SHOWN_CONSTANT: i64 = 8;

/// Print options for instructions: no layouts and no large constants. Metadata is shown separately.
pub(crate) fn text_options() -> hlo::PrintOptions {
    hlo::PrintOptions { max_constant_elements: SHOWN_CONSTANT as usize, ..hlo::PrintOptions::short() }
}

/// Text of a small constant's value, without its shape.
pub(crate) fn value_text(literal: &shape::Literal) -> String {
    let text = hlo::text::literal_to_text(literal);
    text.split_once(' ').map_or(text.clone(), |(_, value)| value.to_owned())
}
