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
    match program.sized.first() {
        Some(row) if row.size == 1 => Ok(Program::new(row.module.clone(), program.interface.of_row())),
        Some(least) => Err(Error::unsupported(format!(
            "quantization of a range needs a program for one row, but '{0}' is at least {1}: use --dim {0}=1..HIGH, \
             or one size, as in --dim {0}={1}",
            size.label(),
            least.size
        ))),
        None => Err(Error::unsupported(format!(
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
    for SizedModule { size, is_required, module } in &batch.sized[1..] {
        if let Some(module) = followed(module, &of_row, decisions)? {
            sized.push(SizedModule { size: *size, is_required: *is_required, module });
        }
    }
    let module = compiler::loop_over_rows(&row.module, &interface)?;
    sized.insert(0, SizedModule { size: 1, is_required: true, module: row.module });
    Ok(Program { sized, ..Program::new(module, interface) })
}

/// Returns the modules for particular sizes of a program whose module became another by these
/// decisions. There is no code for sizes whose program has other layers.
pub(super) fn follow_exact(
    program: &Program,
    interface: &Interface,
    decisions: &Decisions<'_>,
) -> Result<Vec<ExactModule>> {
    let followed = |exact: &ExactModule| {
        let module = followed(&exact.module, interface, decisions)?;
        Ok(module.map(|module| ExactModule { sizes: exact.sizes.clone(), module }))
    };
    program.exact.iter().filter_map(|exact| followed(exact).transpose()).collect()
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
