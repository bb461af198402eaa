//! The operands of an operator and their quantization, from the node's attributes.

use crate::node::context::NodeContext;
use hlo::InstructionId;
use shape::PrimitiveType;
use support::{Error, Result};

/// Real number = scale × (stored number - zero point).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quantization {
    /// The type of the stored numbers.
    pub(crate) element_type: PrimitiveType,
    /// Number of bits in use, if they are fewer than the type has.
    pub(crate) bits: Option<u32>,
    /// One scale for the tensor, one for each index of a dimension, or one for each block of each
    /// row of a matrix. Empty if the tensor is not quantized.
    pub(crate) scales: Vec<f32>,
    /// As many zero points.
    pub(crate) zero_points: Vec<i64>,
    /// The dimension with several scales.
    pub(crate) dimension: usize,
}

impl Quantization {
    /// True if the tensor has a scale.
    pub(crate) fn is_quantized(&self) -> bool {
        !self.scales.is_empty()
    }

    /// The only scale, or the first one; 1 if there is none.
    pub(crate) fn scale(&self) -> f64 {
        f64::from(self.scales.first().copied().unwrap_or(1.0))
    }

    /// The only zero point, or the first one; 0 if there is none.
    pub(crate) fn zero_point(&self) -> i64 {
        self.zero_points.first().copied().unwrap_or(0)
    }

    /// The least and the largest number of the type.
    pub(crate) fn limits(&self) -> [i64; 2] {
        match (self.bits, self.element_type) {
            (Some(bits), PrimitiveType::U8) => [0, (1 << bits) - 1],
            (Some(bits), _) => [-1 << (bits - 1), (1 << (bits - 1)) - 1],
            (None, element_type) => full_limits(element_type),
        }
    }

    /// The stored number for a real one, rounded away from zero at halves and not clamped.
    pub(crate) fn stored(&self, real: f64) -> i64 {
        // The reference divides in single precision.
        let steps = (real as f32 / self.scale() as f32).round();
        self.zero_point().saturating_add(steps as i64)
    }

    /// The least and the largest stored number of a result with a fused activation, by its number
    /// in the schema: none, ReLU, -1 to 1, ReLU6. Hyperbolic tangent and sign have no effect, as in
    /// the reference.
    pub(crate) fn activation_limits(&self, activation: i64) -> Option<[i64; 2]> {
        let [least, largest] = self.limits();
        let clamped = |real: f64| self.stored(real).clamp(least, largest);
        Some(match activation {
            0 | 4 | 5 => [least, largest],
            1 => [clamped(0.0), largest],
            2 => [clamped(-1.0), clamped(1.0)],
            3 => [clamped(0.0), clamped(6.0)],
            _ => return None,
        })
    }
}

/// The least and the largest number of a type.
pub(crate) fn full_limits(element_type: PrimitiveType) -> [i64; 2] {
    match element_type {
        PrimitiveType::U8 => [0, 255],
        PrimitiveType::S8 => [-128, 127],
        PrimitiveType::S16 => [-32768, 32767],
        _ => [i64::from(i32::MIN), i64::from(i32::MAX)],
    }
}

/// The operands of an operator.
#[derive(Clone, Debug)]
pub(crate) struct Operands {
    /// Value and quantization of each input; `None` for one that is left out.
    inputs: Vec<Option<(InstructionId, Quantization)>>,
    /// Quantization of the outputs.
    outputs: Vec<Quantization>,
    /// Quantization of values inside of the operator.
    pub(crate) intermediates: Vec<Quantization>,
}

impl Operands {
    /// Reads the operands of a node.
    ///
    /// Errors: `invalid` if the attributes do not fit each other.
    pub(crate) fn of_node(cx: &mut NodeContext<'_, '_>) -> Result<Self> {
        let attributes = cx.attributes();
        let counts = attributes.ints("scale_counts")?;
        let dimensions = attributes.ints("quantized_dimensions")?;
        let scales = attributes.floats("scales")?;
        let zero_points = attributes.ints("zero_points")?;
        let wrong = || Error::invalid("its attributes do not describe the quantization of its operands");
        let bits = attributes.ints_or("bits", vec![0; counts.len()])?;
        let (inputs, outputs) = (cx.inputs().len(), attributes.types("Tout")?.len());
        let total: i64 = counts.iter().map(|count| (*count).clamp(0, 1 << 40)).sum();
        if counts.len() < inputs + outputs
            || dimensions.len() != counts.len()
            || bits.len() != counts.len()
            || bits.iter().any(|bits| !(0..8).contains(bits))
            || scales.len() as i64 != total
            || zero_points.len() as i64 != total
        {
            return Err(wrong());
        }
        let mut at = 0;
        let mut all = Vec::new();
        for (k, (&count, &dimension)) in counts.iter().zip(&dimensions).enumerate() {
            let element_type = match k {
                _ if k < inputs => {
                    let id = cx.input(k)?;
                    cx.element_type(id)
                }
                _ if k < inputs + outputs => cx.output_type(k - inputs)?,
                _ => PrimitiveType::S32,
            };
            let end = at + count.max(0) as usize;
            all.push(Quantization {
                element_type,
                bits: (bits[k] != 0).then_some(bits[k] as u32),
                scales: scales[at..end].to_vec(),
                zero_points: zero_points[at..end].to_vec(),
                dimension: usize::try_from(dimension).map_err(|_| wrong())?,
            });
            at = end;
        }
        let intermediates = all.split_off(inputs + outputs);
        let outputs = all.split_off(inputs);
        let places = attributes.ints("operands")?;
        let place = |place: &i64| -> Result<Option<(InstructionId, Quantization)>> {
            let Ok(index) = usize::try_from(*place) else { return Ok(None) };
            let quantization = all.get(index).ok_or_else(wrong)?;
            Ok(Some((cx.input(index)?, quantization.clone())))
        };
        let inputs = places.iter().map(place).collect::<Result<_>>()?;
        Ok(Self { inputs, outputs, intermediates })
    }

    /// True if an input is present.
    pub(crate) fn has(&self, k: usize) -> bool {
        matches!(self.inputs.get(k), Some(Some(_)))
    }

    /// Value and quantization of an input.
    pub(crate) fn input(&self, cx: &NodeContext<'_, '_>, k: usize) -> Result<(InstructionId, Quantization)> {
        let input = self.inputs.get(k).cloned().flatten();
        input.ok_or_else(|| cx.invalid(format!("input {k} is missing")))
    }

    /// The same operands with another value for an input that is present.
    pub(crate) fn with_input(mut self, k: usize, value: InstructionId) -> Self {
        if let Some(Some((id, _))) = self.inputs.get_mut(k) {
            *id = value;
        }
        self
    }

    /// Quantization of an output.
    pub(crate) fn output(&self, cx: &NodeContext<'_, '_>, k: usize) -> Result<Quantization> {
        self.outputs.get(k).cloned().ok_or_else(|| cx.invalid(format!("output {k} is missing")))
    }
}
