//! The arrays for a model's feeds and variables, from flags and files.

use crate::args::feeds::FeedArgs;
use crate::files::state::{self, StateFile, listed};
use crate::program::in_process::Initial;
use hlo::{Argument, Role};
use runner::{Fill, Given, Inputs, Random, Signature, Source};
use std::collections::BTreeSet;
use std::path::Path;
use support::{Error, Result};

/// The arguments of a program, and what to tell the user about them.
pub(crate) struct Arguments {
    pub(crate) inputs: Inputs,
    pub(crate) notes: Vec<String>,
}

impl Arguments {
    /// The arguments of a program, feeds then variables; `missing` is for those that are not given.
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

fn variables(signature: &Signature) -> impl Iterator<Item = &Argument> + Clone {
    signature.arguments().iter().filter(|argument| argument.role == Role::Variable)
}

fn is_given(argument: &Argument, given: &[Given]) -> bool {
    given.iter().any(|given| given.role == argument.role && argument.is_called(&given.name))
}

/// The variables of a file, for which nothing else is given; notes say what is missing and what is left over.
fn restore(
    path: &Path,
    signature: &Signature,
    given: &mut Vec<Given>,
    notes: &mut Vec<String>,
) -> Result<()> {
    let origin = format!("--variables {}", path.display());
    let mut file = StateFile::open(path).map_err(|e| e.context(&origin))?;
    let (mut taken, mut missing) = (BTreeSet::new(), Vec::new());
    for argument in variables(signature) {
        let name = file.name_of(argument);
        if is_given(argument, given) {
            taken.extend(name);
            continue;
        }
        let Some(name) = name else {
            missing.push(argument.id.short());
            continue;
        };
        let array = file.get(&name).map_err(|e| e.context(&origin))?;
        let array = array.ok_or_else(|| Error::internal(format!("'{name}' is listed, but not there")))?;
        given.push(Given {
            role: Role::Variable,
            name: argument.label(),
            source: Source::Array(array),
            origin: format!("{origin}, '{name}'"),
            required: true,
        });
        taken.insert(name);
    }
    let left: Vec<String> = file.names().into_iter().filter(|name| !taken.contains(name)).collect();
    if taken.is_empty() {
        return Err(Error::invalid(format!(
            "{origin}: none of its names is a variable of the program: it has {}, the program has {}",
            listed(&left),
            listed(&missing)
        )));
    }
    if !missing.is_empty() {
        notes.push(format!("{origin}: it has no value for {}", listed(&missing)));
    }
    if !left.is_empty() {
        notes.push(format!("{origin}: no variable takes {}", listed(&left)));
    }
    Ok(())
}

/// The values that a model comes with, of variables for which nothing is given, and of the arguments of a snapshot.
fn defaults(signature: &Signature, initial: &Initial, given: &[Given]) -> Vec<Given> {
    let left = signature.arguments().iter().filter(|argument| !is_given(argument, given));
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
    left.filter_map(value).collect()
}

/// What one flag gives.
fn parse(role: Role, flag: &str, word: &str, signature: &Signature) -> Result<Vec<Given>> {
    let origin = format!("{flag} {word}");
    if let Some(path) = word.strip_prefix('@') {
        return members(role, &origin, Path::new(path), signature);
    }
    let (name, source) = word.split_once('=').ok_or_else(|| {
        Error::invalid(format!("{origin}: NAME=FILE.npy or @FILE.npz is wanted, NAME= is missing"))
    })?;
    let source = match source {
        "random" => Source::Fill(Fill::Random),
        "zeros" => Source::Fill(Fill::Zeros),
        "ones" => Source::Fill(Fill::Ones),
        path => Source::Array(array(name, Path::new(path), signature).map_err(|e| e.context(&origin))?),
    };
    Ok(vec![Given { role, name: name.to_owned(), source, origin, required: true }])
}

/// The members of a file that the program has a name for.
fn members(role: Role, origin: &str, path: &Path, signature: &Signature) -> Result<Vec<Given>> {
    let mut file = StateFile::open(path).map_err(|e| e.context(origin))?;
    let wanted = signature.arguments().iter().filter(|argument| argument.role == role);
    let known = wanted.clone().filter_map(|argument| Some((argument, file.name_of(argument)?)));
    let known: Vec<(&Argument, String)> = known.collect();
    if known.is_empty() {
        let wanted: Vec<String> = wanted.map(Argument::label).collect();
        return Err(Error::invalid(format!(
            "{origin}: no member is a {} of the program: it has {}, the archive has {}",
            role.name(),
            listed(&wanted),
            listed(&file.names())
        )));
    }
    known
        .into_iter()
        .map(|(argument, name)| {
            let array = file.get(&name).map_err(|e| e.context(origin))?;
            let array = array.ok_or_else(|| Error::internal(format!("'{name}' is listed, but not there")))?;
            let origin = format!("{origin}, member '{name}'");
            Ok(Given { role, name: argument.label(), source: Source::Array(array), origin, required: false })
        })
        .collect()
}

/// The array of a file: of several the one of this name, or the only one.
fn array(name: &str, path: &Path, signature: &Signature) -> Result<shape::Literal> {
    if !state::is_state(path) {
        return npz::parse_npy(&tf::source::read_bytes(path)?)
            .map_err(|e| e.context(format!("'{}'", path.display())));
    }
    let mut file = StateFile::open(path)?;
    let names = file.names();
    let argument = signature.arguments().iter().find(|argument| argument.is_called(name));
    let named = || argument.and_then(|argument| file.name_of(argument));
    let found = match names.as_slice() {
        [only] => Some(only.clone()),
        _ if names.iter().any(|member| member == name) => Some(name.to_owned()),
        _ => named(),
    };
    let array = match found {
        Some(found) => file.get(&found)?,
        None => None,
    };
    array.ok_or_else(|| Error::invalid(format!("no member is called '{name}': it has {}", listed(&names))))
}
