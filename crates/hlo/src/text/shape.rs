//! Shapes: `f32[2,<=3]{1,0}`, `(f32[], s32[2])`, `token[]`.

use super::lexer::{Lexer, Token};
use crate::infer::{MAX_RANK, MAX_TUPLE_DEPTH};
use shape::{ArrayShape, CarriedLayout, Dimension, Layout, PrimitiveType, Shape};
use support::Result;

/// True if a shape comes next: an element type before `[`, or a tuple.
pub(super) fn shape_is_next(lexer: &Lexer<'_>) -> bool {
    match lexer.peek() {
        Token::Symbol('(') => true,
        Token::Word("b") if lexer.peek_second() == Token::Symbol('(') => true,
        Token::Word(_) => lexer.peek_second() == Token::Symbol('['),
        _ => false,
    }
}

/// Reads a shape.
pub(crate) fn read_shape(lexer: &mut Lexer<'_>) -> Result<Shape> {
    read_nested(lexer, 0)
}

fn read_nested(lexer: &mut Lexer<'_>, depth: usize) -> Result<Shape> {
    if lexer.peek() == Token::Word("b") && lexer.peek_second() == Token::Symbol('(') {
        return read_buffer(lexer);
    }
    if !lexer.eat_symbol('(') {
        return read_array_or_token(lexer);
    }
    if depth == MAX_TUPLE_DEPTH {
        return Err(lexer.error(&format!("tuples nest deeper than {MAX_TUPLE_DEPTH} levels")));
    }
    let mut elements = Vec::new();
    while lexer.peek() != Token::Symbol(')') {
        if !elements.is_empty() {
            lexer.expect_symbol(',')?;
        }
        elements.push(read_nested(lexer, depth + 1)?);
    }
    lexer.take();
    Ok(Shape::Tuple(elements))
}

/// Reads `b(f32[2])`, the memory of an array.
fn read_buffer(lexer: &mut Lexer<'_>) -> Result<Shape> {
    lexer.take();
    lexer.take();
    let Shape::Array(mut array) = read_array_or_token(lexer)? else {
        return Err(lexer.error("expected an array in a buffer"));
    };
    lexer.expect_symbol(')')?;
    let row_major = Layout::from((0..array.rank()).rev().collect::<Vec<usize>>());
    let layout = array.layout.unwrap_or(row_major);
    let annotations = CarriedLayout { is_buffer: true, ..layout.carried() };
    array.layout = Some(Layout { carried: Some(Box::new(annotations)), ..layout });
    Ok(Shape::Array(array))
}

fn read_array_or_token(lexer: &mut Lexer<'_>) -> Result<Shape> {
    let Token::Word(name) = lexer.peek() else { return Err(lexer.expected("a shape")) };
    let element_type = name.parse::<PrimitiveType>();
    if element_type.is_err() && name != "token" {
        return Err(lexer.error(&format!("unknown element type '{name}'")));
    }
    lexer.take();
    lexer.expect_symbol('[')?;
    let mut dimensions = Vec::new();
    while lexer.peek() != Token::Symbol(']') {
        if !dimensions.is_empty() {
            lexer.expect_symbol(',')?;
        }
        if dimensions.len() == MAX_RANK {
            return Err(lexer.error(&format!("an array cannot have more than {MAX_RANK} dimensions")));
        }
        let is_dynamic = lexer.eat(Token::AtMost);
        if lexer.eat_symbol('?') {
            dimensions.push(Dimension::UNBOUNDED);
            continue;
        }
        let size = match lexer.peek() {
            Token::Word(word) if !word.starts_with('-') => word.parse::<i64>().ok(),
            _ => None,
        };
        let size = size.ok_or_else(|| lexer.expected("the size of a dimension"))?;
        lexer.take();
        dimensions.push(Dimension { size, is_dynamic });
    }
    lexer.take();
    let Ok(element_type) = element_type else {
        if !dimensions.is_empty() {
            return Err(lexer.error("a token has no dimensions"));
        }
        return Ok(Shape::Token);
    };
    let layout = read_layout(lexer, dimensions.len())?;
    Ok(Shape::Array(ArrayShape { element_type, dimensions, layout }))
}

/// Reads a layout, if one comes next.
fn read_layout(lexer: &mut Lexer<'_>, rank: usize) -> Result<Option<Layout>> {
    if lexer.peek() != Token::Symbol('{') {
        return Ok(None);
    }
    // A brace before anything else opens a computation.
    let starts_layout = match lexer.peek_second() {
        Token::Word(word) => word.starts_with(|c: char| c.is_ascii_digit()),
        Token::Symbol(':') => true,
        Token::Symbol('}') => rank == 0,
        _ => false,
    };
    if !starts_layout {
        return Ok(None);
    }
    let at = lexer.start();
    lexer.take();
    let mut minor_to_major: Vec<usize> = Vec::new();
    while let Token::Word(_) = lexer.peek() {
        minor_to_major.push(lexer.expect_integer("a dimension number")?);
        if !lexer.eat_symbol(',') {
            break;
        }
    }
    let mut rest = String::new();
    if lexer.eat_symbol(':') {
        let start = lexer.start();
        while !matches!(lexer.peek(), Token::Symbol('}') | Token::End) {
            lexer.take();
        }
        rest = lexer.text_from(start).trim_end().to_owned();
    }
    lexer.expect_symbol('}')?;
    let mut seen = vec![false; rank];
    let fresh = |&d: &usize| d < rank && !std::mem::replace(&mut seen[d], true);
    if minor_to_major.len() != rank || !minor_to_major.iter().all(fresh) {
        return Err(
            lexer.error_at(at, &format!("the layout {minor_to_major:?} does not permute {rank} dimensions"))
        );
    }
    let carried = (!rest.is_empty()).then(|| Box::new(CarriedLayout { text: rest, is_buffer: false }));
    Ok((rank > 0 || carried.is_some()).then_some(Layout { minor_to_major: minor_to_major.into(), carried }))
}

/// True if a redundant shape in the text agrees with the actual one, except for layouts and dynamic
/// dimensions.
pub(super) fn fits(declared: &Shape, shape: &Shape) -> bool {
    match (declared, shape) {
        (Shape::Array(a), Shape::Array(b)) => a.element_type == b.element_type && a.sizes() == b.sizes(),
        (Shape::Tuple(a), Shape::Tuple(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| fits(a, b)),
        (Shape::Token, Shape::Token) => true,
        _ => false,
    }
}

/// Number of arrays, tuples, and tokens in a shape.
pub(super) fn node_count(shape: &Shape) -> usize {
    match shape {
        Shape::Tuple(elements) => elements.iter().map(node_count).fold(1, usize::saturating_add),
        Shape::Array(_) | Shape::Token => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Shape> {
        let mut lexer = Lexer::new(text, 0);
        let shape = read_shape(&mut lexer)?;
        lexer.expect_end()?;
        Ok(shape)
    }

    #[test]
    fn shapes_read_back_what_they_print() {
        for text in [
            "f32[]",
            "bf16[2,<=3]{0,1}",
            "(f32[], (), (s32[2], token[]))",
            "token[]",
            "pred[0]",
            "f32[2,3]{1,0:T(8,128)(2,1)S(1)}",
            "f32[]{:T(256)}",
            "b(f32[2,?]{1,0})",
        ] {
            assert_eq!(read(text).map(|shape| shape.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn broken_shapes_are_rejected() {
        for text in [
            "f32",
            "f33[2]",
            "f32[-1]",
            "f32[2",
            "f32[9223372036854775808]",
            "f32[2,3]{1}",
            "f32[2,3]{1,1}",
            "f32[2]{7}",
            "token[2]",
            "(f32[]",
            "b(token[])",
            "f32[2,]x",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        let deep = format!("{}{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(read(&deep).is_err(), "depth is bounded");
        let wide = |rank| format!("f32[{}]", vec!["1"; rank].join(","));
        assert!(read(&wide(MAX_RANK)).is_ok() && read(&wide(MAX_RANK + 1)).is_err(), "rank is bounded");
    }
}
