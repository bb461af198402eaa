//! Shapes: arrays with bounded dimensions, tuples, and tokens.

use crate::PrimitiveType;
use std::fmt;

/// One dimension: a size, or a bound if the true size is known only at run time (`<=8`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dimension {
    /// Size, or upper bound of a dynamic dimension. Never negative.
    pub size: i64,
    /// True if the run-time size may be smaller.
    pub is_dynamic: bool,
}

impl Dimension {
    /// A dynamic dimension without an upper bound: `?`. Modules that contain one can only be read
    /// and printed.
    pub const UNBOUNDED: Self = Self { size: i64::MAX, is_dynamic: true };
}

impl From<i64> for Dimension {
    fn from(size: i64) -> Self {
        Self { size, is_dynamic: false }
    }
}

/// Layout of an array in memory: the order of its dimensions, and attributes that only apply to
/// other machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Permutation of the dimension numbers, fastest-varying first. `[1, 0]` is a row-major matrix.
    pub minor_to_major: Box<[usize]>,
    /// Attributes that are preserved but never interpreted.
    pub carried: Option<Box<CarriedLayout>>,
}

/// Layout attributes that only apply to other machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CarriedLayout {
    /// Tiles, memory space, and other attributes that XLA prints after a colon: `T(8,128)S(1)`.
    pub text: String,
    /// True for `b(f32[2])`, which denotes the memory of the array rather than its value.
    pub is_buffer: bool,
}

impl Layout {
    /// The preserved attributes, empty for most layouts.
    pub fn carried(&self) -> CarriedLayout {
        self.carried.as_deref().cloned().unwrap_or_default()
    }
}

impl From<Vec<usize>> for Layout {
    fn from(minor_to_major: Vec<usize>) -> Self {
        Self { minor_to_major: minor_to_major.into(), ..Self::default() }
    }
}

/// The shape of an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArrayShape {
    /// The type of each element.
    pub element_type: PrimitiveType,
    /// Dimensions, slowest-varying first.
    pub dimensions: Vec<Dimension>,
    /// `None` means row-major. Only modules read from files have a layout.
    pub layout: Option<Layout>,
}

impl ArrayShape {
    /// Creates a static, row-major shape.
    pub fn new(element_type: PrimitiveType, sizes: &[i64]) -> Self {
        debug_assert!(sizes.iter().all(|&size| size >= 0), "negative size in {sizes:?}");
        Self { element_type, dimensions: sizes.iter().map(|&s| s.into()).collect(), layout: None }
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dimensions.len()
    }

    /// Sizes, or upper bounds for dynamic dimensions.
    pub fn sizes(&self) -> Vec<i64> {
        self.dimensions.iter().map(|d| d.size).collect()
    }

    /// Size or upper bound of one dimension.
    pub fn size(&self, dimension: usize) -> i64 {
        self.dimensions[dimension].size
    }

    /// Number of elements, saturating at `i64::MAX`.
    pub fn element_count(&self) -> i64 {
        crate::index::element_count(&self.sizes()).unwrap_or(i64::MAX)
    }

    /// Size in memory in bytes, saturating at `u64::MAX`.
    pub fn byte_size(&self) -> u64 {
        (self.element_count() as u64).saturating_mul(self.element_type.byte_size() as u64)
    }

    /// True if every size is known.
    pub fn is_static(&self) -> bool {
        self.dimensions.iter().all(|d| !d.is_dynamic)
    }

    /// True if the layout is row-major.
    pub fn is_row_major(&self) -> bool {
        self.layout.as_ref().is_none_or(|l| l.minor_to_major.iter().rev().copied().eq(0..self.rank()))
    }

    /// Returns a shape with the same dimensions and another element type.
    #[must_use]
    pub fn with_element_type(&self, element_type: PrimitiveType) -> Self {
        Self { element_type, ..self.clone() }
    }

    /// True if both shapes have the same dimensions, including the dynamic flags.
    pub fn same_dimensions(&self, other: &Self) -> bool {
        self.dimensions == other.dimensions
    }
}

/// Shape of an instruction's result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// An array; a scalar is an array of rank 0.
    Array(ArrayShape),
    /// A tuple of shapes.
    Tuple(Vec<Shape>),
    /// A token, which orders effects and holds no data.
    Token,
}

/// A path into a tuple. The empty path denotes the whole shape.
pub type ShapeIndex = Vec<usize>;

impl Shape {
    /// Creates a static, row-major array shape.
    pub fn array(element_type: PrimitiveType, sizes: &[i64]) -> Self {
        Self::Array(ArrayShape::new(element_type, sizes))
    }

    /// Creates an array shape of rank 0.
    pub fn scalar(element_type: PrimitiveType) -> Self {
        Self::array(element_type, &[])
    }

    /// Returns the array shape, or `None` for tuples and tokens.
    pub fn as_array(&self) -> Option<&ArrayShape> {
        match self {
            Self::Array(array) => Some(array),
            Self::Tuple(_) | Self::Token => None,
        }
    }

    /// Returns the elements of a tuple, or `None` for other shapes.
    pub fn as_tuple(&self) -> Option<&[Shape]> {
        match self {
            Self::Tuple(elements) => Some(elements),
            Self::Array(_) | Self::Token => None,
        }
    }

    /// Returns the array shape. Panics on tuples and tokens, so call it only on verified shapes.
    #[track_caller]
    pub fn expect_array(&self) -> &ArrayShape {
        self.as_array().expect("an array shape, as the verifier checked")
    }

    /// Returns the sub-shape at a path.
    pub fn get(&self, index: &[usize]) -> Option<&Shape> {
        index.iter().try_fold(self, |shape, &i| shape.as_tuple()?.get(i))
    }

    /// Returns all array leaves with their paths, in order.
    pub fn leaves(&self) -> Vec<(ShapeIndex, &ArrayShape)> {
        fn walk<'a>(shape: &'a Shape, path: &mut ShapeIndex, out: &mut Vec<(ShapeIndex, &'a ArrayShape)>) {
            match shape {
                Shape::Array(array) => out.push((path.clone(), array)),
                Shape::Tuple(elements) => {
                    for (i, element) in elements.iter().enumerate() {
                        path.push(i);
                        walk(element, path, out);
                        path.pop();
                    }
                }
                Shape::Token => {}
            }
        }
        let mut out = Vec::new();
        walk(self, &mut Vec::new(), &mut out);
        out
    }

    /// Total size of all array leaves in bytes, saturating.
    pub fn byte_size(&self) -> u64 {
        self.leaves().iter().fold(0, |sum: u64, (_, leaf)| sum.saturating_add(leaf.byte_size()))
    }

    /// True if the shapes are equal, ignoring layouts.
    pub fn compatible(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Array(a), Self::Array(b)) => a.element_type == b.element_type && a.same_dimensions(b),
            (Self::Tuple(a), Self::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.compatible(b))
            }
            (Self::Token, Self::Token) => true,
            _ => false,
        }
    }
}

impl From<ArrayShape> for Shape {
    fn from(array: ArrayShape) -> Self {
        Self::Array(array)
    }
}

/// Parameters and result of a computation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramShape {
    /// Shapes of the parameters.
    pub parameters: Vec<Shape>,
    /// Names of the parameters, one per shape.
    pub parameter_names: Vec<String>,
    /// Shape of the root.
    pub result: Shape,
}

impl fmt::Display for ArrayShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let carried = self.layout.as_ref().and_then(|layout| layout.carried.as_deref());
        let is_buffer = carried.is_some_and(|carried| carried.is_buffer);
        write!(f, "{}{}[", if is_buffer { "b(" } else { "" }, self.element_type)?;
        for (i, &dimension) in self.dimensions.iter().enumerate() {
            f.write_str(if i > 0 { "," } else { "" })?;
            match dimension {
                Dimension::UNBOUNDED => f.write_str("?")?,
                Dimension { size, is_dynamic } => write!(f, "{}{size}", if is_dynamic { "<=" } else { "" })?,
            }
        }
        f.write_str("]")?;
        let Some(layout) = &self.layout else { return Ok(()) };
        let rest = carried.map_or("", |carried| &carried.text);
        if !layout.minor_to_major.is_empty() || !rest.is_empty() {
            let order: Vec<String> = layout.minor_to_major.iter().map(usize::to_string).collect();
            let colon = if rest.is_empty() { "" } else { ":" };
            write!(f, "{{{}{colon}{rest}}}", order.join(","))?;
        }
        f.write_str(if is_buffer { ")" } else { "" })
    }
}

impl fmt::Display for Shape {
    /// Formats a shape as XLA does: `f32[2,<=3]{1,0}`, `(f32[], s32[2])`, `token[]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Array(array) => array.fmt(f),
            Self::Tuple(elements) => {
                let elements: Vec<String> = elements.iter().map(Shape::to_string).collect();
                write!(f, "({})", elements.join(", "))
            }
            Self::Token => f.write_str("token[]"),
        }
    }
}

impl fmt::Display for ProgramShape {
    /// Formats a program shape: `(x: f32[2,3], y: f32[3]) -> f32[2]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters: Vec<String> =
            self.parameter_names.iter().zip(&self.parameters).map(|(n, s)| format!("{n}: {s}")).collect();
        write!(f, "({}) -> {}", parameters.join(", "), self.result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_print_as_xla_prints_them() {
        let mut bounded = ArrayShape::new(PrimitiveType::F32, &[2, 3]);
        bounded.dimensions[1].is_dynamic = true;
        bounded.layout = Some(vec![1, 0].into());
        let tuple = Shape::Tuple(vec![bounded.into(), Shape::scalar(PrimitiveType::Pred), Shape::Token]);
        assert_eq!(tuple.to_string(), "(f32[2,<=3]{1,0}, pred[], token[])");
        assert_eq!(tuple.get(&[1]), Some(&Shape::scalar(PrimitiveType::Pred)));
        assert_eq!(tuple.get(&[1, 0]), None);
    }

    #[test]
    fn sizes_saturate_instead_of_overflowing() {
        let huge = ArrayShape::new(PrimitiveType::F64, &[i64::MAX, 3]);
        assert_eq!(huge.element_count(), i64::MAX);
        assert_eq!(huge.byte_size(), u64::MAX);
        assert_eq!(ArrayShape::new(PrimitiveType::F64, &[i64::MAX, 3, 0]).byte_size(), 0);
    }
}
