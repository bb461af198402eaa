//! Values of a function: operators for arithmetic, methods for everything else.

use crate::function::Function;
use hlo::{
    ComparisonDirection, ComparisonType, DotDimensionNumbers, InstructionId, Op, PaddingConfig,
    PaddingDimension, SliceDimension,
};
use shape::{ArrayShape, PrimitiveType, Shape};

/// An array (or a tuple) computed by a function.
///
/// The operands of an operation have the same shape and type. A number used as an operand is
/// broadcast to the shape of the other operand.
#[derive(Clone, Copy)]
pub struct Expression<'f> {
    pub(crate) function: &'f Function,
    pub(crate) id: InstructionId,
}

/// An operand: an expression, or a number that is broadcast to the shape of the other operand.
pub trait Operand<'f> {
    /// Returns the operand with the shape and type of `like`.
    fn like(self, like: Expression<'f>) -> Expression<'f>;
}

impl<'f> Operand<'f> for Expression<'f> {
    fn like(self, _: Expression<'f>) -> Expression<'f> {
        self
    }
}

impl<'f> Operand<'f> for f64 {
    fn like(self, like: Expression<'f>) -> Expression<'f> {
        like.splat(self)
    }
}

macro_rules! operators {
    ($($operator:ident :: $method:ident = $op:ident;)*) => {
        $(
            impl<'f, R: Operand<'f>> std::ops::$operator<R> for Expression<'f> {
                type Output = Self;

                fn $method(self, right: R) -> Self {
                    let right = right.like(self);
                    self.function.op(Op::$op {}, &[self, right], None)
                }
            }

            impl<'f> std::ops::$operator<Expression<'f>> for f64 {
                type Output = Expression<'f>;

                fn $method(self, right: Expression<'f>) -> Expression<'f> {
                    right.function.op(Op::$op {}, &[right.splat(self), right], None)
                }
            }
        )*
    };
}

operators! {
    Add::add = Add;
    Sub::sub = Subtract;
    Mul::mul = Multiply;
    Div::div = Divide;
    Rem::rem = Remainder;
    BitAnd::bitand = And;
    BitOr::bitor = Or;
    BitXor::bitxor = Xor;
    Shl::shl = ShiftLeft;
    Shr::shr = ShiftRightLogical;
}

impl std::ops::Neg for Expression<'_> {
    type Output = Self;

    fn neg(self) -> Self {
        self.unary(Op::Negate {})
    }
}

impl std::ops::Not for Expression<'_> {
    type Output = Self;

    fn not(self) -> Self {
        self.unary(Op::Not {})
    }
}

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $method:ident = $op:ident;)*) => {
        $($(#[$doc])* pub fn $method(self) -> Self { self.unary(Op::$op {}) })*
    };
}

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $method:ident = $op:ident;)*) => {
        $($(#[$doc])* pub fn $method(self, other: impl Operand<'f>) -> Self {
            let other = other.like(self);
            self.function.op(Op::$op {}, &[self, other], None)
        })*
    };
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $method:ident = $direction:ident;)*) => {
        $($(#[$doc])* pub fn $method(self, other: impl Operand<'f>) -> Self {
            let other = other.like(self);
            let op = Op::Compare {
                direction: ComparisonDirection::$direction,
                comparison_type: ComparisonType::Default,
            };
            self.function.op(op, &[self, other], None)
        })*
    };
}

impl<'f> Expression<'f> {
    unary_methods! {
        /// The absolute value (the modulus of a complex number).
        abs = Abs;
        /// The largest integer not above the value.
        floor = Floor;
        /// `e^x`.
        exp = Exp;
        /// `e^x - 1`.
        expm1 = Expm1;
        /// The natural logarithm.
        log = Log;
        /// `log(1 + x)`.
        log1p = Log1p;
        /// The square root.
        sqrt = Sqrt;
        /// The sine.
        sin = Sin;
        /// The cosine.
        cos = Cos;
        /// The error function.
        erf = Erf;
        /// The sign.
        sign = Sign;
        /// The real part.
        real = Real;
        /// The imaginary part.
        imag = Imag;
        /// True for values that are neither infinite nor NaN.
        is_finite = IsFinite;
    }

    binary_methods! {
        /// The larger operand.
        max = Maximum;
        /// The smaller operand.
        min = Minimum;
        /// `x^y`.
        pow = Power;
        /// `x + iy`.
        complex = Complex;
        /// The angle of `(y, x)`.
        atan2 = Atan2;
        /// `x` shifted right, filling with its sign bit.
        shift_right_arithmetic = ShiftRightArithmetic;
    }

    comparisons! {
        /// `x < y`.
        lt = Lt;
        /// `x <= y`.
        le = Le;
        /// `x > y`.
        gt = Gt;
        /// `x >= y`.
        ge = Ge;
        /// `x == y`.
        equal = Eq;
        /// `x != y`.
        not_equal = Ne;
    }

    fn unary(self, op: Op) -> Self {
        self.function.op(op, &[self], None)
    }

    /// Returns the instruction's id. [`Function::expression`] converts it back to an expression.
    pub fn id(self) -> InstructionId {
        self.id
    }

    /// Returns the function that this expression belongs to.
    pub fn function(self) -> &'f Function {
        self.function
    }

    /// Returns the array's shape, or a scalar shape for a tuple.
    pub fn array(self) -> ArrayShape {
        let shape = self.function.shape_of(self.id);
        shape.as_array().cloned().unwrap_or_else(|| ArrayShape::new(PrimitiveType::F32, &[]))
    }

    /// Returns the element type.
    pub fn element_type(self) -> PrimitiveType {
        self.array().element_type
    }

    /// Returns the sizes of all dimensions.
    pub fn sizes(self) -> Vec<i64> {
        self.array().sizes()
    }

    /// Returns the number of dimensions.
    pub fn rank(self) -> usize {
        self.array().rank()
    }

    /// Returns the size of a dimension, counted from the last one.
    pub fn size_from_end(self, position: usize) -> i64 {
        self.sizes().iter().rev().nth(position).copied().unwrap_or(1)
    }

    /// Returns a number broadcast to the shape and type of this array.
    pub fn splat(self, value: f64) -> Self {
        let shape = self.array();
        self.function.splat(shape.element_type, &shape.sizes(), value)
    }

    /// Returns an element of a tuple.
    pub fn element(self, index: usize) -> Self {
        self.unary(Op::GetTupleElement { index })
    }

    /// `self ? on_true : on_false`.
    pub fn select(self, on_true: Expression<'f>, on_false: impl Operand<'f>) -> Self {
        let on_false = on_false.like(on_true);
        self.function.op(Op::Select {}, &[self, on_true, on_false], None)
    }

    /// True for NaN.
    pub fn is_nan(self) -> Self {
        self.not_equal(self)
    }

    /// Converts the elements to another type.
    pub fn convert(self, element_type: PrimitiveType) -> Self {
        let shape = self.array();
        if shape.element_type == element_type {
            return self;
        }
        self.function.op(Op::Convert {}, &[self], Some(shape.with_element_type(element_type).into()))
    }

    /// Reinterprets the bits as another type of the same width.
    pub fn bitcast_convert(self, element_type: PrimitiveType) -> Self {
        let shape = self.array();
        if shape.element_type == element_type {
            return self;
        }
        let shape = shape.with_element_type(element_type).into();
        self.function.op(Op::BitcastConvert {}, &[self], Some(shape))
    }

    /// Returns the same elements with other dimensions.
    pub fn reshape(self, sizes: &[i64]) -> Self {
        let shape = self.array();
        if shape.sizes() == sizes {
            return self;
        }
        self.function.op(Op::Reshape {}, &[self], Some(Shape::array(shape.element_type, sizes)))
    }

    /// Copies along new dimensions: dimension `i` becomes dimension `dimensions[i]` of the result.
    pub fn broadcast(self, sizes: &[i64], dimensions: &[usize]) -> Self {
        let shape = self.array();
        if shape.sizes() == sizes && dimensions.iter().copied().eq(0..sizes.len()) {
            return self;
        }
        let op = Op::Broadcast { dimensions: dimensions.to_vec() };
        self.function.op(op, &[self], Some(Shape::array(shape.element_type, sizes)))
    }

    /// Broadcasts a scalar to the shape of an array.
    pub fn spread_like(self, like: Expression<'f>) -> Self {
        self.broadcast(&like.sizes(), &[])
    }

    /// Permutes the dimensions: result dimension `d` is dimension `permutation[d]`.
    pub fn transpose(self, permutation: &[usize]) -> Self {
        if permutation.iter().copied().eq(0..permutation.len()) {
            return self;
        }
        self.unary(Op::Transpose { dimensions: permutation.to_vec() })
    }

    /// Slices `start..limit` of one dimension.
    pub fn slice_in(self, dimension: usize, start: i64, limit: i64) -> Self {
        self.slice_strided(dimension, start, limit, 1)
    }

    /// Slices `start..limit` of one dimension with a stride.
    pub fn slice_strided(self, dimension: usize, start: i64, limit: i64, stride: i64) -> Self {
        let sizes = self.sizes();
        if start == 0 && stride == 1 && sizes.get(dimension) == Some(&limit) {
            return self;
        }
        let mut slice: Vec<SliceDimension> =
            sizes.iter().map(|&limit| SliceDimension { start: 0, limit, stride: 1 }).collect();
        if let Some(entry) = slice.get_mut(dimension) {
            *entry = SliceDimension { start, limit, stride };
        }
        self.unary(Op::Slice { slice })
    }

    /// Pads one dimension with a constant.
    pub fn pad_in(self, dimension: usize, low: i64, high: i64, value: f64) -> Self {
        if (low, high) == (0, 0) {
            return self;
        }
        let shape = self.array();
        let mut dimensions = vec![PaddingDimension::default(); shape.rank()];
        if let Some(entry) = dimensions.get_mut(dimension) {
            *entry = PaddingDimension { edge_padding_low: low, edge_padding_high: high, interior_padding: 0 };
        }
        let value = self.function.scalar(shape.element_type, value);
        self.function.op(Op::Pad { padding: PaddingConfig { dimensions } }, &[self, value], None)
    }

    /// Reverses one dimension.
    pub fn reverse(self, dimension: usize) -> Self {
        self.unary(Op::Reverse { dimensions: vec![dimension] })
    }

    /// Sums over some dimensions.
    pub fn sum(self, dimensions: &[usize]) -> Self {
        self.reduce("add", Op::Add {}, 0.0, dimensions)
    }

    /// Multiplies over some dimensions.
    pub fn product(self, dimensions: &[usize]) -> Self {
        self.reduce("multiply", Op::Multiply {}, 1.0, dimensions)
    }

    /// Returns the largest magnitude along some dimensions, or 0 if there are no elements.
    pub fn largest_magnitude(self, dimensions: &[usize]) -> Self {
        self.abs().reduce("maximum", Op::Maximum {}, 0.0, dimensions)
    }

    /// Returns the maximum along some dimensions, or minus infinity if there are no elements.
    pub fn maximum(self, dimensions: &[usize]) -> Self {
        self.reduce("largest", Op::Maximum {}, f64::NEG_INFINITY, dimensions)
    }

    /// True if any element is true.
    pub fn any(self) -> Self {
        let dimensions: Vec<usize> = (0..self.rank()).collect();
        self.reduce("or", Op::Or {}, 0.0, &dimensions)
    }

    /// True if all elements are true.
    pub fn all(self) -> Self {
        let dimensions: Vec<usize> = (0..self.rank()).collect();
        self.reduce("and", Op::And {}, 1.0, &dimensions)
    }

    pub(crate) fn reduce(self, name: &'static str, op: Op, initial: f64, dimensions: &[usize]) -> Self {
        let element_type = self.element_type();
        let to_apply = self.function.reducer(name, op, element_type);
        let initial = self.function.scalar(element_type, initial);
        let op = Op::Reduce { dimensions: dimensions.to_vec(), to_apply };
        self.function.op(op, &[self, initial], None)
    }

    /// Multiplies matrices, one pair for each index of the `batch` leading dimensions of both. The
    /// products sum over the columns of `self` and the rows of `other`.
    pub fn dot(self, other: Self, batch: usize) -> Self {
        let dot_dimension_numbers = DotDimensionNumbers {
            lhs_batch_dims: (0..batch).collect(),
            lhs_contracting_dims: vec![batch + 1],
            rhs_batch_dims: (0..batch).collect(),
            rhs_contracting_dims: vec![batch],
        };
        self.function.op(Op::Dot { dot_dimension_numbers }, &[self, other], None)
    }

    /// Slices one data-dependent index of a dimension. The dimension remains, with size 1.
    pub fn dynamic_slice_in(self, dimension: usize, start: Self) -> Self {
        self.dynamic_range_in(dimension, start, 1)
    }

    /// Slices `count` indices of a dimension, starting at a data-dependent index.
    pub fn dynamic_range_in(self, dimension: usize, start: Self, count: i64) -> Self {
        let mut sizes = self.sizes();
        if let Some(size) = sizes.get_mut(dimension) {
            *size = count;
        }
        let operands = self.at_index(dimension, start);
        self.function.op(Op::DynamicSlice { dynamic_slice_sizes: sizes }, &operands, None)
    }

    /// Overwrites a slice of a dimension with `update`, starting at a data-dependent index.
    pub fn dynamic_update_in(self, update: Self, dimension: usize, start: Self) -> Self {
        let mut operands = self.at_index(dimension, start);
        operands.insert(1, update);
        self.function.op(Op::DynamicUpdateSlice {}, &operands, None)
    }

    fn at_index(self, dimension: usize, start: Self) -> Vec<Self> {
        let zero = self.function.scalar(start.element_type(), 0.0);
        let starts = (0..self.rank()).map(|d| if d == dimension { start } else { zero });
        std::iter::once(self).chain(starts).collect()
    }

    /// Evaluates a polynomial by Horner's rule, highest power first.
    pub fn polynomial(self, coefficients: &[f64]) -> Self {
        let Some((&first, rest)) = coefficients.split_first() else { return self.splat(0.0) };
        rest.iter().fold(self.splat(first), |sum, &coefficient| sum * self + coefficient)
    }
}
