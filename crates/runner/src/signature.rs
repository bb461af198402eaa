//! What a program takes and makes, by name.

use compiler::Front;
use shape::ArrayShape;
use support::{Error, Result};

/// What an array is to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An input of each run, or an output of it.
    Feed,
    /// A result of each run.
    Fetch,
    /// State from run to run.
    Variable,
}

impl Role {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Feed => "feed",
            Self::Fetch => "fetch",
            Self::Variable => "variable",
        }
    }
}

/// An array that a program takes or makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// The config's name, else that of the node's output.
    pub name: String,
    /// Whatever else it may be called: `node:0` and, for output 0, `node`.
    pub aliases: Vec<String>,
    /// What it is.
    pub role: Role,
    /// Type and sizes.
    pub shape: ArrayShape,
    /// What its integers must stay below to be indices or labels, where the program says it: see
    /// [`index_limits`](crate::index_limits).
    pub limit: Option<i64>,
}

impl Argument {
    /// What it is called in the graph: a node, or another output than the first of one.
    pub fn graph_name(&self) -> &str {
        self.aliases.last().map_or(&self.name, String::as_str)
    }

    /// Whether this is a name of it.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}

/// The arrays that a program takes and makes, in the order of the entry's parameters and results.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// Feeds, then variables.
    pub arguments: Vec<Argument>,
    /// Fetches, then written variables.
    pub results: Vec<Argument>,
}

impl Signature {
    /// The signature of an imported program.
    pub fn of(front: &Front) -> Result<Self> {
        let shapes = front.module().entry_computation().program_shape();
        let array = |shape: &shape::Shape| {
            let array = shape.as_array().cloned();
            array.ok_or_else(|| Error::unsupported(format!("{shape} as an argument or result")))
        };
        let program = &front.program;
        let feeds = program.feeds.iter().map(|f| (Role::Feed, f.name.as_str(), f.id.0.as_str(), f.id.1));
        let variable = |v: usize| {
            let variable = &program.variables[v];
            (Role::Variable, variable.name.as_str(), variable.node_name.as_str(), 0)
        };
        let variables = (0..program.variables.len()).map(variable);
        let arguments = feeds
            .chain(variables)
            .zip(&shapes.parameters)
            .zip(crate::index_limits(front.module()))
            .map(|((id, shape), limit)| Ok(Argument { limit, ..argument(id, array(shape)?) }))
            .collect::<Result<Vec<_>>>()?;

        let fetches = program.fetches.iter().map(|f| (Role::Fetch, f.name.as_str(), f.id.0.as_str(), f.id.1));
        let written = front.import.written_variables.iter().map(|&v| variable(v));
        let elements = shapes.result.as_tuple().unwrap_or(&[]);
        let results = fetches
            .chain(written)
            .zip(elements)
            .map(|(id, shape)| Ok(argument(id, array(shape)?)))
            .collect::<Result<Vec<_>>>()?;
        if arguments.len() != shapes.parameters.len() || results.len() != elements.len() {
            return Err(Error::internal("the entry's parameters and results are not those of the program"));
        }
        Ok(Self { arguments, results })
    }
}

fn argument((role, name, node, output): (Role, &str, &str, i64), shape: ArrayShape) -> Argument {
    let mut aliases = vec![format!("{node}:{output}")];
    if output == 0 {
        aliases.push(node.to_owned());
    }
    let name = match (name, role) {
        ("", Role::Variable) => node.to_owned(),
        ("", _) => aliases[0].clone(),
        (name, _) => name.to_owned(),
    };
    Argument { name, aliases, role, shape, limit: None }
}
