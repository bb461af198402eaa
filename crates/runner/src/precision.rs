//! Reports how far a reduced precision moves results: from `f32` and from `f64`, both computed by
//! the evaluator.

use crate::difference::Difference;
use hlo::{Module, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Shape};
use support::{Error, Result};
use terminal::{Column, Screen, Style, Table};

/// Distance of an array from a reference.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Distance {
    /// The largest absolute difference.
    pub largest: f64,
    /// The root of the mean square of the differences, as a fraction of the reference's.
    pub relative: f64,
    /// The largest magnitude of the reference.
    pub magnitude: f64,
}

/// Movement of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Movement {
    /// Name of the result.
    pub name: String,
    /// Distance of the compiled program's result from that of `f32`.
    pub from_f32: Distance,
    /// Distance of the compiled program's result from that of `f64`; `None` if the program depends
    /// on the bits of `f32`.
    pub from_f64: Option<Distance>,
    /// Distance of the result of `f32` from that of `f64`.
    pub of_f32: Option<Distance>,
}

/// Movements of all floating-point results.
#[derive(Clone, Debug, PartialEq)]
pub struct PrecisionReport {
    /// Name of the precision.
    pub precision: &'static str,
    /// Number of inputs.
    pub inputs: usize,
    /// The movements.
    pub results: Vec<Movement>,
}

fn include(sums: &mut Difference, have: &Literal, want: &Literal) {
    for (have, want) in have.scalars().zip(want.scalars()) {
        if let (Some(have), Some(want)) = (have.as_f64(), want.as_f64()) {
            sums.include(have, want);
        }
    }
}

impl From<Difference> for Distance {
    fn from(sums: Difference) -> Self {
        Self { largest: sums.largest, relative: sums.relative(), magnitude: sums.magnitude }
    }
}

/// Compares a program's results with the evaluator's in `f32` and `f64`. `run` returns the
/// program's results for arguments of the module.
pub fn measure_precision(
    module: &Module,
    names: &[String],
    precision: &'static str,
    inputs: &[Vec<Literal>],
    run: &mut dyn FnMut(&[Literal]) -> Result<Vec<Literal>>,
) -> Result<PrecisionReport> {
    let wide = widened(module);
    let mut sums = vec![[Difference::default(); 3]; names.len()];
    let mut is_float = vec![false; names.len()];
    for arguments in inputs {
        let have = run(arguments)?;
        let single = arrays(evaluator::evaluate(module, arguments)?);
        if have.len() != single.len() || single.len() != names.len() {
            return Err(Error::internal("the evaluator returns another number of results than the program"));
        }
        let double = match &wide {
            Some(wide) => {
                let arguments: Vec<Literal> = arguments.iter().map(widened_literal).collect();
                Some(arrays(evaluator::evaluate(wide, &arguments)?))
            }
            None => None,
        };
        for (k, sums) in sums.iter_mut().enumerate() {
            is_float[k] = single[k].array_shape().element_type.is_floating_point();
            include(&mut sums[0], &have[k], &single[k]);
            if let Some(double) = &double {
                include(&mut sums[1], &have[k], &double[k]);
                include(&mut sums[2], &single[k], &double[k]);
            }
        }
    }
    let results = names.iter().zip(sums).zip(is_float).filter(|(_, is_float)| *is_float);
    let movement = |((name, sums), _): ((&String, [Difference; 3]), bool)| Movement {
        name: name.clone(),
        from_f32: sums[0].into(),
        from_f64: wide.as_ref().map(|_| sums[1].into()),
        of_f32: wide.as_ref().map(|_| sums[2].into()),
    };
    Ok(PrecisionReport { precision, inputs: inputs.len(), results: results.map(movement).collect() })
}

/// The module with `f64` in place of `f32`; `None` if it reads the bits of floats or draws random
/// numbers.
fn widened(module: &Module) -> Option<Module> {
    let mut wide = module.clone();
    let computations: Vec<_> = module.computations().map(|(id, _)| id).collect();
    for id in computations {
        let computation = wide.computation_mut(id);
        let instructions: Vec<_> = computation.instructions().map(|(id, _)| id).collect();
        for id in instructions {
            match computation[id].op() {
                Op::BitcastConvert {}
                | Op::Rng { .. }
                | Op::RngBitGenerator { .. }
                | Op::CustomCall { .. } => return None,
                Op::Constant { literal } => {
                    let literal = widened_literal(literal);
                    computation.set_op(id, Op::Constant { literal });
                }
                _ => {}
            }
            let shape = widened_shape(computation[id].shape());
            computation.set_shape(id, shape);
        }
    }
    Some(wide)
}

fn widened_shape(shape: &Shape) -> Shape {
    match shape {
        Shape::Array(array) if array.element_type == PrimitiveType::F32 => {
            Shape::Array(ArrayShape { element_type: PrimitiveType::F64, ..array.clone() })
        }
        Shape::Tuple(elements) => Shape::Tuple(elements.iter().map(widened_shape).collect()),
        other => other.clone(),
    }
}

fn widened_literal(literal: &Literal) -> Literal {
    match literal {
        Literal::Tuple(elements) => Literal::Tuple(elements.iter().map(widened_literal).collect()),
        array if array.array_shape().element_type == PrimitiveType::F32 => {
            let shape = ArrayShape { element_type: PrimitiveType::F64, ..array.array_shape().clone() };
            Literal::from_scalars(shape, array.scalars())
        }
        other => other.clone(),
    }
}

/// The arrays of a result.
fn arrays(result: Literal) -> Vec<Literal> {
    match result {
        Literal::Tuple(elements) => elements.into_iter().flat_map(arrays).collect(),
        array => vec![array],
    }
}

impl PrecisionReport {
    /// A table of the results.
    pub fn to_text(&self, screen: &Screen) -> String {
        let Self { precision, inputs, results } = self;
        let plural = if *inputs == 1 { "" } else { "s" };
        let title = format!("products of {precision}: how far results move, on {inputs} input{plural}");
        let mut table = Table::new([
            Column::names("result"),
            Column::numbers("largest number"),
            Column::numbers(&format!("{precision} from f32")),
            Column::numbers("relative"),
            Column::numbers(&format!("{precision} from f64")).optional(),
            Column::numbers("relative").optional(),
            Column::numbers("f32 from f64").optional(),
            Column::numbers("relative").optional(),
        ]);
        for result in results {
            let distances = [Some(result.from_f32), result.from_f64, result.of_f32];
            let cells = distances.into_iter().flat_map(|distance| {
                let number = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{v:.3e}"));
                [number(distance.map(|d| d.largest)), number(distance.map(|d| d.relative))]
            });
            let magnitude = format!("{:.3e}", result.from_f32.magnitude);
            table.row([result.name.clone(), magnitude].into_iter().chain(cells));
        }
        let legend = "from: largest difference; relative: root mean square of the differences over that of the numbers";
        screen.paragraph(Style::Plain, &title)
            + &table.render(screen)
            + &screen.paragraph(Style::Faint, legend)
    }

    /// Returns the report as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        let distance = |distance: Distance| serde_json::json!({ "largest": distance.largest, "relative": distance.relative });
        let result = |movement: &Movement| {
            serde_json::json!({
                "name": movement.name,
                "magnitude": movement.from_f32.magnitude,
                "from_f32": distance(movement.from_f32),
                "from_f64": movement.from_f64.map(distance),
                "f32_from_f64": movement.of_f32.map(distance),
            })
        };
        let results: Vec<_> = self.results.iter().map(result).collect();
        serde_json::json!({ "precision": self.precision, "inputs": self.inputs, "results": results })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_known_numbers() {
        // 1/3 in f32 is 1/3 + 1e-8; the program claims to return 0.5.
        let text = "HloModule m\n\nENTRY main {\n  x = f32[2] parameter(0)\n  three = f32[] constant(3)\n  \
                    t = f32[2] broadcast(three), dimensions={}\n  ROOT y = f32[2] divide(x, t)\n}\n";
        let module = hlo::parse(text).expect("a module");
        let inputs = vec![vec![Literal::from_elements(&[2], &[1.0f32, 3.0])]];
        let names = ["y".to_owned()];
        let mut run = |_: &[Literal]| Ok(vec![Literal::from_elements(&[2], &[0.5f32, 1.0])]);
        let report = measure_precision(&module, &names, "bf16", &inputs, &mut run).expect("a report");
        let [movement] = &report.results[..] else { panic!("expected one result") };
        let double = movement.from_f64.expect("a distance");
        let single = movement.of_f32.expect("a distance");
        assert_eq!(movement.from_f32.magnitude, 1.0);
        assert!((double.largest - 1.0 / 6.0).abs() < 1e-15);
        assert!((double.relative - (1.0f64 / 36.0 / (10.0 / 9.0)).sqrt()).abs() < 1e-15);
        assert!((single.largest - (f64::from(1.0f32 / 3.0) - 1.0 / 3.0)).abs() < 1e-18);
    }

    #[test]
    fn a_program_that_reads_bits_has_no_f64() {
        let text = "HloModule m\n\nENTRY main {\n  x = f32[] parameter(0)\n  b = s32[] bitcast-convert(x)\n  \
                    ROOT y = f32[] convert(b)\n}\n";
        let module = hlo::parse(text).expect("a module");
        let inputs = vec![vec![Literal::scalar(1.0f32)]];
        let mut run = |_: &[Literal]| Ok(vec![Literal::scalar(2.0f32)]);
        let report =
            measure_precision(&module, &["y".to_owned()], "f16", &inputs, &mut run).expect("a report");
        assert_eq!(report.results[0].from_f64, None);
    }
}
