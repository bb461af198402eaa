//! Functions of a byte that look up their result in a table.

use crate::builder::ComputationBuilder;
use crate::computation::Computation;
use crate::ids::ComputationId;
use crate::module::Module;
use crate::opcode::Op;
use shape::{ArrayShape, Literal, PrimitiveType, Shape};
use support::Result;

/// Number of values of a byte.
const VALUES: i64 = 256;

/// Adds a function from `s8` or `u8` to either of them, for maps. Element `k` of the table is the
/// result for the byte with the bits of `k`.
pub fn add_byte_table(module: &mut Module, from: PrimitiveType, table: Literal) -> Result<ComputationId> {
    let mut b = ComputationBuilder::new("lookup");
    let x = b.parameter("x", Shape::array(from, &[]));
    let to = table.array_shape().element_type;
    let table = b.constant(table);
    let number = if from == PrimitiveType::U8 {
        x
    } else {
        b.op_with_shape(module, Shape::array(PrimitiveType::U8, &[]), Op::BitcastConvert {}, &[x])?
    };
    let slice = Op::DynamicSlice { dynamic_slice_sizes: [1].into_iter().collect() };
    let found = b.op_with_shape(module, Shape::array(to, &[1]), slice, &[table, number])?;
    let root = b.op_with_shape(module, Shape::array(to, &[]), Op::Reshape {}, &[found])?;
    Ok(module.add_computation(b.finish(root)))
}

/// The table of a function that [`add_byte_table`] built.
pub fn byte_table(computation: &Computation) -> Option<&Literal> {
    let root = &computation[computation.root()];
    let Op::Reshape {} = root.op() else { return None };
    let slice = &computation[root.operands()[0]];
    let Op::DynamicSlice { .. } = slice.op() else { return None };
    let &[table, number] = slice.operands() else { return None };
    let x = match computation[number].op() {
        Op::BitcastConvert {} => computation[number].operands()[0],
        _ => number,
    };
    let bits = |id| computation[id].shape().as_array().map(|shape| (shape.element_type, shape.rank()));
    let is_byte_type = |element_type| matches!(element_type, PrimitiveType::S8 | PrimitiveType::U8);
    let is_byte = bits(number) == Some((PrimitiveType::U8, 0))
        && bits(x).is_some_and(|(element_type, _)| is_byte_type(element_type));
    let Op::Constant { literal } = computation[table].op() else { return None };
    let ArrayShape { element_type, .. } = literal.array_shape();
    let is_table = literal.array_shape().sizes() == [VALUES] && is_byte_type(*element_type);
    let is_parameter = matches!(computation[x].op(), Op::Parameter { number: 0 });
    (is_byte && is_table && is_parameter).then_some(literal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_again() {
        let text = "HloModule m\n\nENTRY main {\n  ROOT x = s8[4] parameter(0)\n}\n";
        for from in [PrimitiveType::S8, PrimitiveType::U8] {
            let mut module = crate::parse(text).expect("a module");
            let bytes: Vec<i8> = (0..256).map(|k| (k * 7 - 100) as i8).collect();
            let table = Literal::from_elements(&[256], &bytes);
            let id = add_byte_table(&mut module, from, table.clone()).expect("a function");
            assert_eq!(byte_table(&module[id]), Some(&table));
            assert_eq!(byte_table(module.entry_computation()), None);
        }
    }
}
