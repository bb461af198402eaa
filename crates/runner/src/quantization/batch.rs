//! Quantization of a program for a batch of any size. One row decides, and the program for each
//! size follows.

use super::{Boundary, Decisions, canonical, points};
use hlo::{ExactModule, Interface, Module, Program, SizedModule};
use quantize::{Form, Layers, rewrite};
use shape::Quantization;
use support::{Error, Result};

/// Returns the program of which examples are the inputs: for a batch of any size, that for one row.
///
/// Errors: a dimension has a range, and there is no program for one row.
pub fn example_program(program: &Program) -> Result<Program> {
    let Some((_, size, _)) = program.interface.sizes().next() else { return Ok(program.clone()) };
    match (program.row(), program.sized.first()) {
        (Some(row), _) => Ok(Program::new(row.module.clone(), program.interface.of_row())),
        (None, Some(least)) if program.interface.sizes().count() == 1 => Err(Error::unsupported(format!(
            "quantization of a range needs a program for one row, but '{0}' is at least {1}: use --dim {0}=1..HIGH, \
             or one size, as in --dim {0}={1}",
            size.label(),
            least.size
        ))),
        _ => Err(Error::unsupported(format!(
            "'{0}' has a range, and the rows of '{0}' depend on each other or on its size, so examples are not \
             those of one row: state one size, as in --dim {0}=16, or quantize weights only, without --data",
            size.label()
        ))),
    }
}

/// Returns the program for a batch whose program for one row became `row`, by these decisions.
/// There is no code for a size whose program has other layers.
pub(super) fn follow(batch: &Program, row: Program, decisions: &Decisions<'_>) -> Result<Program> {
    let interface = batch.interface.with_elements_of(&row.interface);
    let of_row = batch.interface.of_row();
    let mut sized = Vec::new();
    for of_size in &batch.sized[1..] {
        if let Some(module) = followed(&of_size.module, &of_row, decisions)? {
            sized.push(SizedModule { module, ..of_size.clone() });
        }
    }
    let module = compiler::loop_over_rows(&row.module, &interface)?;
    sized.insert(0, SizedModule { module: row.module, ..batch.sized[0].clone() });
    Ok(Program { sized, ..Program::new(module, interface) })
}

/// Adds the modules for particular sizes to a program whose module became another by these
/// decisions, and that for one row if there are several named dimensions. There is no code for
/// sizes whose program has other layers.
pub(super) fn follow_modules(
    program: &Program,
    quantized: &mut Program,
    interface: &Interface,
    decisions: &Decisions<'_>,
) -> Result<()> {
    for exact in &program.exact {
        if let Some(module) = followed(&exact.module, interface, decisions)? {
            quantized.exact.push(ExactModule { sizes: exact.sizes.clone(), module });
        }
    }
    for row in program.sized.iter().filter(|_| program.row().is_none()) {
        if let Some(module) = followed(&row.module, interface, decisions)? {
            quantized.sized.push(SizedModule { module, ..row.clone() });
        }
    }
    Ok(())
}

/// Returns the module for another size in its new form; `None` if its layers or the values between
/// them are others.
fn followed(module: &Module, interface: &Interface, decisions: &Decisions<'_>) -> Result<Option<Module>> {
    let mut module = canonical(module.clone())?;
    if decisions.options.equalizes {
        let _ = quantize::equalize(&mut module)?;
    }
    let layers = Layers::of(&module).layers;
    let boundary = Boundary::of(&module, interface, decisions.options);
    let own = points(&module, &layers, &boundary, decisions.options);
    let same_weights = layers.iter().zip(decisions.layers).all(|(layer, other)| {
        (layer.weights, layer.channel) == (other.weights, other.channel)
            && layer.literal(&module) == other.literal(decisions.module)
    });
    if layers.len() != decisions.layers.len() || !same_weights {
        return Ok(None);
    }
    let inputs = layers.iter().zip(decisions.layers);
    let inputs = inputs.map(|(layer, other)| (layer.input(&module), other.input(decisions.module)));
    let others = boundary.values(&module).into_iter().zip(decisions.boundary.values(decisions.module));
    // Every group has an input of a layer, or an argument or result.
    let mut quantizations: Vec<Option<Quantization>> = vec![None; own.group_count()];
    for (value, other) in inputs.chain(others) {
        let (group, other) = match (own.group(value), decisions.points.group(other)) {
            (None, None) => continue,
            (Some(group), Some(other)) => (group, decisions.quantizations.get(other).copied()),
            _ => return Ok(None),
        };
        if quantizations[group].is_some_and(|known| Some(known) != other) {
            return Ok(None);
        }
        quantizations[group] = other;
    }
    let Some(quantizations) = quantizations.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
    let form = Form {
        layers: &layers,
        forms: decisions.forms,
        points: &own,
        quantizations: &quantizations,
        parameters: &boundary.parameters,
        results: &boundary.results,
    };
    rewrite(&module, &form).map(Some)
}
