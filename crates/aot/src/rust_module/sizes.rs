//! Methods for the sizes of named dimensions, and parts of other methods that use them.

use super::{Field, RUNTIME, Source};
use crate::header::quoted;
use crate::template::fill;

/// Returns the constants and methods of each size.
pub(super) fn methods(source: &Source<'_>) -> String {
    let mut text = String::new();
    for (index, size) in source.sizes.iter().enumerate() {
        let values = [
            ("GRAPH_NAME", quoted(&size.graph_name)),
            ("CAPITALS", size.name.to_ascii_uppercase()),
            ("NAME", size.name.clone()),
            ("LOW", size.range.low.to_string()),
            ("HIGH", size.range.high.to_string()),
            ("INDEX", index.to_string()),
            ("ERROR", format!("{:?}", size.out_of_range())),
        ];
        let values: Vec<(&str, &str)> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
        text += &fill(include_str!("templates/size.rs.txt"), &values);
    }
    text
}

/// Returns the initializer of the field `sizes` after those of others.
pub(super) fn initializer(source: &Source<'_>) -> String {
    match source.sizes.len() {
        0 => String::new(),
        count => format!(", sizes: [0; {count}]"),
    }
}

/// Returns the method for the sizes of an argument; nothing if it has no named dimensions.
pub(super) fn of_argument(field: &Field<'_>) -> String {
    let Some(sizes) = &field.true_sizes else { return String::new() };
    let (name, rank, sizes) = (&field.name, field.shape.rank(), sizes.dimensions.join(", "));
    format!(
        "/// Returns the size of each dimension in the next run.\n\
         pub fn {name}_sizes(&self) -> [usize; {rank}] {{\n    [{sizes}]\n}}\n"
    )
}

/// Returns the statements that set the sizes to the lengths of the caller's slices.
pub(super) fn of_inputs(source: &Source<'_>) -> String {
    let (mut checks, mut text) = (String::new(), String::new());
    for size in &source.sizes {
        let rows = format!("self.{}()", size.name);
        let mut slices = source.feeds().iter().filter(|feed| feed.rows() == Some(rows.as_str()));
        let Some(first) = slices.next() else { continue };
        for other in slices {
            let message = format!("{} and {} have different lengths", first.name, other.name);
            checks += &format!(
                "if inputs.{}.len() != inputs.{}.len() {{\n    \
                 return Err({RUNTIME}::Error::new({message:?}));\n}}\n",
                other.name, first.name
            );
        }
        text += &format!("self.set_{}(inputs.{}.len())?;\n", size.name, first.name);
    }
    checks + &text
}

/// Returns the statement that defines the sizes for the compiled code.
pub(super) fn values(source: &Source<'_>) -> String {
    if source.sizes.is_empty() {
        return String::new();
    }
    let values: Vec<String> =
        source.sizes.iter().map(|size| format!("self.{}() as i32", size.name)).collect();
    format!("let mut sizes: [i32; {}] = [{}];", values.len(), values.join(", "))
}
