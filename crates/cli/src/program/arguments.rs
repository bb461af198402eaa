//! Arrays for a model's feeds and variables, from flags and files.

use crate::args::feeds::FeedArgs;
use crate::files::state::{self, StateFile, listed};
use crate::program::in_process::Initial;
use hlo::{Argument, Role};
use runner::{Fill, Given, Inputs, Random, Signature, Source};
use shape::{ArrayShape, Literal};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use support::{Error, Result};

/// Arguments of a program, and notes about them for the user.
pub(crate) struct Arguments {
    pub(crate) inputs: Inputs,
    pub(crate) notes: Vec<String>,
}

impl Arguments {
    /// Reads the arguments of a program: feeds, then variables. `missing` fills those that are not
    /// given.
    pub(crate) fn read(
        flags: &FeedArgs,
        signature: &Signature,
        initial: &Initial,
        missing: Option<Fill>,
    ) -> Result<Self> {
        let mut given = Vec::new();
        for (role, flag, words) in
            [(Role::Feed, "--feed", &flags.feed), (Role::Variable, "--var", &flags.var)]
        {
            for word in words {
                given.extend(parse(role, flag, word, signature)?);
            }
        }
        for word in &flags.size {
            given.push(size(word, signature)?);
        }
        let mut notes = Vec::new();
        for path in flags.variables.iter().rev() {
            restore(path, signature, &mut given, &mut notes)?;
        }
        given.extend(defaults(signature, initial, &given));
        let missing = flags.random.map(|_| Fill::Random).or(missing);
        let random = Random::new(flags.random.unwrap_or(0));
        Ok(Self { inputs: runner::assign_steps(signature, &given, missing, &random)?, notes })
    }
}

impl Arguments {
    /// Reads samples of a program's feeds from archives. An array has samples of its feed in its
    /// first dimension, or its first dimension is that of several batches.
    pub(crate) fn of_data(paths: &[PathBuf], signature: &Signature, initial: &Initial) -> Result<Self> {
        let mut given = Vec::new();
        for path in paths {
            if !state::is_archive(path) {
                return Err(Error::invalid(format!(
                    "--data {}: expected a .npz archive with an array for each feed, as numpy.savez writes it",
                    path.display()
                )));
            }
            given.extend(members(Role::Feed, &format!("--data {}", path.display()), path, signature)?);
        }
        let feeds = signature.arguments().iter().filter(|argument| argument.role == Role::Feed);
        for feed in feeds {
            let Some(given) = given.iter_mut().find(|given| feed.is_called(&given.name)) else {
                let files: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
                return Err(Error::invalid(format!(
                    "--data {}: no array is named '{}', a feed of {}; save the samples of each feed under its name",
                    files.join(", "),
                    feed.label(),
                    feed.shape
                )));
            };
            let Source::Array(array) = &mut given.source else { continue };
            let batches = in_batches(array, feed, signature).map_err(|e| e.context(&given.origin))?;
            check_finite(&batches, &feed.shape).map_err(|e| e.context(&given.origin))?;
            *array = batches;
        }
        given.extend(defaults(signature, initial, &given));
        let inputs = runner::assign_steps(signature, &given, None, &Random::new(0))?;
        Ok(Self { inputs, notes: Vec::new() })
    }
}

/// Divides the first dimension of samples into batches of a feed, if it holds several of them. If
/// the caller chooses the size of a batch, it is the largest that divides the samples.
fn in_batches(array: &Literal, argument: &Argument, signature: &Signature) -> Result<Literal> {
    let (feed, sizes) = (&argument.shape, array.array_shape().sizes());
    let mut expected = feed.sizes();
    let first = argument.named_dimensions.iter().find(|named| named.dimension == 0);
    let range = first.and_then(|named| signature.arguments()[named.size].range);
    if let (Some(range), Some(&samples)) = (range, sizes.first().filter(|_| sizes.len() == expected.len())) {
        let divisors = (range.low.max(1)..=range.high).rev();
        expected[0] = divisors.clone().find(|size| samples % size == 0).unwrap_or(range.high);
    }
    let (samples, batch) = match (sizes.split_first(), expected.split_first()) {
        (Some((&samples, rest)), Some((&batch, expected)))
            if rest == expected && batch > 0 && samples != batch =>
        {
            (samples, batch)
        }
        _ => return Ok(array.clone()),
    };
    if samples == 0 {
        return Err(Error::invalid("the array has no samples; save at least one"));
    }
    if samples % batch != 0 {
        return Err(Error::invalid(format!(
            "{samples} samples cannot be divided into batches of {batch}, the first size of {feed}; save a multiple of {batch}"
        )));
    }
    let batches = array.reshape(&[&[samples / batch], &expected[..]].concat());
    batches.ok_or_else(|| Error::internal("batches have another number of elements than the samples"))
}

/// Returns an error if a sample has a value that is not a finite number.
fn check_finite(array: &Literal, feed: &ArrayShape) -> Result<()> {
    let Some(values) = array.floats() else { return Ok(()) };
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(at) => Err(Error::invalid(format!(
            "sample {} has the value {}, which is not a finite number; remove the sample, or check its preprocessing",
            at / feed.element_count().max(1) as usize,
            values[at]
        ))),
    }
}

fn variables(signature: &Signature) -> impl Iterator<Item = &Argument> + Clone {
    signature.arguments().iter().filter(|argument| argument.role == Role::Variable)
}

fn is_given(argument: &Argument, given: &[Given]) -> bool {
    given.iter().any(|given| given.role == argument.role && argument.is_called(&given.name))
}

/// Reads the variables that are not given otherwise from a file. Notes list variables without a
/// value and values without a variable.
fn restore(
    path: &Path,
    signature: &Signature,
    given: &mut Vec<Given>,
    notes: &mut Vec<String>,
) -> Result<()> {
    let origin = format!("--variables {}", path.display());
    let mut file = StateFile::open(path).map_err(|e| e.context(&origin))?;
    let (mut used, mut missing) = (BTreeSet::new(), Vec::new());
    for argument in variables(signature) {
        let name = file.name_of(argument);
        if is_given(argument, given) {
            used.extend(name);
            continue;
        }
        let Some(name) = name else {
            missing.push(argument.id.short());
            continue;
        };
        let array = file.get(&name).map_err(|e| e.context(&origin))?;
        let array = array
            .ok_or_else(|| Error::internal(format!("'{name}' is listed in the file, but missing from it")))?;
        given.push(Given {
            role: Role::Variable,
            name: argument.label(),
            source: Source::Array(array),
            origin: format!("{origin}, '{name}'"),
            required: true,
        });
        used.insert(name);
    }
    let unused: Vec<String> = file.names().into_iter().filter(|name| !used.contains(name)).collect();
    if used.is_empty() {
        return Err(Error::invalid(format!(
            "{origin}: no name in the file is a variable of the program: the file has {}, the program has {}",
            listed(&unused),
            listed(&missing)
        )));
    }
    if !missing.is_empty() {
        notes.push(format!("{origin}: the file has no value for {}", listed(&missing)));
    }
    if !unused.is_empty() {
        notes.push(format!("{origin}: no variable takes {}", listed(&unused)));
    }
    Ok(())
}

/// Values that the model contains, for variables and for the arguments of a snapshot that are not
/// given.
fn defaults(signature: &Signature, initial: &Initial, given: &[Given]) -> Vec<Given> {
    let missing = signature.arguments().iter().filter(|argument| !is_given(argument, given));
    let value = |argument: &Argument| {
        let value = initial.iter().find(|(node, _)| argument.is_called(node));
        value.map(|(node, value)| Given {
            role: argument.role,
            name: node.clone(),
            source: Source::Array(value.clone()),
            origin: "the model".to_owned(),
            required: false,
        })
    };
    missing.filter_map(value).collect()
}

/// Parses one flag.
fn parse(role: Role, flag: &str, word: &str, signature: &Signature) -> Result<Vec<Given>> {
    let origin = format!("{flag} {word}");
    if let Some(path) = word.strip_prefix('@') {
        return members(role, &origin, Path::new(path), signature);
    }
    let (name, source) = word
        .split_once('=')
        .ok_or_else(|| Error::invalid(format!("{origin}: expected NAME=FILE.npy or @FILE.npz")))?;
    let source = match source {
        "random" => Source::Fill(Fill::Random),
        "zeros" => Source::Fill(Fill::Zeros),
        "ones" => Source::Fill(Fill::Ones),
        path => Source::Array(array(name, Path::new(path), signature).map_err(|e| e.context(&origin))?),
    };
    Ok(vec![Given { role, name: name.to_owned(), source, origin, required: true }])
}

/// Parses a flag with the size of a named dimension.
fn size(word: &str, signature: &Signature) -> Result<Given> {
    let origin = format!("--size {word}");
    let parsed =
        word.rsplit_once('=').and_then(|(name, size)| Some((name, size.trim().parse::<i32>().ok()?)));
    let (name, size) = parsed.ok_or_else(|| Error::invalid(format!("{origin}: expected NAME=N")))?;
    let of_feed = |argument: &Argument| {
        let (feed, dimension) = name.rsplit_once('.')?;
        let dimension = dimension.parse::<usize>().ok().filter(|_| argument.is_called(feed))?;
        let named = argument.named_dimensions.iter().find(|named| named.dimension == dimension)?;
        Some(&signature.arguments()[named.size])
    };
    let mut sizes = signature.interface.sizes().map(|(_, argument, _)| argument);
    let argument = sizes.find(|argument| argument.is_called(name));
    let argument = argument.or_else(|| signature.arguments().iter().find_map(of_feed));
    let argument = argument.ok_or_else(|| {
        let known = signature.interface.sizes();
        let known: Vec<String> = known.map(|(_, named, range)| format!("'{}' of {range}", named.id.short())).collect();
        Error::invalid(if known.is_empty() {
            format!("{origin}: all sizes of the program are fixed; a range such as --dim batch=1..64 gives it others")
        } else {
            format!("{origin}: there is no dimension '{name}'; the program has {}", known.join(", "))
        })
    })?;
    let source = Source::Array(Literal::scalar(size));
    Ok(Given { role: Role::Feed, name: argument.label(), source, origin, required: true })
}

/// Members of a file whose names are arguments of the program.
fn members(role: Role, origin: &str, path: &Path, signature: &Signature) -> Result<Vec<Given>> {
    let mut file = StateFile::open(path).map_err(|e| e.context(origin))?;
    let arguments = signature.arguments().iter().filter(|argument| argument.role == role);
    let known = arguments.clone().filter_map(|argument| Some((argument, file.name_of(argument)?)));
    let known: Vec<(&Argument, String)> = known.collect();
    if known.is_empty() {
        let labels: Vec<String> = arguments.map(Argument::label).collect();
        return Err(Error::invalid(format!(
            "{origin}: no member of the file is a {} of the program: the program has {}, the file has {}",
            role.name(),
            listed(&labels),
            listed(&file.names())
        )));
    }
    known
        .into_iter()
        .map(|(argument, name)| {
            let array = file.get(&name).map_err(|e| e.context(origin))?;
            let array = array.ok_or_else(|| {
                Error::internal(format!("'{name}' is listed in the file, but missing from it"))
            })?;
            let origin = format!("{origin}, member '{name}'");
            Ok(Given { role, name: argument.label(), source: Source::Array(array), origin, required: false })
        })
        .collect()
}

/// Array in a file: its only one, or the one of this name.
fn array(name: &str, path: &Path, signature: &Signature) -> Result<Literal> {
    if !state::is_state(path) {
        return npz::parse_npy(&tf::source::read_bytes(path)?)
            .map_err(|e| e.context(format!("'{}'", path.display())));
    }
    let mut file = StateFile::open(path)?;
    let names = file.names();
    let argument = signature.arguments().iter().find(|argument| argument.is_called(name));
    let named = || argument.and_then(|argument| file.name_of(argument));
    let member = match names.as_slice() {
        [only] => Some(only.clone()),
        _ if names.iter().any(|member| member == name) => Some(name.to_owned()),
        _ => named(),
    };
    let array = match member {
        Some(member) => file.get(&member)?,
        None => None,
    };
    array.ok_or_else(|| {
        Error::invalid(format!("no member is named '{name}': the file has {}", listed(&names)))
    })
}
