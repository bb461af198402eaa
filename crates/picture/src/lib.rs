//! Pictures of HLO: a graph for Graphviz ([`dot`]), a page to look around in ([`html`]).
//!
//! Both show each computation once as a graph of instructions, with shapes and what each instruction computes and moves
//! ([`hlo::analysis::Cost`]). Names come from models that nobody vouches for: each format escapes them.

mod dot;
mod html;
mod kind;

pub use dot::dot;
pub use html::html;

/// Constants of at most so many elements are shown with their values, where they are used.
pub(crate) const SHOWN_CONSTANT: i64 = 8;

/// How texts of instructions are printed: no layouts, no large constants; metadata is shown apart.
pub(crate) fn text_options() -> hlo::PrintOptions {
    hlo::PrintOptions { max_constant_elements: SHOWN_CONSTANT as usize, ..hlo::PrintOptions::short() }
}

/// The value of a small constant, without its shape.
pub(crate) fn value_text(literal: &shape::Literal) -> String {
    let text = hlo::text::literal_to_text(literal);
    text.split_once(' ').map_or(text.clone(), |(_, value)| value.to_owned())
}
