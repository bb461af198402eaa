//! Graphs whose feeds have named dimensions with ranges.
//!
//! While a graph is written, a prime stands for the size of each named dimension. No other size is
//! one of these primes, so that an array's sizes at these numbers tell which of its dimensions are
//! named. A step is kept if the graph imports for the smallest and the largest sizes, and then for
//! the ranges.

use super::{Writer, import_graph, largest, ops, results_of, shape_proto};
use crate::{Draw, Outcome};
use tf::proto::{Config, Dim, Dimension, GraphDef, TensorShapeProto};

/// The sizes that stand for named dimensions.
const STAND_INS: [i64; 2] = [11, 13];

/// The named dimensions of a graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    dimensions: Vec<Dimension>,
    /// True if the rows of the first dimension must not depend on each other.
    has_rows: bool,
}

/// A graph with named dimensions.
#[derive(Clone, Debug)]
pub struct NamedGraph {
    /// The graph.
    pub graph: GraphDef,
    /// Its feeds, fetches, and ranges.
    pub config: Config,
    /// Number of steps: ops and layers.
    pub kept: usize,
    /// Why steps were refused that import with fixed sizes.
    pub refused: Vec<String>,
}

impl Names {
    /// Draws one or two names and their ranges.
    fn draw(draw: &mut Draw) -> Self {
        let has_rows = draw.once_in(2);
        let count = if has_rows || draw.once_in(2) { 1 } else { 2 };
        let mut dimensions = Vec::new();
        for name in ["batch", "tokens"].iter().take(count) {
            let (min, max) = match draw.below(8) {
                0 => (0, draw.between(1, 9)),
                1 => (3, 11),
                2 => (1, draw.choose(&[16, 17, 20, 33, 64, 70])),
                3 => (draw.between(2, 9), 9),
                _ => (1, draw.between(2, 12)),
            };
            // A range of one size is a number, but may stand next to another range.
            let min = if count == 2 && draw.once_in(8) { max } else { min.min(max - 1) };
            let size = if draw.once_in(4) { vec![draw.between(min.max(1), max)] } else { Vec::new() };
            dimensions.push(Dimension { name: (*name).to_owned(), min, max, size });
        }
        Self { dimensions, has_rows }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.dimensions.is_empty()
    }

    pub(super) fn dimensions(&self) -> Vec<Dimension> {
        self.dimensions.clone()
    }

    /// Returns the name of a stand-in.
    fn name_of(&self, size: i64) -> Option<&str> {
        let place = STAND_INS.iter().position(|&stand_in| stand_in == size)?;
        self.dimensions.get(place).map(|dimension| dimension.name.as_str())
    }

    /// True if one of the sizes stands for a named dimension.
    pub(super) fn are_in(&self, sizes: &[i64]) -> bool {
        sizes.iter().any(|&size| self.name_of(size).is_some())
    }

    /// True if one of the sizes is or may be 0.
    pub(super) fn may_be_empty(&self, sizes: &[i64]) -> bool {
        let may_be_zero =
            |(&stand_in, dimension): (&i64, &Dimension)| dimension.min == 0 && sizes.contains(&stand_in);
        sizes.contains(&0) || STAND_INS.iter().zip(&self.dimensions).any(may_be_zero)
    }

    /// Returns the size of a new dimension if it is to be named. Leading ones usually are.
    pub(super) fn stand_in(&self, draw: &mut Draw, is_leading: bool) -> Option<i64> {
        if self.is_empty() || draw.once_in(if is_leading { 6 } else { 2 }) {
            return None;
        }
        match (is_leading, self.has_rows) {
            (true, true) => Some(STAND_INS[0]),
            (false, true) => None,
            (true, false) => Some(STAND_INS[draw.below(self.dimensions.len())]),
            (false, false) => draw.once_in(3).then(|| STAND_INS[draw.below(self.dimensions.len())]),
        }
    }

    /// Returns the shape of a feed.
    pub(super) fn shape(&self, sizes: &[i64]) -> TensorShapeProto {
        let mut shape = shape_proto(sizes);
        for dim in &mut shape.dim {
            if let Some(name) = self.name_of(dim.size) {
                *dim = Dim { size: -1, name: name.to_owned() };
            }
        }
        shape
    }

    /// Returns the config for the sizes that stand for named dimensions.
    pub(super) fn with_stand_ins(&self, config: Config) -> Config {
        let sizes: Vec<i64> = STAND_INS.iter().take(self.dimensions.len()).copied().collect();
        with_sizes(config, &sizes)
    }

    /// Returns the largest number of elements of a result. The largest sizes are larger than those
    /// that stand for them.
    pub(super) fn most_elements(&self) -> i64 {
        if self.is_empty() { 20_000 } else { 6000 }
    }
}

/// Returns a config with fixed sizes of all named dimensions.
pub fn with_sizes(config: Config, sizes: &[i64]) -> Config {
    let names = config.dimension.clone();
    let fix = |config: Config, (name, &size): (&Dimension, &i64)| config.with_size(&name.name, size);
    names.iter().zip(sizes).fold(config, fix)
}

/// Returns a random graph of about `size` ops and layers whose feeds have named dimensions.
pub fn named_graph(seed: u64, size: usize) -> Result<NamedGraph, Outcome> {
    let ops = ops();
    let mut draw = Draw::new(seed ^ 0x6e_616d_6573);
    let mut names = Names::draw(&mut draw);
    let given: Vec<Vec<i64>> = names.dimensions.iter_mut().map(|d| std::mem::take(&mut d.size)).collect();
    let mut writer = Writer::new(draw, names);
    writer.first_feeds();
    let mut refused = Vec::new();
    let mut steps = 0;
    for _ in 0..5 * size {
        if steps >= size {
            break;
        }
        let mark = writer.mark();
        let step = if writer.draw.once_in(2) {
            let op = writer.draw.pick(&ops);
            writer.node(&op).map(|outputs| (op.name, outputs))
        } else {
            writer.layer()
        };
        let is_kept = match step {
            Some((name, outputs)) => writer.keeps(name, outputs, &mut refused)?,
            None => false,
        };
        if is_kept {
            steps += 1;
        } else {
            writer.undo(&mark);
        }
    }
    if steps == 0 {
        return Err(Outcome::Refused("none of the drawn steps fit".to_owned()));
    }
    // Sizes get code of their own only where rows are independent.
    let mut config = writer.config();
    let mut with_code = config.clone();
    for (dimension, size) in with_code.dimension.iter_mut().zip(given) {
        dimension.size = size;
    }
    if import_graph(writer.graph(), with_code.clone(), "sizes with code")?.is_ok() {
        config = with_code;
    }
    Ok(NamedGraph { graph: writer.graph(), config, kept: steps, refused })
}

impl Writer {
    /// Adds a feed with each name, in one of the usual forms: rows of features, of tokens, and of
    /// images.
    fn first_feeds(&mut self) {
        let stand_ins: Vec<i64> = STAND_INS.iter().take(self.names.dimensions.len()).copied().collect();
        let features = self.draw.choose(&[1, 3, 4, 5, 8, 16, 17]);
        let sizes = match (self.draw.below(4), &stand_ins[..]) {
            (0, [batch]) => vec![*batch, 6, 5, features],
            (1, [batch]) => vec![*batch, 7, features],
            (2, [batch]) if !self.names.has_rows => vec![5, *batch, features],
            (0, [batch, tokens]) => vec![*tokens, *batch, features],
            (1, [batch, tokens]) => vec![*batch, *tokens],
            (2, [batch, tokens]) => vec![*batch, *tokens, 4, features],
            _ => [&stand_ins[..], &[features]].concat(),
        };
        // A constant has no names.
        while self.feeds.is_empty() {
            self.new_tensor(tf::DataType::Float, &sizes);
        }
    }

    /// Imports the graph for fixed sizes, and then for the ranges. Returns false if the step does
    /// not belong in the graph.
    fn keeps(
        &mut self,
        name: &str,
        outputs: Vec<(String, tf::DataType)>,
        refused: &mut Vec<String>,
    ) -> Result<bool, Outcome> {
        if self.import(name, outputs)?.is_none() {
            return Ok(false);
        }
        let dimensions = self.names.dimensions();
        let low: Vec<i64> = dimensions.iter().map(|dimension| dimension.min).collect();
        let high: Vec<i64> = dimensions.iter().map(|dimension| dimension.max).collect();
        for sizes in [low, high] {
            let config = with_sizes(self.config(), &sizes);
            match import_graph(self.graph(), config, name)? {
                Ok(program) if largest(&results_of(&program.module)) <= 40_000 => {}
                _ => return Ok(false),
            }
        }
        match import_graph(self.graph(), self.config(), name)? {
            Ok(program) => Ok(!self.names.has_rows || !program.sized.is_empty()),
            Err(error) => {
                refused.push(format!("{name}: {}", error.message()));
                Ok(false)
            }
        }
    }
}
