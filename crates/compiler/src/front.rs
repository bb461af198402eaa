//! From graph and config to HLO.

use crate::{HloProgram, Observer, Point};
use bytes::Bytes;
use hlo::Program;
use std::collections::BTreeMap;
use support::Result;
use tf::proto::{Config, GraphDef};

/// The most iterations of loops, by their names.
pub type LoopBounds = BTreeMap<String, i64>;

/// A program as it comes.
#[derive(Clone, Debug)]
pub enum Source {
    /// A TensorFlow graph.
    Graph {
        /// The graph.
        graph: GraphDef,
        /// Its feeds, fetches and variables.
        config: Config,
        /// What the user promises of loops that nothing else bounds; see [`tf::Program::loop_bounds`].
        loop_bounds: LoopBounds,
    },
    /// HLO.
    Hlo(HloProgram),
}

impl Source {
    /// The same without the program's statements about its own values: for a file that is given away.
    pub fn without_checks(self) -> Result<Self> {
        match self {
            Self::Hlo(program) => Ok(Self::Hlo(program.without_checks()?)),
            graph @ Self::Graph { .. } => Ok(graph),
        }
    }

    /// Translates the program to HLO.
    pub fn import(self, observer: &mut dyn Observer) -> Result<Program> {
        match self {
            Self::Graph { graph, config, loop_bounds } => {
                import_bounded(graph, config, loop_bounds, observer)
            }
            Self::Hlo(HloProgram { program, .. }) => {
                observer.ended("import", &|| program.module.to_text());
                observer.module(Point::Imported, &program.module);
                Ok(program)
            }
        }
    }
}

/// A file that was read.
#[derive(Clone, Debug)]
pub struct File<'a> {
    /// Its name, for messages.
    pub name: &'a str,
    /// Its content, binary or text.
    pub content: Bytes,
}

/// What to compile.
#[derive(Clone, Debug)]
pub struct Input {
    /// The program.
    pub source: Source,
    /// The config as the user wrote it, in text form; it is told with the compiled program.
    pub config_text: String,
    /// The files that both were read from: what each is, and its contents, whose hashes are told with the compiled
    /// program.
    pub files: Vec<(String, Bytes)>,
}

impl Input {
    /// A graph and a config that come from no file.
    pub fn new(graph: GraphDef, config: Config) -> Self {
        let config_text = tf::source::config_to_text(&config);
        let source = Source::Graph { graph, config, loop_bounds: LoopBounds::new() };
        Self { source, config_text, files: Vec::new() }
    }

    /// A program of HLO and the file that it was read from.
    pub fn of_hlo(program: HloProgram, file: Bytes) -> Self {
        Self {
            source: Source::Hlo(program),
            config_text: String::new(),
            files: vec![("module".to_owned(), file)],
        }
    }

    /// The same with what is promised of a graph's loops.
    #[must_use]
    pub fn with_loop_bounds(mut self, bounds: LoopBounds) -> Self {
        if let Source::Graph { loop_bounds, .. } = &mut self.source {
            *loop_bounds = bounds;
        }
        self
    }

    /// The contents of two files, binary or text, told by name and content.
    pub fn parse(graph: File<'_>, config: File<'_>) -> Result<Self> {
        let parsed = tf::source::parse_config(config.content.clone(), config.name)?;
        let input = Self::new(tf::source::parse_graph_def(graph.content.clone(), graph.name)?, parsed);
        let config_text = text(&config.content).map_or(input.config_text, str::to_owned);
        let files = vec![("config".to_owned(), config.content), ("graph".to_owned(), graph.content)];
        Ok(Self { config_text, files, ..input })
    }

    /// A model that is read, its config, and the file of the config if there is one.
    pub fn of_model(model: tf::model::Model, config: Config, file: Option<Bytes>) -> Self {
        let mut input = Self::new(model.graph, config);
        if let Some(text) = file.as_deref().and_then(text) {
            text.clone_into(&mut input.config_text);
        }
        let config = file.unwrap_or_else(|| input.config_text.clone().into_bytes().into());
        input.files.push(("config".to_owned(), config));
        input.files.extend(model.files);
        input
    }
}

/// The text of a file, if it is one of text.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// Imports what the fetches of a config need of a graph.
pub fn import(graph: GraphDef, config: Config, observer: &mut dyn Observer) -> Result<Program> {
    import_bounded(graph, config, LoopBounds::new(), observer)
}

/// The same with what is promised of loops.
pub fn import_bounded(
    graph: GraphDef,
    config: Config,
    loop_bounds: LoopBounds,
    observer: &mut dyn Observer,
) -> Result<Program> {
    let mut program = tf::prepare(graph, config)?;
    program.loop_bounds = loop_bounds;
    import_program(program, observer)
}

/// Imports a program that is prepared.
pub(crate) fn import_program(program: tf::Program, observer: &mut dyn Observer) -> Result<Program> {
    observer.ended("prepare", &|| format!("{} nodes", program.graph.nodes.len()));
    let imported = import::import_program(&program)?;
    hlo::verify(&imported.module)?;
    observer.ended("import", &|| imported.module.to_text());
    observer.module(Point::Imported, &imported.module);
    Ok(imported)
}
