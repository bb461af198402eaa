//! Matches given values to a program's arguments by name, and checks them.

mod sizes;

use crate::Signature;
use crate::fill::{Fill, Random};
use hlo::{Argument, Role};
use shape::{ArrayShape, Literal, PrimitiveType};
use sizes::Sizes;
use support::{Error, Result};

/// Source of an argument's elements.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// An array.
    Array(Literal),
    /// A generated array.
    Fill(Fill),
}

/// A source and the name of the argument it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// Feed or variable.
    pub role: Role,
    /// The argument's name.
    pub name: String,
    /// Source of the elements.
    pub source: Source,
    /// Flag or file member that specifies this value, for messages.
    pub origin: String,
    /// True if an unknown name is an error. False for members of an archive, which may hold more.
    pub required: bool,
}

/// Returns the arguments in the program's order. Missing arguments are filled with `missing`.
/// Without it, a missing feed is an error, and a missing variable is zero.
///
/// Sizes of named dimensions that are not given are those of the arrays, or else the largest. An
/// array of smaller sizes takes the corner of its argument, with zeros elsewhere.
pub fn assign(
    signature: &Signature,
    values: &[Given],
    missing: Option<Fill>,
    random: &Random,
) -> Result<Vec<Literal>> {
    let sources = sources(signature, values)?;
    let sizes = Sizes::of_run(signature, &sources)?;
    let shape = |argument: &Argument| ArrayShape::new(argument.shape.element_type, &sizes.of(argument));
    let generate = |fill: Fill, argument: &Argument, number: usize| {
        let limit = signature.limits[number];
        let array = fill.array_below(&shape(argument), limit, &mut random.fork(number));
        let array = array.and_then(|array| in_corner(argument, array));
        array.map_err(|e| e.context(format!("{} '{}'", argument.role.name(), argument.label())))
    };
    let all = signature.arguments().iter().zip(sources).enumerate();
    all.map(|(number, (argument, source))| match source {
        _ if argument.range.is_some() => {
            sizes.value(number).ok_or_else(|| Error::internal("a named dimension has no size"))
        }
        Some(Given { source: Source::Array(array), origin, .. }) => fit(argument, &sizes, array, origin),
        Some(Given { source: Source::Fill(fill), .. }) => {
            generate(*fill, argument, number)
        }
        None => match missing {
            Some(fill) => generate(fill, argument, number),
            None if argument.role == Role::Variable => {
                generate(Fill::Zeros, argument, number)
            }
            None => Err(Error::invalid(format!(
                "missing value for feed '{}' of {}; pass --feed {}=FILE.npy, or --random SEED to fill all missing feeds",
                argument.label(), argument.shape, argument.label()
            ))),
        },
    })
    .collect()
}

/// Returns the source of each argument, if it is given.
fn sources<'g>(signature: &Signature, values: &'g [Given]) -> Result<Vec<Option<&'g Given>>> {
    let mut sources: Vec<Option<&Given>> = vec![None; signature.arguments().len()];
    for source in values {
        match signature.find(source.role, &source.name) {
            Some(at) => match sources[at] {
                Some(first) => {
                    return Err(Error::invalid(format!(
                        "{} '{}' is given twice: by {} and by {}",
                        source.role.name(),
                        signature.arguments()[at].label(),
                        first.origin,
                        source.origin
                    )));
                }
                None => sources[at] = Some(source),
            },
            None if source.required => return Err(unknown(signature, source)),
            None => {}
        }
    }
    Ok(sources)
}

/// Arguments for several runs: arrays for the first run, and batches for some feeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Inputs {
    /// The arguments of the first run, in the program's order.
    pub first: Vec<Literal>,
    /// The batches of each argument, if its array has one per step.
    batches: Vec<Vec<Literal>>,
}

impl Inputs {
    /// Returns the number of batches, or `None` if every run gets the same arguments.
    pub fn batch_count(&self) -> Option<u64> {
        self.batches.iter().map(|batches| batches.len() as u64).find(|&count| count > 0)
    }

    /// Returns the arguments that change in a step, with their arrays. The batches repeat after the
    /// last one.
    pub fn at(&self, step: u64) -> impl Iterator<Item = (usize, &Literal)> {
        let all = self.batches.iter().enumerate().filter(|(_, batches)| !batches.is_empty());
        all.map(move |(k, batches)| (k, &batches[(step % batches.len() as u64) as usize]))
    }
}

/// Works like [`assign`], but for several steps: an array with one leading dimension more than its
/// feed holds one batch per step. All such arrays must have the same number of batches.
pub fn assign_steps(
    signature: &Signature,
    values: &[Given],
    missing: Option<Fill>,
    random: &Random,
) -> Result<Inputs> {
    let mut values = values.to_vec();
    let mut raw = Vec::new();
    let mut count: Option<(usize, String)> = None;
    for source in values.iter_mut().filter(|source| source.role == Role::Feed) {
        let Some(at) = signature.find(Role::Feed, &source.name) else { continue };
        let argument = &signature.arguments()[at];
        let Source::Array(array) = &source.source else { continue };
        let sizes = array.array_shape().sizes();
        let Some((&steps, batch)) = sizes.split_first().filter(|(_, batch)| is_batch(argument, batch)) else {
            continue;
        };
        if steps == 0 {
            return Err(Error::invalid(format!(
                "{}: feed '{}' has no batches",
                source.origin,
                argument.label()
            )));
        }
        let steps = steps as usize;
        match &count {
            Some((others, name)) if *others != steps => {
                return Err(Error::invalid(format!(
                    "{}: feed '{}' has {steps} batches, feed '{name}' has {others}",
                    source.origin,
                    argument.label()
                )));
            }
            _ => count = Some((steps, argument.label())),
        }
        let shape = ArrayShape::new(array.array_shape().element_type, batch);
        let size = shape.byte_size() as usize;
        let all = (0..steps).map(|step| {
            let batch =
                Literal::from_bytes(shape.clone(), array.bytes().slice(step * size..(step + 1) * size));
            batch.ok_or_else(|| Error::internal("a batch does not have the bytes of its shape"))
        });
        let all = all.collect::<Result<Vec<_>>>()?;
        let origin = source.origin.clone();
        source.source = Source::Array(all[0].clone());
        raw.push((at, origin, all));
    }
    let first = assign(signature, &values, missing, random)?;
    let mut batches: Vec<Vec<Literal>> = vec![Vec::new(); signature.arguments().len()];
    if !raw.is_empty() {
        let sizes = Sizes::of_run(signature, &sources(signature, &values)?)?;
        for (at, origin, all) in raw {
            let argument = &signature.arguments()[at];
            let all = all.iter().map(|batch| fit(argument, &sizes, batch, &origin));
            batches[at] = all.collect::<Result<_>>()?;
        }
    }
    Ok(Inputs { first, batches })
}

fn unknown(signature: &Signature, source: &Given) -> Error {
    let names: Vec<String> = signature
        .arguments()
        .iter()
        .filter(|a| a.role == source.role)
        .map(|a| format!("'{}' of {}", a.label(), a.shape))
        .collect();
    let role = source.role.name();
    let available = match names.as_slice() {
        [] => format!("the program has no {role}"),
        names => format!("the program's {role}s are {}", names.join(", ")),
    };
    Error::invalid(format!("{}: there is no {role} '{}'; {available}", source.origin, source.name))
}

/// Converts the array to the argument's type and shape, or returns an error that describes the
/// difference.
fn fit(argument: &Argument, sizes: &Sizes, array: &Literal, origin: &str) -> Result<Literal> {
    let actual = array.array_shape();
    let expected = &ArrayShape::new(argument.shape.element_type, &sizes.of(argument));
    let role = argument.role.name();
    if actual.sizes() != expected.sizes() {
        let reshaped = if actual.element_count() == expected.element_count() { "; reshape it" } else { "" };
        return Err(Error::invalid(format!(
            "{origin}: {role} '{}' has shape {:?}, the array has {:?}{reshaped}",
            argument.label(),
            expected.sizes(),
            actual.sizes()
        )));
    }
    if !represents(actual.element_type, expected.element_type) {
        return Err(Error::invalid(format!(
            "{origin}: {role} '{}' has elements of {}, the array has {}; convert it{}",
            argument.label(),
            expected.element_type,
            actual.element_type,
            hint(expected.element_type)
        )));
    }
    let shape = ArrayShape::new(expected.element_type, &expected.sizes());
    let fitted = Literal::from_bytes(shape, array.bytes().clone());
    let fitted =
        fitted.ok_or_else(|| Error::internal(format!("{actual} does not have the bytes of {expected}")))?;
    check_narrow(argument, &fitted, origin)?;
    in_corner(argument, fitted)
}

/// True if an array of these sizes is a batch of an argument.
fn is_batch(argument: &Argument, sizes: &[i64]) -> bool {
    let is_named = |d: usize| argument.named_dimensions.iter().any(|named| named.dimension == d);
    let expected = argument.shape.sizes();
    sizes.len() == expected.len() && (0..sizes.len()).all(|d| sizes[d] == expected[d] || is_named(d))
}

/// Returns an array with the largest sizes of an argument's named dimensions.
fn in_corner(argument: &Argument, array: Literal) -> Result<Literal> {
    let bytes = argument.shape.byte_size();
    support::check_memory(bytes, format_args!("the largest array of its sizes, {}", argument.shape))?;
    array.in_corner_of(&argument.shape.sizes()).ok_or_else(|| {
        Error::internal(format!("{} does not fit into {}", array.array_shape(), argument.shape))
    })
}

/// True if arrays of a NumPy type represent arrays of the expected type. Types that NumPy does not
/// support are stored as integers with the same bits.
fn represents(actual: PrimitiveType, expected: PrimitiveType) -> bool {
    let stand_in = match expected {
        PrimitiveType::Bf16 => PrimitiveType::U16,
        byte if byte.byte_size() == 1 && byte.is_signed_integer() => PrimitiveType::S8,
        byte if byte.byte_size() == 1 && byte != PrimitiveType::Pred => PrimitiveType::U8,
        other => other,
    };
    actual == expected || actual == stand_in
}

fn hint(expected: PrimitiveType) -> String {
    match expected {
        PrimitiveType::Bf16 => ", stored as uint16 bits".to_owned(),
        float if float.is_minifloat() => ", stored as uint8 bits".to_owned(),
        PrimitiveType::F32 => " with astype('float32')".to_owned(),
        _ => String::new(),
    }
}

/// Returns an error if elements of a type narrower than a byte use more bits.
fn check_narrow(argument: &Argument, array: &Literal, origin: &str) -> Result<()> {
    let element_type = array.array_shape().element_type;
    if element_type.bit_width() >= 8 || element_type == PrimitiveType::Pred {
        return Ok(());
    }
    let normalized = Literal::from_scalars(array.array_shape().clone(), array.scalars());
    if normalized.bytes() == array.bytes() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{origin}: {} '{}' has elements of {element_type}, but the array has values out of its range",
        argument.role.name(),
        argument.label()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::{Identifier, Interface};

    fn signature() -> Signature {
        let argument = |name: &str, role, element_type, sizes: &[i64]| {
            let id = Identifier::first_of(format!("node_{name}"));
            Argument::new(Some(name.to_owned()), id, ArrayShape::new(element_type, sizes), role)
        };
        let arguments = vec![
            argument("x", Role::Feed, PrimitiveType::F32, &[2, 2]),
            argument("b", Role::Feed, PrimitiveType::Bf16, &[1]),
            argument("v", Role::Variable, PrimitiveType::S32, &[]),
        ];
        Signature::unlimited(Interface::new(arguments, Vec::new()))
    }

    fn given(role: Role, name: &str, array: Literal) -> Given {
        let source = Source::Array(array);
        Given { role, name: name.to_owned(), source, origin: "--feed".to_owned(), required: true }
    }

    fn error(values: &[Given], missing: Option<Fill>) -> String {
        assign(&signature(), values, missing, &Random::new(0)).unwrap_err().message().to_owned()
    }

    #[test]
    fn arrays_find_their_arguments_by_any_of_their_names() {
        let x = Literal::from_elements(&[2, 2], &[1f32, 2.0, 3.0, 4.0]);
        let bits = Literal::from_elements(&[1], &[0x3f80u16]);
        let all = [given(Role::Feed, "b", bits), given(Role::Feed, "node_x:0", x.clone())];
        let arguments = assign(&signature(), &all, None, &Random::new(0)).unwrap();
        assert_eq!(arguments[0], x);
        assert_eq!(arguments[1].scalar_at(0), shape::Scalar::Float(1.0), "bfloat16 is read from its bits");
        assert_eq!(arguments[2], Literal::scalar(0i32), "variables start at zero");
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let missing = error(&[], None);
        assert!(missing.contains("feed 'x' of f32[2,2]") && missing.contains("--feed x="), "{missing}");
        let wrong = error(&[given(Role::Feed, "x", Literal::from_elements(&[4], &[0f32; 4]))], None);
        assert!(wrong.contains("'x' has shape [2, 2], the array has [4]; reshape it"), "{wrong}");
        let wrong = error(&[given(Role::Feed, "x", Literal::from_elements(&[2, 2], &[0f64; 4]))], None);
        assert!(wrong.contains("f32, the array has f64"), "{wrong}");
        let wrong = error(&[given(Role::Feed, "z", Literal::scalar(0f32))], Some(Fill::Zeros));
        assert!(
            wrong.contains("no feed 'z'") && wrong.contains("'x' of f32[2,2], 'b' of bf16[1]"),
            "{wrong}"
        );
        let wrong = error(&[given(Role::Variable, "x", Literal::scalar(0f32))], Some(Fill::Zeros));
        assert!(wrong.contains("no variable 'x'") && wrong.contains("'v' of s32[]"), "{wrong}");
        let x = given(Role::Feed, "x", Literal::from_elements(&[2, 2], &[0f32; 4]));
        let twice = error(&[x.clone(), x], Some(Fill::Zeros));
        assert!(twice.contains("given twice"), "{twice}");
    }

    #[test]
    fn a_leading_dimension_is_that_of_the_steps() {
        let values: Vec<f32> = (0..12).map(|i| i as f32).collect();
        let x = given(Role::Feed, "x", Literal::from_elements(&[3, 2, 2], &values));
        let b = given(Role::Feed, "b", Literal::from_elements(&[1], &[0u16]));
        let inputs = assign_steps(&signature(), &[x.clone(), b], None, &Random::new(0)).unwrap();
        assert_eq!(inputs.batch_count(), Some(3));
        assert_eq!(inputs.first[0], Literal::from_elements(&[2, 2], &values[..4]));
        let second = Literal::from_elements(&[2, 2], &values[4..8]);
        assert_eq!(inputs.at(1).collect::<Vec<_>>(), [(0, &second)]);
        assert_eq!(inputs.at(4).collect::<Vec<_>>(), [(0, &second)], "batches repeat after the last");
        let b = given(Role::Feed, "b", Literal::from_elements(&[2, 1], &[0u16, 1]));
        let error = assign_steps(&signature(), &[x, b], None, &Random::new(0)).unwrap_err().to_string();
        assert!(error.contains("feed 'b' has 2 batches, feed 'x' has 3"), "{error}");
        let none = given(Role::Feed, "x", Literal::from_elements::<f32>(&[0, 2, 2], &[]));
        let error = assign_steps(&signature(), &[none], Some(Fill::Zeros), &Random::new(0)).unwrap_err();
        assert!(error.to_string().contains("'x' has no batch"), "{error}");
    }

    #[test]
    fn members_that_nobody_asked_for_are_passed_over() {
        let mut extra = given(Role::Feed, "z", Literal::scalar(0f32));
        extra.required = false;
        assert!(assign(&signature(), &[extra], Some(Fill::Zeros), &Random::new(0)).is_ok());
    }
}
