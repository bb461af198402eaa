//! Attributes that assign meanings to dimensions: slices, paddings, windows, labels, and dimension
//! numbers.

use super::attribute::{Attribute, AttributePrinter, AttributeReader, Value, read_list};
use super::lexer::Lexer;
use crate::attributes::*;
use std::fmt::Write;
use support::Result;

const INFALLIBLE: &str = "writing to a string cannot fail";

/// `{[0:4], [1:7:2]}`.
impl Value for Vec<SliceDimension> {
    fn write(&self, out: &mut String) {
        out.push('{');
        for (i, SliceDimension { start, limit, stride }) in self.iter().enumerate() {
            out.push_str(if i > 0 { ", " } else { "" });
            write!(out, "[{start}:{limit}").expect(INFALLIBLE);
            if *stride != 1 {
                write!(out, ":{stride}").expect(INFALLIBLE);
            }
            out.push(']');
        }
        out.push('}');
    }

    fn read(lexer: &mut Lexer<'_>) -> Result<Self> {
        read_list(lexer, |lexer| {
            lexer.expect_symbol('[')?;
            let start = lexer.expect_integer("the start of a slice")?;
            lexer.expect_symbol(':')?;
            let limit = lexer.expect_integer("the limit of a slice")?;
            let stride =
                if lexer.eat_symbol(':') { lexer.expect_integer("the stride of a slice")? } else { 1 };
            lexer.expect_symbol(']')?;
            Ok(SliceDimension { start, limit, stride })
        })
    }
}

/// Splits `1_2x-3_4` at `x` and reads each part as `counts` numbers separated by `_`.
fn read_pattern(
    lexer: &mut Lexer<'_>,
    what: &str,
    counts: std::ops::RangeInclusive<usize>,
) -> Result<Vec<Vec<i64>>> {
    let at = lexer.start();
    let word = lexer.expect_word(what)?;
    let parts = word
        .split('x')
        .map(|part| part.split('_').map(|n| n.parse::<i64>().ok()).collect::<Option<Vec<_>>>());
    let parts =
        parts.collect::<Option<Vec<_>>>().filter(|parts| parts.iter().all(|p| counts.contains(&p.len())));
    parts.ok_or_else(|| lexer.error_at(at, &format!("expected {what}, found '{word}'")))
}

/// `0_1x2_3`, with `_4` after each part if there is interior padding. The padding of a scalar has
/// no text and is omitted.
impl Value for PaddingConfig {
    fn write(&self, out: &mut String) {
        let interior = self.dimensions.iter().any(|d| d.interior_padding != 0);
        for (i, d) in self.dimensions.iter().enumerate() {
            out.push_str(if i > 0 { "x" } else { "" });
            write!(out, "{}_{}", d.edge_padding_low, d.edge_padding_high).expect(INFALLIBLE);
            if interior {
                write!(out, "_{}", d.interior_padding).expect(INFALLIBLE);
            }
        }
    }

    fn read(lexer: &mut Lexer<'_>) -> Result<Self> {
        let parts = read_pattern(lexer, "a padding such as 0_1x2_3", 2..=3)?;
        let dimensions = parts.iter().map(|part| PaddingDimension {
            edge_padding_low: part[0],
            edge_padding_high: part[1],
            interior_padding: part.get(2).copied().unwrap_or(0),
        });
        Ok(Self { dimensions: dimensions.collect() })
    }
}

/// `{size=3x3 stride=2x2 pad=0_1x0_1 lhs_dilate=1x1 rhs_dilate=1x1 rhs_reversal=0x0}`; default
/// fields are omitted.
impl Value for Window {
    fn write(&self, out: &mut String) {
        let mut field =
            |name: &str, is_default: fn(&WindowDimension) -> bool, text: fn(&WindowDimension) -> String| {
                if !self.dimensions.iter().all(is_default) {
                    let parts: Vec<String> = self.dimensions.iter().map(text).collect();
                    let blank = if name.starts_with('{') { "" } else { " " };
                    write!(out, "{blank}{name}={}", parts.join("x")).expect(INFALLIBLE);
                }
            };
        field("{size", |_| false, |d| d.size.to_string());
        field("stride", |d| d.stride == 1, |d| d.stride.to_string());
        field(
            "pad",
            |d| d.padding_low == 0 && d.padding_high == 0,
            |d| format!("{}_{}", d.padding_low, d.padding_high),
        );
        field("lhs_dilate", |d| d.base_dilation == 1, |d| d.base_dilation.to_string());
        field("rhs_dilate", |d| d.window_dilation == 1, |d| d.window_dilation.to_string());
        field("rhs_reversal", |d| !d.window_reversal, |d| u8::from(d.window_reversal).to_string());
        out.push('}');
    }

    fn read(lexer: &mut Lexer<'_>) -> Result<Self> {
        lexer.expect_symbol('{')?;
        let mut fields = Vec::new();
        let mut dimensions = None;
        while !lexer.eat_symbol('}') {
            let at = lexer.start();
            let name = lexer.expect_word("a field of a window")?;
            lexer.expect_symbol('=')?;
            let counts = if name == "pad" { 2..=2 } else { 1..=1 };
            let parts = read_pattern(lexer, "numbers such as 2x2, or 0_1x0_1 for pad", counts)?;
            if name == "size" {
                let window: Vec<_> = parts.iter().map(|part| WindowDimension::of_size(part[0])).collect();
                dimensions = Some(window);
            } else {
                fields.push((at, name, parts));
            }
        }
        let mut dimensions = dimensions.unwrap_or_default();
        for (at, name, parts) in fields {
            if parts.len() != dimensions.len() {
                let size = dimensions.len();
                return Err(lexer
                    .error_at(at, &format!("'{name}' has {} dimensions, but size has {size}", parts.len())));
            }
            for (dimension, part) in dimensions.iter_mut().zip(&parts) {
                set_field(dimension, name, part)
                    .ok_or_else(|| lexer.error_at(at, &format!("unknown field '{name}' of a window")))?;
            }
        }
        Ok(Self { dimensions })
    }
}

/// Sets one field of a window's dimension; `None` if there is no field of that name.
fn set_field(dimension: &mut WindowDimension, name: &str, part: &[i64]) -> Option<()> {
    match name {
        "stride" => dimension.stride = part[0],
        "pad" => (dimension.padding_low, dimension.padding_high) = (part[0], part[1]),
        "lhs_dilate" => dimension.base_dilation = part[0],
        "rhs_dilate" => dimension.window_dilation = part[0],
        "rhs_reversal" => dimension.window_reversal = part[0] == 1,
        _ => return None,
    }
    Some(())
}

/// Label of a dimension of a convolution's operand other than a spatial one.
struct Label {
    letter: char,
    dimension: usize,
}

/// Writes the labels of one operand: letters for its two special dimensions, and digits for the
/// spatial ones.
fn write_labels(special: [Label; 2], spatial: &[usize], out: &mut String) {
    let rank = special.iter().fold(spatial.len() + 2, |rank, label| rank.max(label.dimension + 1));
    let mut labels = vec!['?'; rank];
    for Label { letter, dimension } in special {
        labels[dimension] = letter;
    }
    for (i, &dimension) in spatial.iter().enumerate() {
        if let (Some(label), Some(digit)) = (labels.get_mut(dimension), char::from_digit(i as u32, 10)) {
            *label = digit;
        }
    }
    out.extend(labels);
}

/// Returns the positions of two letters and of the digits, in the digits' order; `None` if one is
/// missing or duplicated.
fn read_labels(labels: &str, first: char, second: char) -> Option<(usize, usize, Vec<usize>)> {
    let position = |label: char| labels.bytes().position(|byte| char::from(byte) == label);
    let spatial = labels.len().checked_sub(2)?;
    let spatial = (0..spatial).map(|i| position(char::from_digit(i as u32, 10)?));
    // The number of distinct labels equals the number of characters, so there are no duplicates.
    Some((position(first)?, position(second)?, spatial.collect::<Option<_>>()?))
}

/// `b01f_01io->b01f`.
impl Value for ConvolutionDimensionNumbers {
    fn write(&self, out: &mut String) {
        let label = |letter, dimension| Label { letter, dimension };
        let input = [label('b', self.input_batch_dimension), label('f', self.input_feature_dimension)];
        write_labels(input, &self.input_spatial_dimensions, out);
        out.push('_');
        let (inputs, outputs) = (self.kernel_input_feature_dimension, self.kernel_output_feature_dimension);
        write_labels([label('i', inputs), label('o', outputs)], &self.kernel_spatial_dimensions, out);
        out.push_str("->");
        let output = [label('b', self.output_batch_dimension), label('f', self.output_feature_dimension)];
        write_labels(output, &self.output_spatial_dimensions, out);
    }

    fn read(lexer: &mut Lexer<'_>) -> Result<Self> {
        let at = lexer.start();
        let text = lexer.take_rest();
        let read = || {
            let (operands, output) = text.trim_end().split_once("->")?;
            let (input, kernel) = operands.split_once('_')?;
            let input = read_labels(input, 'b', 'f')?;
            let kernel = read_labels(kernel, 'i', 'o')?;
            let output = read_labels(output, 'b', 'f')?;
            Some(Self {
                input_batch_dimension: input.0,
                input_feature_dimension: input.1,
                input_spatial_dimensions: input.2,
                kernel_input_feature_dimension: kernel.0,
                kernel_output_feature_dimension: kernel.1,
                kernel_spatial_dimensions: kernel.2,
                output_batch_dimension: output.0,
                output_feature_dimension: output.1,
                output_spatial_dimensions: output.2,
            })
        };
        read().ok_or_else(|| lexer.error_at(at, "expected labels such as b01f_01io->b01f"))
    }
}

/// Dimension numbers are written as separate attributes, one for each list.
macro_rules! dimension_numbers {
    ($type:ident { $($list:ident),* ; $($index:ident)? ; $($optional:ident),* }) => {
        impl Attribute for $type {
            fn print(&self, _name: &str, printer: &mut AttributePrinter<'_>) {
                $(printer.field(stringify!($list), &self.$list, &[]);)*
                $(printer.field(stringify!($optional), &self.$optional, &[Vec::new()]);)*
                $(printer.field(stringify!($index), &self.$index, &[]);)?
            }

            fn parse(_name: &str, reader: &mut AttributeReader<'_, '_>) -> Result<Option<Self>> {
                Ok(Some(Self {
                    $($list: reader.field(stringify!($list), &[])?,)*
                    $($index: reader.field(stringify!($index), &[])?,)?
                    $($optional: reader.field(stringify!($optional), &[Vec::new()])?,)*
                }))
            }
        }
    };
}

dimension_numbers!(DotDimensionNumbers {
    ; ; lhs_batch_dims, lhs_contracting_dims, rhs_batch_dims, rhs_contracting_dims
});
dimension_numbers!(GatherDimensionNumbers {
    offset_dims, collapsed_slice_dims, start_index_map; index_vector_dim;
    operand_batching_dims, start_indices_batching_dims
});
dimension_numbers!(ScatterDimensionNumbers {
    update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims; index_vector_dim;
    input_batching_dims, scatter_indices_batching_dims
});
