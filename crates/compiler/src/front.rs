//! Import of a graph and its config as HLO.

use crate::sizes::{self, Batch};
use crate::{BackOptions, HloProgram, Observer, Point, named_sizes};
use bytes::Bytes;
use hlo::Program;
use std::collections::BTreeMap;
use support::{Error, Result};
use tf::proto::{Config, GraphDef};

/// Upper bounds on the iterations of loops, by their names.
pub type LoopBounds = BTreeMap<String, i64>;

/// Program before its import.
#[derive(Clone, Debug)]
pub enum Source {
    /// A TensorFlow graph.
    Graph {
        /// Graph to compile.
        graph: GraphDef,
        /// Its feeds, fetches, and variables.
        config: Config,
        /// Bounds that the user guarantees for loops without any other bound; see
        /// [`tf::Program::loop_bounds`].
        loop_bounds: LoopBounds,
    },
    /// HLO program.
    Hlo(HloProgram),
}

impl Source {
    /// Returns the source without the program's checks of its own values, for compiled files.
    pub fn without_checks(self) -> Result<Self> {
        match self {
            Self::Hlo(program) => Ok(Self::Hlo(program.without_checks()?)),
            graph @ Self::Graph { .. } => Ok(graph),
        }
    }

    /// Translates the program to HLO, and to modules for a few sizes if its code is made of these.
    pub fn import(self, observer: &mut dyn Observer) -> Result<Program> {
        self.import_for(true, observer)
    }

    /// Same as [`Self::import`], for readers of the HLO: without modules for sizes.
    pub fn import_whole(self, observer: &mut dyn Observer) -> Result<Program> {
        self.import_for(false, observer)
    }

    /// Imports the program for its code with these options. Profiled code and that of GPUs is made
    /// for the largest sizes alone.
    pub fn import_code(self, options: &BackOptions, observer: &mut dyn Observer) -> Result<Program> {
        let reason = match options {
            BackOptions { is_profiled: true, .. } => sizes::PROFILE_HAS_ONE_SIZE,
            _ if !options.devices.is_empty() => sizes::GPU_HAS_ONE_SIZE,
            _ => return self.import(observer),
        };
        if let Self::Graph { config, .. } = &self
            && let Some(dimension) = config.dimension.iter().find(|dimension| !dimension.size.is_empty())
        {
            return Err(Error::invalid(format!(
                "the sizes of dimension '{}' in the config have no effect, remove them: {reason}",
                dimension.name
            )));
        }
        self.import_whole(observer)
    }

    fn import_for(self, has_code: bool, observer: &mut dyn Observer) -> Result<Program> {
        match self {
            Self::Graph { graph, config, loop_bounds } => {
                import_graph(graph, config, loop_bounds, has_code, observer)
            }
            Self::Hlo(HloProgram { mut program, .. }) => {
                named_sizes::state(&mut program.module, &program.interface);
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
    /// Name for messages.
    pub name: &'a str,
    /// Content, binary or text.
    pub content: Bytes,
}

/// Input of a compilation.
#[derive(Clone, Debug)]
pub struct Input {
    /// Program to compile.
    pub source: Source,
    /// Config as the user wrote it, in text form, for the metadata of the compiled program.
    pub config_text: String,
    /// Kinds and contents of the files of program and config. Their hashes are part of the metadata
    /// of the compiled program.
    pub files: Vec<(String, Bytes)>,
}

impl Input {
    /// Creates an input from a graph and a config that do not come from files.
    pub fn new(graph: GraphDef, config: Config) -> Self {
        let config_text = tf::source::config_to_text(&config);
        let source = Source::Graph { graph, config, loop_bounds: LoopBounds::new() };
        Self { source, config_text, files: Vec::new() }
    }

    /// Creates an input from an HLO program and the contents of its file.
    pub fn of_hlo(program: HloProgram, file: Bytes) -> Self {
        Self {
            source: Source::Hlo(program),
            config_text: String::new(),
            files: vec![("module".to_owned(), file)],
        }
    }

    /// Returns the input with bounds for a graph's loops.
    #[must_use]
    pub fn with_loop_bounds(mut self, bounds: LoopBounds) -> Self {
        if let Source::Graph { loop_bounds, .. } = &mut self.source {
            *loop_bounds = bounds;
        }
        self
    }

    /// Parses the contents of two files, binary or text. Names and contents determine the formats.
    pub fn parse(graph: File<'_>, config: File<'_>) -> Result<Self> {
        let parsed = tf::source::parse_config(config.content.clone(), config.name)?;
        let input = Self::new(tf::source::parse_graph_def(graph.content.clone(), graph.name)?, parsed);
        let config_text = text(&config.content).map_or(input.config_text, str::to_owned);
        let files = vec![("config".to_owned(), config.content), ("graph".to_owned(), graph.content)];
        Ok(Self { config_text, files, ..input })
    }

    /// Creates an input from a model, its config, and the contents of the config's file if there is
    /// one.
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

/// Text of a file; `None` for a binary file.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// Imports the part of a graph upstream of the config's fetches.
pub fn import(graph: GraphDef, config: Config, observer: &mut dyn Observer) -> Result<Program> {
    import_bounded(graph, config, LoopBounds::new(), observer)
}

/// Same as [`import()`], with bounds for loops.
pub fn import_bounded(
    graph: GraphDef,
    config: Config,
    loop_bounds: LoopBounds,
    observer: &mut dyn Observer,
) -> Result<Program> {
    import_graph(graph, config, loop_bounds, true, observer)
}

fn import_graph(
    graph: GraphDef,
    config: Config,
    loop_bounds: LoopBounds,
    has_code: bool,
    observer: &mut dyn Observer,
) -> Result<Program> {
    let given = |dimension: &tf::proto::Dimension| has_code && !dimension.size.is_empty();
    if config.dimension.len() != 1 && !config.dimension.iter().any(given) {
        let mut program = tf::prepare(graph, config)?;
        program.loop_bounds = loop_bounds;
        return import_program(program, observer);
    }
    let prepare = |config: Config| {
        let mut program = tf::prepare(graph.clone(), config)?;
        program.loop_bounds.clone_from(&loop_bounds);
        Ok(program)
    };
    // Impossible dimensions are its errors.
    let program = prepare(config.clone())?;
    let with_exact = |mut whole: Program| {
        let given = config.dimension.iter().filter(|dimension| given(dimension));
        let given: Vec<_> = given.map(|dimension| (dimension.name.as_str(), &dimension.size[..])).collect();
        whole.exact = sizes::exact_modules(&whole, &given, &|sizes| {
            let fixed =
                sizes.iter().fold(config.clone(), |config, (name, size)| config.with_size(name, *size));
            import::import_program(&prepare(fixed)?)
        })?;
        Ok(whole)
    };
    let [dimension] = &config.dimension[..] else { return with_exact(import_program(program, observer)?) };
    let at_size = |size: i64, form_rows: i64| {
        let mut program = prepare(config.clone().with_size(&dimension.name, size))?;
        program.form_rows = Some(form_rows);
        import::import_program(&program)
    };
    let whole = if has_code { None } else { Some(import_program(program.clone(), observer)) };
    if let Some(Ok(imported)) = whole {
        return Ok(imported);
    }
    let pieces = sizes::pieces(Batch::of_graph(&program), &dimension.size, &at_size);
    observer.ended("sizes", &|| sizes::to_text(&pieces));
    let is_in_pieces = pieces.is_ok();
    if is_in_pieces && has_code {
        sizes::check_given(&dimension.name, &dimension.size)?;
    }
    let whole = whole.unwrap_or_else(|| import_program(program, observer));
    let (mut imported, is_new) = sizes::combined(whole, pieces)?;
    if is_new {
        named_sizes::state(&mut imported.module, &imported.interface);
        hlo::verify(&imported.module)?;
        observer.ended("import", &|| imported.module.to_text());
        observer.module(Point::Imported, &imported.module);
    }
    if is_in_pieces { Ok(imported) } else { with_exact(imported) }
}

/// Imports a program with named dimensions for its code alone: as modules for a few sizes if it has
/// one name, whose rows are independent, and otherwise as one module. `at_size` returns the program
/// for a size of the only name.
pub fn import_for_code(
    program: &tf::Program,
    at_size: &dyn Fn(i64) -> Result<tf::Program>,
) -> Result<Program> {
    let batch = Batch::of_graph(program);
    let pieces = sizes::pieces(batch, &[], &|size, form_rows| {
        let mut program = at_size(size)?;
        program.form_rows = Some(form_rows);
        import::import_program(&program)
    });
    let imported = match pieces {
        Ok(pieces) => pieces.into_program()?,
        Err(_) => import::import_program(program)?,
    };
    hlo::verify(&imported.module)?;
    Ok(imported)
}

/// Imports a prepared program.
pub(crate) fn import_program(program: tf::Program, observer: &mut dyn Observer) -> Result<Program> {
    observer.ended("prepare", &|| format!("{} nodes", program.graph.nodes.len()));
    let mut imported = import::import_program(&program)?;
    named_sizes::state(&mut imported.module, &imported.interface);
    hlo::verify(&imported.module)?;
    observer.ended("import", &|| imported.module.to_text());
    observer.module(Point::Imported, &imported.module);
    Ok(imported)
}
