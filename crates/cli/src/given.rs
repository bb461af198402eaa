//! What is given for a model's feeds and variables: flags and files to arrays.

use crate::in_process::Initial;
use clap::Args;
use npz::Archive;
use runner::{Argument, Fill, Given, Random, Role, Signature, Source};
use std::collections::BTreeMap;
use std::path::Path;
use support::{Error, Result};

/// The largest array that is read, in bytes.
const MAX_ARRAY: u64 = 16 << 30;

/// Inputs of a run.
#[derive(Args, Clone, Debug)]
pub(crate) struct GivenArgs {
    /// A feed: NAME=FILE.npy, NAME=FILE.npz, NAME=random, NAME=zeros or NAME=ones; or @FILE.npz, whose members are the
    /// feeds of their names. May be given several times
    #[arg(long, value_name = "NAME=FILE|@FILE.npz")]
    pub(crate) feed: Vec<String>,
    /// A variable before the first run, like a feed [default: zeros]
    #[arg(long, value_name = "NAME=FILE|@FILE.npz")]
    pub(crate) var: Vec<String>,
    /// Fill what is not given with random numbers, the same ones for the same seed
    #[arg(long, value_name = "SEED")]
    pub(crate) random: Option<u64>,
}

impl GivenArgs {
    /// The arguments of a program, feeds then variables; `missing` is for those that are not given.
    pub(crate) fn arrays(
        &self,
        signature: &Signature,
        initial: &Initial,
        missing: Option<Fill>,
    ) -> Result<Arrays> {
        let mut given = Vec::new();
        for (role, flag, words) in [(Role::Feed, "--feed", &self.feed), (Role::Variable, "--var", &self.var)]
        {
            for word in words {
                given.extend(parse(role, flag, word, signature)?);
            }
        }
        given.extend(defaults(signature, initial, &given));
        let missing = self.random.map(|_| Fill::Random).or(missing);
        runner::assign(signature, &given, missing, &Random::new(self.random.unwrap_or(0)))
    }
}

/// The arrays of a program, in its order.
pub(crate) type Arrays = Vec<shape::Literal>;

/// The values that a model comes with, of variables for which nothing is given.
fn defaults(signature: &Signature, initial: &Initial, given: &[Given]) -> Vec<Given> {
    let variables = signature.arguments.iter().filter(|argument| argument.role == Role::Variable);
    let left = variables.filter(|argument| {
        !given.iter().any(|given| given.role == Role::Variable && argument.is_called(&given.name))
    });
    let value = |argument: &Argument| {
        let value = initial.iter().find(|(node, _)| argument.is_called(node));
        value.map(|(node, value)| Given {
            role: Role::Variable,
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
        path => Source::Array(array(name, Path::new(path)).map_err(|e| e.context(&origin))?),
    };
    Ok(vec![Given { role, name: name.to_owned(), source, origin, required: true }])
}

/// The members of an archive that the program has a name for.
fn members(role: Role, origin: &str, path: &Path, signature: &Signature) -> Result<Vec<Given>> {
    let mut archive = open(path).map_err(|e| e.context(origin))?;
    let names: Vec<String> = archive.names().map(str::to_owned).collect();
    let wanted = signature.arguments.iter().filter(|argument| argument.role == role);
    let known: Vec<&String> =
        names.iter().filter(|name| wanted.clone().any(|argument| argument.is_called(name))).collect();
    if known.is_empty() {
        let wanted: Vec<&str> = wanted.map(|argument| argument.name.as_str()).collect();
        return Err(Error::invalid(format!(
            "{origin}: no member is a {} of the program: it has {}, the archive has {}",
            role.name(),
            listed(&wanted),
            listed(&names)
        )));
    }
    known
        .into_iter()
        .map(|name| {
            let array = archive.require(name).map_err(|e| e.context(origin))?;
            let origin = format!("{origin}, member '{name}'");
            Ok(Given { role, name: name.clone(), source: Source::Array(array), origin, required: false })
        })
        .collect()
}

fn listed<T: AsRef<str>>(names: &[T]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.iter().map(|name| format!("'{}'", name.as_ref())).collect::<Vec<_>>().join(", "),
    }
}

/// The array of a file: of an archive the member of this name, or the only one.
fn array(name: &str, path: &Path) -> Result<shape::Literal> {
    if path.extension().is_some_and(|extension| extension == "npz") {
        let mut archive = open(path)?;
        let names: Vec<String> = archive.names().map(str::to_owned).collect();
        return match names.as_slice() {
            [only] => archive.require(only),
            _ if names.iter().any(|member| member == name) => archive.require(name),
            _ => Err(Error::invalid(format!("no member is called '{name}': it has {}", listed(&names)))),
        };
    }
    npz::parse_npy(&tf::source::read_bytes(path)?).map_err(|e| e.context(format!("'{}'", path.display())))
}

fn open(path: &Path) -> Result<Archive> {
    Archive::open(tf::source::read_bytes(path)?, MAX_ARRAY)
        .map_err(|e| e.context(format!("'{}'", path.display())))
}

/// An archive of arrays by name; names that come again get a suffix.
pub(crate) fn archive(arrays: impl IntoIterator<Item = (String, shape::Literal)>) -> Result<Vec<u8>> {
    let mut named = BTreeMap::new();
    for (name, array) in arrays {
        let mut unique = name.clone();
        let mut number = 1;
        while named.contains_key(&unique) {
            number += 1;
            unique = format!("{name}_{number}");
        }
        named.insert(unique, array);
    }
    npz::write(&named)
}
