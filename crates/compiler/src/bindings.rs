//! Arguments of a program that its caller does not feed: those with values from a file become
//! constants, and those whose memory a result uses become variables.

use crate::entry;
use hlo::{
    Argument, ComputationBuilder, ExactModule, Identifier, Interface, Module, NamedDimension, Op, Origin,
    Output, Program, Role, SizeParameter, SizedModule,
};
use shape::{ArrayShape, Literal, PrimitiveType};
use std::collections::BTreeMap;
use support::{Code, Error, Result};

/// Returns the program with variables: each pair is the number of an argument and of the result
/// that is its new value. Variables follow the feeds, and their new values all other results.
pub(crate) fn with_variables(program: Program, pairs: &[(usize, usize)]) -> Result<Program> {
    if pairs.is_empty() {
        return Ok(program);
    }
    let arguments = program.interface.arguments().iter().enumerate();
    let (mut feeds, mut variables) = (Vec::new(), Vec::new());
    for (number, argument) in arguments {
        let mut argument = argument.clone();
        if pairs.iter().any(|&(variable, _)| variable == number) {
            argument.role = Role::Variable;
            argument.id = Identifier::Variable(argument.id.node().to_owned());
            variables.push((number, argument));
        } else {
            feeds.push((number, argument));
        }
    }
    let (numbers, mut arguments): (Vec<usize>, Vec<_>) = feeds.into_iter().chain(variables).unzip();
    renumber_sizes(&mut arguments, &numbers);
    let mut order = Vec::new();
    let mut results = Vec::new();
    for (number, result) in program.interface.results().iter().enumerate() {
        if !pairs.iter().any(|&(_, new_value)| new_value == number) {
            order.push(number);
            results.push(result.clone());
        }
    }
    for (k, argument) in arguments.iter().enumerate() {
        let Some(&(_, number)) = pairs.iter().find(|&&(variable, _)| variable == numbers[k]) else {
            continue;
        };
        let result = program.interface.results().get(number).filter(|r| r.origin == Origin::Fetch);
        let result = result.filter(|result| result.shape == argument.shape);
        let result = result.ok_or_else(|| {
            Error::invalid(format!(
                "argument '{}' names result {number} as its new value (tf.aliasing_output), which does not exist or has \
                 another shape",
                argument.label()
            ))
        })?;
        order.push(number);
        let name = argument.name.clone();
        results.push(Output::new_value(name, argument.id.clone(), result.shape.clone(), &arguments));
    }
    let interface = Interface::new(arguments, results);
    wrapped(program, interface, &numbers, &BTreeMap::new(), &order)
}

/// Returns the program with constants in place of the arguments that have the names of arrays. An
/// array fits if its name, with all characters that C identifiers cannot contain replaced, is the
/// argument's.
///
/// Fails if an array has no argument, or has another type or shape. Arrays of bytes fit arguments
/// of four bits if each number does.
pub(crate) fn with_constants(program: Program, arrays: &BTreeMap<String, Literal>) -> Result<Program> {
    let mut constants = BTreeMap::new();
    for (name, array) in arrays {
        let arguments = program.interface.arguments();
        let number = arguments.iter().position(|argument| {
            argument.label() == *name || argument.name.as_deref() == Some(identifier(name).as_str())
        });
        let number = number.filter(|&number| arguments[number].role == Role::Feed).ok_or_else(|| {
            let names: Vec<String> = program.interface.feeds().iter().map(|feed| feed.label()).collect();
            Error::invalid(format!(
                "'{name}' is not an argument of the program, whose arguments are: {}",
                names.join(", ")
            ))
            .coded(Code::Hlo)
        })?;
        refuse_sizes(arguments, number)?;
        let value =
            as_argument(array, &arguments[number].shape).map_err(|e| e.context(format!("'{name}'")))?;
        constants.insert(number, value);
    }
    if constants.is_empty() {
        return Ok(program);
    }
    let kept: Vec<usize> =
        (0..program.interface.arguments().len()).filter(|k| !constants.contains_key(k)).collect();
    let mut arguments: Vec<_> = kept.iter().map(|&k| program.interface.arguments()[k].clone()).collect();
    renumber_sizes(&mut arguments, &kept);
    let mut results = program.interface.results().to_vec();
    for result in &mut results {
        result.alias = result.alias.and_then(|k| kept.iter().position(|&kept| kept == k));
    }
    let order: Vec<usize> = (0..results.len()).collect();
    wrapped(program, Interface::new(arguments, results), &kept, &constants, &order)
}

/// Gives the sizes of named dimensions their new numbers: argument `k` had the number `numbers[k]`.
/// A size that is no longer an argument has become a constant.
fn renumber_sizes(arguments: &mut [Argument], numbers: &[usize]) {
    for argument in arguments {
        argument.named_dimensions = argument
            .named_dimensions
            .iter()
            .filter_map(|named| {
                let size = numbers.iter().position(|&number| number == named.size)?;
                Some(NamedDimension { size, ..*named })
            })
            .collect();
    }
}

/// Refuses a constant whose size, or which itself as a size, each run states.
fn refuse_sizes(arguments: &[Argument], number: usize) -> Result<()> {
    let argument = &arguments[number];
    let label = argument.label();
    let message = if argument.range.is_some() {
        format!(
            "'{label}' is the size of a dimension, which each run states: remove it from the file, or fix the size \
             with --dim {label}=N"
        )
    } else if let Some(named) = argument.named_dimensions.first() {
        let size = arguments[named.size].label();
        format!(
            "dimension {} of '{label}' has the size '{size}', which each run states: remove '{label}' from the file, or \
             fix the size with --dim {size}=N",
            named.dimension
        )
    } else {
        return Ok(());
    };
    Err(Error::invalid(message).coded(Code::Hlo))
}

/// Returns a program that does what another one does: its parameters are those with the numbers in
/// `kept`, further ones are constants, and its results those with the numbers in `order`.
fn wrapped(
    program: Program,
    interface: Interface,
    kept: &[usize],
    constants: &BTreeMap<usize, Literal>,
    order: &[usize],
) -> Result<Program> {
    let Program { module, interface: old, sized, exact } = program;
    let mut module = with_entry(module, kept, constants, order)?;
    module.set_input_output_alias(interface.input_output_alias());
    let of_sizes = |exact: ExactModule| {
        let mut module = with_entry(exact.module, kept, constants, order)?;
        module.set_input_output_alias(interface.input_output_alias());
        hlo::verify(&module)?;
        let number = |old: usize| kept.iter().position(|&number| number == old);
        let sizes = exact.sizes.iter().filter_map(|&(old, size)| Some((number(old)?, size)));
        Ok(ExactModule { sizes: sizes.collect(), module })
    };
    let exact = exact.into_iter().map(of_sizes).collect::<Result<_>>()?;
    // A module for one size is without the parameters that are sizes.
    let arguments: Vec<usize> =
        (0..old.arguments().len()).filter(|&k| old.arguments()[k].range.is_none()).collect();
    let own_number = |number: usize| arguments.iter().position(|&argument| argument == number);
    let kept: Vec<usize> = kept.iter().filter_map(|&number| own_number(number)).collect();
    let own = constants.iter().filter_map(|(&number, value)| Some((own_number(number)?, value.clone())));
    let own = own.collect();
    let of_size = |sized: SizedModule| {
        let module = with_entry(sized.module, &kept, &own, order)?;
        hlo::verify(&module)?;
        Ok(SizedModule { module, ..sized })
    };
    let sized = sized.into_iter().map(of_size).collect::<Result<_>>()?;
    Ok(Program { module, interface, sized, exact })
}

/// Returns a module with another entry; see [`wrapped`].
fn with_entry(
    mut module: Module,
    kept: &[usize],
    constants: &BTreeMap<usize, Literal>,
    order: &[usize],
) -> Result<Module> {
    let signature = module.entry_computation().program_shape();
    let mut builder = ComputationBuilder::new("bound");
    let new_number = |old: usize| kept.iter().position(|&number| number == old);
    let sizes = module.size_parameters().iter();
    let sizes =
        sizes.filter_map(|size| Some(SizeParameter { parameter: new_number(size.parameter)?, ..*size }));
    let sizes = sizes.collect();
    let mut operands = BTreeMap::new();
    for &number in kept {
        let shape = signature.parameters[number].clone();
        operands.insert(number, builder.parameter(&signature.parameter_names[number], shape));
    }
    for (&number, literal) in constants {
        operands.insert(number, builder.constant(literal.clone()));
    }
    let operands: Vec<_> = operands.into_values().collect();
    let result = entry::apply(&module, &mut builder, &operands);
    let mut results = Vec::new();
    for &index in order {
        results.push(entry::element(&module, &mut builder, result, index)?);
    }
    let root = builder.op(&module, Op::Tuple {}, &results)?;
    entry::replace(&mut module, builder.finish(root));
    module.set_size_parameters(sizes);
    Ok(module)
}

/// Returns an array as the value of an argument.
fn as_argument(array: &Literal, shape: &ArrayShape) -> Result<Literal> {
    use PrimitiveType::{S4, S8, U4, U8};
    let from = array.array_shape();
    let narrows = matches!((from.element_type, shape.element_type), (S8, S4) | (U8 | S8, U4));
    if from.sizes() != shape.sizes() || from.element_type != shape.element_type && !narrows {
        return Err(
            Error::invalid(format!("the file has {from}, but the argument is {shape}")).coded(Code::Hlo)
        );
    }
    if !narrows {
        return Ok(array.clone());
    }
    let fits = |&byte: &u8| match shape.element_type {
        S4 => (-8..8).contains(&(byte as i8)),
        _ => byte < 16,
    };
    if let Some(position) = array.bytes().iter().position(|byte| !fits(byte)) {
        let number = array.scalar_at(position).as_i64().unwrap_or_default();
        return Err(Error::invalid(format!("element {position} is {number}, which does not fit {shape}"))
            .coded(Code::Hlo));
    }
    let whole = ArrayShape::new(shape.element_type, &shape.sizes());
    Literal::from_bytes(whole, array.bytes().clone())
        .ok_or_else(|| Error::internal("an array of four bits has another size than one of bytes"))
}

/// Replaces all characters that C identifiers cannot contain.
fn identifier(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}
