//! Literals: `1`, `{1, 2}`, `{ {1, 2}, {3, 4} }`, `(1, {2, 3})`.

use super::lexer::{Lexer, Token};
use super::number::{read_element, write_element};
use super::shape::read_shape;
use shape::{ArrayShape, Literal, Shape};
use support::Result;

/// Returns a complete literal with its shape: `f32[2] {1, 2.5}`.
pub fn literal_to_text(literal: &Literal) -> String {
    let mut out = format!("{} ", literal.shape());
    write_literal(literal, usize::MAX, &mut out);
    out
}

/// Reads the output of [`literal_to_text`].
pub fn parse_literal(text: &str) -> Result<Literal> {
    let text = text.trim();
    // A space separates them: `s32[1] {0}` is an array with the element 0, and `s32[1]{0}` a shape
    // with its layout.
    let end = end_of_shape(text);
    let mut shape_lexer = Lexer::new(&text[..end], 0);
    let shape = read_shape(&mut shape_lexer)?;
    shape_lexer.expect_end()?;
    let mut lexer = Lexer::new(text, end);
    let mut zeros = Zeros::default();
    let literal = read_literal(&mut lexer, &shape, &mut zeros)?;
    lexer.expect_end()?;
    if zeros.elided > 0 {
        return Err(lexer.error("the text elides elements ('...')"));
    }
    Ok(literal)
}

/// Reads `s32[2]{0} {1, 2}` or `( s32[] 1, pred[2]{0} {1, 0} )`: XLA's form for the literals of
/// custom calls, in which braces after an array contain its layout.
pub(crate) fn read_shaped_literal(lexer: &mut Lexer<'_>) -> Result<Literal> {
    if !lexer.eat_symbol('(') {
        let shape = read_shape(lexer)?;
        return read_literal(lexer, &shape, &mut Zeros::default());
    }
    let mut elements = Vec::new();
    while !lexer.eat_symbol(')') {
        if !elements.is_empty() {
            lexer.expect_symbol(',')?;
        }
        if lexer.peek() == Token::Symbol('(') {
            return Err(lexer.error("a nested tuple in a literal is not supported"));
        }
        elements.push(read_shaped_literal(lexer)?);
    }
    Ok(Literal::Tuple(elements))
}

/// Returns the end of the shape: the first space outside of brackets.
fn end_of_shape(text: &str) -> usize {
    let mut depth = 0_usize;
    let is_end = |c: char| {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && c.is_whitespace()
    };
    text.find(is_end).unwrap_or(text.len())
}

/// Maximum number of bytes of elements that a module's text can elide.
const MAX_ZERO_BYTES: u64 = 1 << 31;

/// Elements that texts elide. XLA's parser reads them as zeros.
#[derive(Debug, Default)]
pub(super) struct Zeros {
    bytes: u64,
    /// Number of arrays written as `{...}`.
    pub(super) elided: usize,
}

impl Zeros {
    /// Returns the bytes of an array whose elements are zeros.
    fn bytes_for(&mut self, shape: &ArrayShape, lexer: &Lexer<'_>) -> Result<Vec<u8>> {
        self.bytes = self.bytes.saturating_add(shape.byte_size());
        if self.bytes > MAX_ZERO_BYTES {
            let message = format!("the text elides more than {MAX_ZERO_BYTES} bytes of constants");
            return Err(lexer.error(&message));
        }
        Ok(vec![0; shape.byte_size() as usize])
    }
}

/// Appends a complete literal, or `{...}` for an array with more elements than `limit`.
pub(super) fn write_literal(literal: &Literal, limit: usize, out: &mut String) {
    match literal {
        Literal::Array { shape, data } => write_array(shape, data, limit, out),
        Literal::Tuple(elements) => {
            out.push('(');
            for (i, element) in elements.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_literal(element, limit, out);
            }
            out.push(')');
        }
    }
}

fn write_array(shape: &ArrayShape, data: &[u8], limit: usize, out: &mut String) {
    let (sizes, size) = (shape.sizes(), shape.element_type.byte_size());
    let count = data.len() / size;
    // An array without elements may have too many empty rows for a text; eliding them loses
    // nothing.
    if !sizes.is_empty() && (count > limit || (count == 0 && sizes[0] != 0)) {
        return out.push_str("{...}");
    }
    if sizes.is_empty() {
        return write_element(shape.element_type, data, out);
    }
    if count == 0 {
        return out.push_str("{}");
    }
    let mut index = vec![0; sizes.len()];
    let mut opening = sizes.len();
    for element in data.chunks_exact(size) {
        open_braces(opening, out);
        write_element(shape.element_type, element, out);
        // The number of dimensions that end after this element is the number of indices that wrap
        // around.
        let mut wrapped = 0;
        for (i, &size) in index.iter_mut().zip(&sizes).rev() {
            *i += 1;
            if *i < size {
                break;
            }
            *i = 0;
            wrapped += 1;
        }
        for i in 0..wrapped {
            out.push_str(if i > 0 { " }" } else { "}" });
        }
        if wrapped < sizes.len() {
            out.push_str(", ");
        }
        opening = wrapped;
    }
}

/// `{ {` for two dimensions that begin.
fn open_braces(count: usize, out: &mut String) {
    for i in 0..count {
        out.push_str(if i + 1 < count { "{ " } else { "{" });
    }
}

/// Reads a literal of a shape. Memory is bounded by the text's length and the limit for elided
/// elements.
pub(super) fn read_literal(lexer: &mut Lexer<'_>, shape: &Shape, zeros: &mut Zeros) -> Result<Literal> {
    match shape {
        Shape::Array(array) => read_array(lexer, array, zeros),
        Shape::Tuple(shapes) => {
            lexer.expect_symbol('(')?;
            let mut elements = Vec::with_capacity(shapes.len());
            for (i, shape) in shapes.iter().enumerate() {
                if i > 0 {
                    lexer.expect_symbol(',')?;
                }
                elements.push(read_literal(lexer, shape, zeros)?);
            }
            lexer.expect_symbol(')')?;
            Ok(Literal::Tuple(elements))
        }
        Shape::Token => Err(lexer.error("a token has no literal")),
    }
}

fn read_array(lexer: &mut Lexer<'_>, shape: &ArrayShape, zeros: &mut Zeros) -> Result<Literal> {
    if !shape.is_static() {
        return Err(lexer.error(&format!("a constant cannot have the dynamic shape {shape}")));
    }
    let shape = ArrayShape::new(shape.element_type, &shape.sizes());
    let mut data = Vec::new();
    if shape.rank() > 0 && lexer.peek() != Token::Symbol('{') {
        // As in XLA, a single number is the first element.
        read_element(shape.element_type, lexer, &mut data)?;
        if shape.element_count() == 0 {
            return Err(lexer.error(&format!("{shape} has no elements")));
        }
        let mut all = zeros.bytes_for(&shape, lexer)?;
        all[..data.len()].copy_from_slice(&data);
        data = all;
    } else {
        read_rows(lexer, &shape, &mut data, zeros)?;
    }
    let literal = Literal::from_bytes(shape, data.into());
    literal.ok_or_else(|| lexer.error("the number of elements of the constant does not match its shape"))
}

/// Reads nested rows without recursion: `seen[d]` is the number of entries in the open row of
/// dimension `d`.
fn read_rows(lexer: &mut Lexer<'_>, shape: &ArrayShape, data: &mut Vec<u8>, zeros: &mut Zeros) -> Result<()> {
    let sizes = shape.sizes();
    let mut seen: Vec<i64> = Vec::new();
    loop {
        if seen.len() < sizes.len() && lexer.eat_symbol('{') {
            seen.push(0);
            if lexer.peek() == Token::Dots {
                if seen.len() != 1 {
                    return Err(lexer.error("'...' can only replace all elements of an array"));
                }
                if shape.element_count() != 0 {
                    *data = zeros.bytes_for(shape, lexer)?;
                    zeros.elided += 1;
                }
                lexer.take();
                return lexer.expect_symbol('}');
            }
            if sizes[seen.len() - 1] != 0 {
                continue;
            }
        } else if seen.len() == sizes.len() {
            read_element(shape.element_type, lexer, data)?;
            if let Some(row) = seen.last_mut() {
                *row += 1;
            }
        } else {
            return Err(lexer.expected("'{'"));
        }
        // Close the rows that are complete.
        while let Some(&row) = seen.last() {
            let dimension = seen.len() - 1;
            if row != sizes[dimension] {
                if lexer.eat_symbol(',') {
                    break;
                }
                let size = sizes[dimension];
                return Err(
                    lexer.expected(&format!("',' ({size} entries in dimension {dimension}, got {row})"))
                );
            }
            lexer.expect_symbol('}')?;
            seen.pop();
            if let Some(outer) = seen.last_mut() {
                *outer += 1;
            }
        }
        if seen.is_empty() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shape::PrimitiveType;

    fn text_of(literal: &Literal, limit: usize) -> String {
        let mut out = String::new();
        write_literal(literal, limit, &mut out);
        out
    }

    #[test]
    fn elements_are_not_a_layout() {
        for text in ["s32[1] {0}", "s32[2] {1, 0}", "u16[2] {7, 9}", "(s32[2], f32[]) ({0, 1}, 2)", "f32[] 1"]
        {
            assert_eq!(literal_to_text(&parse_literal(text).unwrap()), text);
        }
        let column_major = parse_literal("s32[2,1]{0,1} { {1}, {0} }").unwrap();
        assert_eq!(column_major.array_shape().sizes(), [2, 1]);
        assert!(parse_literal("s32[2]").is_err());
    }

    fn read(shape: &Shape, text: &str) -> Result<Literal> {
        let mut lexer = Lexer::new(text, 0);
        let literal = read_literal(&mut lexer, shape, &mut Zeros::default())?;
        lexer.expect_end()?;
        Ok(literal)
    }

    #[test]
    fn literals_nest_like_their_dimensions() {
        let cube = Literal::from_elements(&[2, 1, 2], &[1i32, 2, 3, 4]);
        assert_eq!(text_of(&cube, 4), "{ { {1, 2} }, { {3, 4} } }");
        assert_eq!(text_of(&cube, 3), "{...}");
        let tuple = Literal::Tuple(vec![Literal::scalar(true), Literal::from_elements(&[0], &[] as &[f32])]);
        assert_eq!(text_of(&tuple, 9), "(true, {})");
        assert_eq!(literal_to_text(&cube), "s32[2,1,2] { { {1, 2} }, { {3, 4} } }");
        assert_eq!(parse_literal("s32[2,1,2] {{{1,2}},{{3,4}}}").as_ref(), Ok(&cube));
        for literal in [cube, tuple] {
            assert_eq!(read(&literal.shape(), &text_of(&literal, 9)), Ok(literal));
        }
    }

    #[test]
    fn arrays_without_elements_read_back_with_any_number_of_rows() {
        let empty = Literal::from_elements(&[1 << 40, 0], &[] as &[f32]);
        assert_eq!(text_of(&empty, 0), "{...}");
        assert_eq!(read(&empty.shape(), "{...}"), Ok(empty));
        let rows = Literal::from_elements(&[2, 0], &[] as &[f32]);
        assert_eq!(read(&rows.shape(), "{ {}, {} }"), Ok(rows));
    }

    #[test]
    fn elided_elements_are_zeros() {
        let shape = Shape::array(PrimitiveType::S32, &[2, 2]);
        let expected = |elements: &[i32; 4]| Ok(Literal::from_elements(&[2, 2], elements));
        assert_eq!(read(&shape, "{...}"), expected(&[0; 4]));
        assert_eq!(read(&shape, "7"), expected(&[7, 0, 0, 0]));
        assert!(parse_literal("s32[2,2] {...}").is_err());
        let huge = Shape::array(PrimitiveType::S32, &[1 << 40]);
        assert!(read(&huge, "{...}").is_err() && read(&huge, "7").is_err(), "memory is bounded");
        assert!(read(&Shape::array(PrimitiveType::S32, &[0]), "7").is_err());
    }

    #[test]
    fn wrong_shapes_are_rejected() {
        let shape = Shape::array(PrimitiveType::S32, &[2, 2]);
        for text in [
            "{{1,2}}",
            "{{1,2},{3}}",
            "{{1,2},{3,4},{5,6}}",
            "{1,2,3,4}",
            "{{1,2},{3,4,5}}",
            "{1,...}",
            "{{...},{1,2}}",
            "x",
            "{{{1}}}",
        ] {
            assert!(read(&shape, text).is_err(), "{text}");
        }
    }
}
