//! The StableHLO form of each opcode.

use super::attributes;
use super::body::{Body, Leaf, Value};
use super::version::Version;
use hlo::{
    ComparisonDirection, ComparisonType, FftType, Instruction, Op, RandomAlgorithm, RandomDistribution,
    TriangularTranspose,
};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};
use support::{Error, Result};

impl Body<'_, '_> {
    /// Writes an instruction; returns its value.
    pub(super) fn instruction(&mut self, instruction: &Instruction, operands: &[Value]) -> Result<Value> {
        match instruction.op() {
            Op::Tuple {} => return Ok(Value::Tuple(operands.to_vec())),
            Op::GetTupleElement { index } => {
                return match operands {
                    [Value::Tuple(elements)] => elements.get(*index).cloned(),
                    _ => None,
                }
                .ok_or_else(|| Error::invalid("expected a tuple with this element as operand"));
            }
            Op::Copy {} | Op::AddDependency {} => {
                return operands.first().cloned().ok_or_else(|| Error::invalid("missing operand"));
            }
            _ => {}
        }
        let leaves: Vec<Leaf> = operands.iter().flat_map(Value::leaves).collect();
        if let Some(results) = self.structured(instruction, operands, &leaves)? {
            return Value::of_shape(instruction.shape(), &mut results.into_iter());
        }
        let results = self.flat(instruction, &leaves)?;
        Value::of_shape(instruction.shape(), &mut results.into_iter())
    }

    /// Writes opcodes without computations.
    fn flat(&mut self, instruction: &Instruction, leaves: &[Leaf]) -> Result<Vec<Leaf>> {
        if let Some(name) = plain(instruction.op()) {
            if name == "stablehlo.tan" {
                self.require(Version::new(1, 4, 0), "tan")?;
            }
            return Ok(vec![self.one(name, leaves, &[], result(instruction)?.clone())?]);
        }
        if let Some(name) = chlo_function(instruction.op()) {
            let shape = Shape::Array(result(instruction)?.clone());
            let tail = " {mhlo.attributes = {}, mhlo.version = 1 : i64}";
            return self.call(&format!("stablehlo.custom_call @{name}"), leaves, tail, &[shape]);
        }
        match instruction.op() {
            Op::Constant { literal } => self.literals(literal),
            Op::CustomCall { .. } => self.custom_call(instruction, leaves),
            Op::OptimizationBarrier {} => {
                let shapes: Vec<Shape> = leaves.iter().map(shape_of).collect();
                self.operation("stablehlo.optimization_barrier", leaves, &[], &[], &shapes)
            }
            Op::AfterAll {} => self.operation("stablehlo.after_all", leaves, &[], &[], &[Shape::Token]),
            Op::TopK { k, largest } => self.top_k(leaves, *k, *largest),
            Op::Bitcast {} => Ok(vec![self.bitcast(instruction, leaves)?]),
            Op::Rng { distribution } => Ok(vec![self.rng(instruction, leaves, *distribution)?]),
            op => {
                let Some((name, attributes)) = self.attribute_form(op)? else {
                    return Err(Error::unsupported(format!(
                        "{} has no equivalent in StableHLO",
                        instruction.opcode().name()
                    )));
                };
                let mut shapes = shapes_of(instruction.shape());
                let omits_state = matches!(op, Op::RngBitGenerator { .. }) && shapes.len() == 1;
                if omits_state {
                    shapes.splice(0..0, leaves.first().map(shape_of));
                }
                let results = self.operation(name, leaves, &attributes, &[], &shapes)?;
                Ok(results.into_iter().skip(usize::from(omits_state)).collect())
            }
        }
    }

    /// Returns an error if the target version is older than `needed`.
    pub(super) fn require(&self, needed: Version, what: &str) -> Result<()> {
        if needed > self.version() {
            Err(Error::unsupported(format!(
                "{what} requires StableHLO {needed} or later, not {}",
                self.version()
            )))
        } else {
            Ok(())
        }
    }

    /// Operations that are fully described by attributes.
    fn attribute_form(&self, op: &Op) -> Result<Option<attributes::NameAndAttributes>> {
        use attributes::{dimensions, enumerator, integer, integers};
        if let Some(form) = self.window_or_index_form(op)? {
            return Ok(Some(form));
        }
        let one = |name: &'static str, value: String| vec![(name, value)];
        Ok(Some(match op {
            Op::Broadcast { dimensions: list } => {
                ("stablehlo.broadcast_in_dim", one("broadcast_dimensions", dimensions(list)))
            }
            Op::Transpose { dimensions: list } => {
                ("stablehlo.transpose", one("permutation", dimensions(list)))
            }
            Op::Reverse { dimensions: list } => ("stablehlo.reverse", one("dimensions", dimensions(list))),
            Op::Concatenate { dimension } => {
                ("stablehlo.concatenate", one("dimension", integer(*dimension as i64)))
            }
            Op::Iota { iota_dimension } => {
                ("stablehlo.iota", one("iota_dimension", integer(*iota_dimension as i64)))
            }
            Op::GetDimensionSize { dimension } => {
                ("stablehlo.get_dimension_size", one("dimension", integer(*dimension as i64)))
            }
            Op::SetDimensionSize { dimension } => {
                ("stablehlo.set_dimension_size", one("dimension", integer(*dimension as i64)))
            }
            Op::DynamicSlice { dynamic_slice_sizes } => {
                ("stablehlo.dynamic_slice", one("slice_sizes", integers(dynamic_slice_sizes.iter().copied())))
            }
            Op::Cholesky { lower } => ("stablehlo.cholesky", one("lower", lower.to_string())),
            Op::Compare { direction, comparison_type } => {
                let mut list = one(
                    "comparison_direction",
                    enumerator("comparison_direction", direction_name(*direction)),
                );
                if *comparison_type == ComparisonType::TotalOrder {
                    list.push(("compare_type", enumerator("comparison_type", "TOTALORDER")));
                }
                ("stablehlo.compare", list)
            }
            Op::ReducePrecision { exponent_bits, mantissa_bits } => (
                "stablehlo.reduce_precision",
                vec![
                    ("exponent_bits", format!("{exponent_bits} : i32")),
                    ("mantissa_bits", format!("{mantissa_bits} : i32")),
                ],
            ),
            Op::Fft { fft_type, fft_length } => (
                "stablehlo.fft",
                vec![
                    ("fft_length", integers(fft_length.iter().copied())),
                    ("fft_type", enumerator("fft_type", fft_name(*fft_type))),
                ],
            ),
            Op::TriangularSolve { left_side, lower, unit_diagonal, transpose_a } => (
                "stablehlo.triangular_solve",
                vec![
                    ("left_side", left_side.to_string()),
                    ("lower", lower.to_string()),
                    ("transpose_a", enumerator("transpose", transpose_name(*transpose_a))),
                    ("unit_diagonal", unit_diagonal.to_string()),
                ],
            ),
            Op::BatchNormTraining { epsilon, feature_index } => {
                ("stablehlo.batch_norm_training", normalization(*epsilon, *feature_index))
            }
            Op::BatchNormInference { epsilon, feature_index } => {
                ("stablehlo.batch_norm_inference", normalization(*epsilon, *feature_index))
            }
            Op::BatchNormGrad { epsilon, feature_index } => {
                ("stablehlo.batch_norm_grad", normalization(*epsilon, *feature_index))
            }
            Op::RngBitGenerator { algorithm } => (
                "stablehlo.rng_bit_generator",
                one("rng_algorithm", enumerator("rng_algorithm", algorithm_name(*algorithm))),
            ),
            _ => return Ok(None),
        }))
    }

    /// Writes a constant; a tuple becomes one constant for each array.
    fn literals(&mut self, literal: &Literal) -> Result<Vec<Leaf>> {
        match literal {
            Literal::Array { .. } => Ok(vec![self.constant(literal)?]),
            Literal::Tuple(elements) => {
                let mut leaves = Vec::new();
                for element in elements {
                    leaves.extend(self.literals(element)?);
                }
                Ok(leaves)
            }
        }
    }

    fn custom_call(&mut self, instruction: &Instruction, leaves: &[Leaf]) -> Result<Vec<Leaf>> {
        let Op::CustomCall {
            custom_call_target: target,
            backend_config,
            custom_call_has_side_effect,
            attributes: others,
        } = instruction.op()
        else {
            return Err(Error::internal("expected a custom call"));
        };
        if target == "AllocateBuffer" {
            // The contents are arbitrary, so zeros are allowed.
            let shape = result(instruction)?;
            return Ok(vec![self.zeros(shape)?]);
        }
        if let Some((name, _)) = others.iter().next() {
            return Err(Error::unsupported(format!(
                "a custom call with the attribute {name} has no equivalent in StableHLO"
            )));
        }
        let mut list = Vec::new();
        if !backend_config.is_empty() {
            list.push(format!("backend_config = {}", attributes::string(backend_config)));
        }
        if *custom_call_has_side_effect {
            list.push("has_side_effect = true".to_owned());
        }
        let tail = if list.is_empty() { String::new() } else { format!(" {{{}}}", list.join(", ")) };
        let is_identifier = target.chars().all(|c| c.is_ascii_alphanumeric() || "_.$".contains(c))
            && target.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let target = if is_identifier { target.clone() } else { attributes::string(target) };
        self.call(&format!("stablehlo.custom_call @{target}"), leaves, &tail, &shapes_of(instruction.shape()))
    }

    /// Writes an array of zeros of any size as one broadcast number.
    fn zeros(&mut self, shape: &ArrayShape) -> Result<Leaf> {
        let zero = match shape.element_type {
            PrimitiveType::Pred => Scalar::Pred(false),
            t if t.is_signed_integer() => Scalar::Signed(0),
            t if t.is_unsigned_integer() => Scalar::Unsigned(0),
            t if t.is_complex() => Scalar::Complex(0.0, 0.0),
            _ => Scalar::Float(0.0),
        };
        let scalar = Literal::from_scalars(ArrayShape::new(shape.element_type, &[]), [zero]);
        let scalar = self.constant(&scalar)?;
        let dimensions = [("broadcast_dimensions", attributes::integers([]))];
        self.one("stablehlo.broadcast_in_dim", &[scalar], &dimensions, shape.clone())
    }

    /// Reinterprets the same bytes in row-major order: a reshape if the elements stay the same, a
    /// bit conversion if the shape does.
    fn bitcast(&mut self, instruction: &Instruction, leaves: &[Leaf]) -> Result<Leaf> {
        let target = result(instruction)?;
        let Some(array) = leaves.first().and_then(|leaf| leaf.array.clone()) else {
            return Err(Error::invalid("expected an array as the operand of a bitcast"));
        };
        let has_layouts = !(array.is_row_major() && target.is_row_major());
        let resizes = array.element_type.bit_width() != target.element_type.bit_width();
        if has_layouts || resizes {
            return Err(Error::unsupported(
                "a bitcast between layouts or widths has no equivalent in StableHLO".to_owned(),
            ));
        }
        let mut leaf = leaves[0].clone();
        if array.element_type != target.element_type {
            let shape = array.with_element_type(target.element_type);
            leaf = self.one("stablehlo.bitcast_convert", &[leaf], &[], shape)?;
        }
        if array.sizes() == target.sizes() {
            Ok(leaf)
        } else {
            self.one("stablehlo.reshape", &[leaf], &[], target.clone())
        }
    }

    /// In StableHLO, the shape of the result is an operand.
    fn rng(
        &mut self,
        instruction: &Instruction,
        leaves: &[Leaf],
        distribution: RandomDistribution,
    ) -> Result<Leaf> {
        let shape = result(instruction)?.clone();
        let sizes = self.constant(&Literal::from_elements(&[shape.rank() as i64], &shape.sizes()))?;
        let name = match distribution {
            RandomDistribution::Uniform => "UNIFORM",
            RandomDistribution::Normal => "NORMAL",
        };
        let list = [("rng_distribution", attributes::enumerator("rng_distribution", name))];
        let operands: Vec<Leaf> = leaves.iter().cloned().chain([sizes]).collect();
        self.one("stablehlo.rng", &operands, &list, shape)
    }
}

/// Returns the array that an instruction computes.
pub(super) fn result(instruction: &Instruction) -> Result<&ArrayShape> {
    let array = instruction.shape().as_array();
    array.ok_or_else(|| Error::invalid(format!("expected an array result, got {}", instruction.shape())))
}

/// Returns the arrays and tokens in a shape.
pub(super) fn shapes_of(shape: &Shape) -> Vec<Shape> {
    match shape {
        Shape::Tuple(elements) => elements.iter().flat_map(shapes_of).collect(),
        leaf => vec![leaf.clone()],
    }
}

pub(super) fn shape_of(leaf: &Leaf) -> Shape {
    leaf.array.clone().map_or(Shape::Token, Shape::Array)
}

fn normalization(epsilon: f32, feature_index: usize) -> attributes::Attributes {
    let text = format!("{epsilon:e}");
    let text = match text.split_once('e') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => format!("{mantissa}.0e{exponent}"),
        _ => text,
    };
    vec![("epsilon", format!("{text} : f32")), ("feature_index", attributes::integer(feature_index as i64))]
}

pub(super) fn direction_name(direction: ComparisonDirection) -> &'static str {
    match direction {
        ComparisonDirection::Eq => "EQ",
        ComparisonDirection::Ne => "NE",
        ComparisonDirection::Ge => "GE",
        ComparisonDirection::Gt => "GT",
        ComparisonDirection::Le => "LE",
        ComparisonDirection::Lt => "LT",
    }
}

fn fft_name(fft_type: FftType) -> &'static str {
    match fft_type {
        FftType::Fft => "FFT",
        FftType::Ifft => "IFFT",
        FftType::Rfft => "RFFT",
        FftType::Irfft => "IRFFT",
    }
}

fn transpose_name(transpose: TriangularTranspose) -> &'static str {
    match transpose {
        TriangularTranspose::NoTranspose => "NO_TRANSPOSE",
        TriangularTranspose::Transpose => "TRANSPOSE",
        TriangularTranspose::Adjoint => "ADJOINT",
    }
}

fn algorithm_name(algorithm: RandomAlgorithm) -> &'static str {
    match algorithm {
        RandomAlgorithm::Default => "DEFAULT",
        RandomAlgorithm::ThreeFry => "THREE_FRY",
        RandomAlgorithm::Philox => "PHILOX",
    }
}

/// The custom calls for functions that StableHLO leaves to CHLO.
fn chlo_function(op: &Op) -> Option<&'static str> {
    Some(match op {
        Op::Acos {} => "mhlo.acos",
        Op::Acosh {} => "mhlo.acosh",
        Op::Asin {} => "mhlo.asin",
        Op::Asinh {} => "mhlo.asinh",
        Op::Atanh {} => "mhlo.atanh",
        Op::Cosh {} => "mhlo.cosh",
        Op::Erf {} => "mhlo.erf",
        Op::Sinh {} => "mhlo.sinh",
        _ => return None,
    })
}

/// Operations without attributes that take the operands unchanged.
fn plain(op: &Op) -> Option<&'static str> {
    Some(match op {
        Op::Abs {} => "stablehlo.abs",
        Op::Add {} => "stablehlo.add",
        Op::And {} => "stablehlo.and",
        Op::Atan2 {} => "stablehlo.atan2",
        Op::BitcastConvert {} => "stablehlo.bitcast_convert",
        Op::Cbrt {} => "stablehlo.cbrt",
        Op::Ceil {} => "stablehlo.ceil",
        Op::Clamp {} => "stablehlo.clamp",
        Op::Complex {} => "stablehlo.complex",
        Op::Convert {} => "stablehlo.convert",
        Op::Cos {} => "stablehlo.cosine",
        Op::CountLeadingZeros {} => "stablehlo.count_leading_zeros",
        Op::Divide {} => "stablehlo.divide",
        Op::DynamicUpdateSlice {} => "stablehlo.dynamic_update_slice",
        Op::Exp {} => "stablehlo.exponential",
        Op::Expm1 {} => "stablehlo.exponential_minus_one",
        Op::Floor {} => "stablehlo.floor",
        Op::Imag {} => "stablehlo.imag",
        Op::IsFinite {} => "stablehlo.is_finite",
        Op::Log {} => "stablehlo.log",
        Op::Log1p {} => "stablehlo.log_plus_one",
        Op::Logistic {} => "stablehlo.logistic",
        Op::Maximum {} => "stablehlo.maximum",
        Op::Minimum {} => "stablehlo.minimum",
        Op::Multiply {} => "stablehlo.multiply",
        Op::Negate {} => "stablehlo.negate",
        Op::Not {} => "stablehlo.not",
        Op::Or {} => "stablehlo.or",
        Op::PartitionId {} => "stablehlo.partition_id",
        Op::PopulationCount {} => "stablehlo.popcnt",
        Op::Power {} => "stablehlo.power",
        Op::Real {} => "stablehlo.real",
        Op::Remainder {} => "stablehlo.remainder",
        Op::ReplicaId {} => "stablehlo.replica_id",
        Op::Reshape {} => "stablehlo.reshape",
        Op::RoundNearestAfz {} => "stablehlo.round_nearest_afz",
        Op::RoundNearestEven {} => "stablehlo.round_nearest_even",
        Op::Rsqrt {} => "stablehlo.rsqrt",
        Op::Select {} => "stablehlo.select",
        Op::ShiftLeft {} => "stablehlo.shift_left",
        Op::ShiftRightArithmetic {} => "stablehlo.shift_right_arithmetic",
        Op::ShiftRightLogical {} => "stablehlo.shift_right_logical",
        Op::Sign {} => "stablehlo.sign",
        Op::Sin {} => "stablehlo.sine",
        Op::Sqrt {} => "stablehlo.sqrt",
        Op::Subtract {} => "stablehlo.subtract",
        Op::Tan {} => "stablehlo.tan",
        Op::Tanh {} => "stablehlo.tanh",
        Op::Xor {} => "stablehlo.xor",
        _ => return None,
    })
}
