//! Data for a session's steps, split into batches: `--batches`, `--mnist`, `--batch-rows`.

use crate::args::session::BatchArgs;
use crate::session::mnist::{Digits, Mnist};
use bytes::Bytes;
use hlo::{Argument, Role};
use runner::Signature;
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use std::path::Path;
use support::{Error, Result};

/// Maximum size in bytes of an array read from an archive.
const MAX_ARRAY: u64 = 16 << 30;

/// Data that is split into batches.
#[derive(Default)]
pub(crate) struct Batches {
    columns: Vec<Column>,
    /// Row numbers of all batches in sequence, and the number of rows per batch.
    order: Option<(Vec<usize>, usize)>,
    /// Test set for the trained variables.
    test: Option<Test>,
}

/// Digits that are not part of the training set.
struct Test {
    columns: Vec<Column>,
    count: usize,
}

/// Data for one feed.
struct Column {
    /// Number of the feed.
    argument: usize,
    content: Content,
    /// Shape of a batch.
    shape: ArrayShape,
}

/// Rows, and their conversion to the values of a feed.
enum Content {
    /// Arrays that are fed as they are.
    Rows(Literal),
    /// Bytes from 0 to 255 that are fed as numbers from 0 to 1.
    Pixels { bytes: Bytes, row: usize },
    /// Bytes that are fed as numbers or in one-hot form.
    Labels(Bytes),
}

impl Batches {
    /// Reads the data that the flags name; empty by default.
    pub(crate) fn read(flags: &BatchArgs, signature: &Signature) -> Result<Self> {
        let mut batches = match (&flags.batches, &flags.mnist) {
            (Some(path), _) => Self {
                columns: archive(path, signature)
                    .map_err(|error| error.context(format!("--batches {}", path.display())))?,
                ..Self::default()
            },
            (None, Some(directory)) => mnist(directory, signature)
                .map_err(|error| error.context(format!("--mnist {}", directory.display())))?,
            (None, None) if flags.batch_rows.is_some() => {
                return Err(Error::invalid(
                    "--batch-rows has no effect without data: add --batches or --mnist",
                ));
            }
            (None, None) => Self::default(),
        };
        if let Some(path) = &flags.batch_rows {
            let order = order(path, &batches.columns);
            batches.order =
                Some(order.map_err(|error| error.context(format!("--batch-rows {}", path.display())))?);
        }
        Ok(batches)
    }

    /// True if there are batches for an argument.
    pub(crate) fn has(&self, argument: usize) -> bool {
        self.columns.iter().any(|column| column.argument == argument)
    }

    /// Number of complete batches.
    pub(crate) fn count(&self) -> Option<u64> {
        let count = match &self.order {
            Some((rows, batch)) => Some(rows.len() / batch),
            None => self.columns.iter().map(|column| column.rows() / column.batch()).min(),
        };
        count.and_then(|count| u64::try_from(count).ok())
    }

    /// Sets the feeds to the batch of a step. The first batch follows the last one.
    pub(crate) fn put(&self, step: u64, values: &mut [Literal]) -> Result<()> {
        let step = (step % self.count().unwrap_or(1).max(1)) as usize;
        for column in &self.columns {
            values[column.argument] = match &self.order {
                Some((rows, batch)) => column.gathered(&rows[step * batch..(step + 1) * batch])?,
                None => column.cut(step * column.batch(), column.batch())?,
            };
        }
        Ok(())
    }

    /// Calls `run` with each batch of the test set and its number of rows. `fits` returns true if a
    /// feed accepts an array of these sizes. If every feed accepts the whole test set, it is one
    /// batch. Otherwise the batches have the feeds' sizes, and an incomplete last batch is omitted.
    pub(crate) fn test(
        &self,
        values: &[Literal],
        fits: &dyn Fn(usize, &[i64]) -> bool,
        run: &mut dyn FnMut(usize, Vec<Literal>) -> Result<()>,
    ) -> Result<()> {
        let Some(test) = &self.test else { return Ok(()) };
        let at_once = test.columns.iter().all(|column| fits(column.argument, &column.sizes(test.count)));
        let batch = if at_once {
            test.count
        } else {
            test.columns.iter().map(Column::batch).min().unwrap_or(test.count)
        };
        for start in (0..test.count).step_by(batch).filter(|start| start + batch <= test.count) {
            let mut values = values.to_vec();
            for column in &test.columns {
                values[column.argument] = column.cut(start, batch)?;
            }
            run(batch, values)?;
        }
        Ok(())
    }

    /// True if there is a test set.
    pub(crate) fn has_test(&self) -> bool {
        self.test.is_some()
    }
}

impl Column {
    fn rows(&self) -> usize {
        match &self.content {
            Content::Rows(rows) => rows.array_shape().size(0) as usize,
            Content::Pixels { bytes, row } => bytes.len() / row,
            Content::Labels(bytes) => bytes.len(),
        }
    }

    /// Number of rows per batch.
    fn batch(&self) -> usize {
        self.shape.size(0) as usize
    }

    /// Sizes of an array of `count` rows.
    fn sizes(&self, count: usize) -> Vec<i64> {
        let mut sizes = self.shape.sizes();
        sizes[0] = count as i64;
        sizes
    }

    /// Returns consecutive rows.
    fn cut(&self, start: usize, count: usize) -> Result<Literal> {
        match &self.content {
            Content::Rows(rows) => {
                let row = row_bytes(rows);
                self.array(count, rows.bytes().slice(start * row..(start + count) * row))
            }
            _ => self.gathered(&(start..start + count).collect::<Vec<_>>()),
        }
    }

    /// Returns the rows with these numbers.
    fn gathered(&self, at: &[usize]) -> Result<Literal> {
        match &self.content {
            Content::Rows(rows) => {
                let row = row_bytes(rows);
                let bytes = at.iter().flat_map(|at| &rows.bytes()[at * row..(at + 1) * row]).copied();
                self.array(at.len(), bytes.collect::<Vec<u8>>().into())
            }
            Content::Pixels { bytes, row } => {
                let images = at.iter().map(|at| &bytes[at * row..(at + 1) * row]);
                if self.shape.element_type == PrimitiveType::F32 {
                    // A table saves 78,400 divisions per batch of 100 images, which can take longer
                    // than the step.
                    let number = |pixel| (f32::from(pixel) / 255.0).to_le_bytes();
                    let numbers: [[u8; 4]; 256] = std::array::from_fn(|pixel| number(pixel as u8));
                    let mut values = Vec::with_capacity(4 * row * at.len());
                    for image in images {
                        image
                            .iter()
                            .for_each(|&pixel| values.extend_from_slice(&numbers[usize::from(pixel)]));
                    }
                    return self.array(at.len(), values.into());
                }
                let shape = ArrayShape::new(self.shape.element_type, &self.sizes(at.len()));
                Ok(Literal::from_floats(shape, images.flatten().map(|&pixel| f64::from(pixel) / 255.0)))
            }
            Content::Labels(bytes) => {
                let shape = ArrayShape::new(self.shape.element_type, &self.sizes(at.len()));
                let number = |value: u8| match shape.element_type {
                    t if t.is_signed_integer() => Scalar::Signed(i64::from(value)),
                    t if t.is_unsigned_integer() => Scalar::Unsigned(u64::from(value)),
                    _ => Scalar::Float(f64::from(value)),
                };
                let labels = at.iter().map(|&at| bytes[at]);
                let scalars: Vec<Scalar> = match shape.rank() {
                    1 => labels.map(number).collect(),
                    _ => {
                        let classes = shape.size(1) as u64;
                        labels
                            .flat_map(|label| {
                                (0..classes).map(move |class| u8::from(class == u64::from(label)))
                            })
                            .map(number)
                            .collect()
                    }
                };
                Ok(Literal::from_scalars(shape, scalars))
            }
        }
    }

    fn array(&self, count: usize, bytes: Bytes) -> Result<Literal> {
        let shape = ArrayShape::new(self.shape.element_type, &self.sizes(count));
        Literal::from_bytes(shape, bytes)
            .ok_or_else(|| Error::internal("the size of a batch differs from the size of its shape"))
    }
}

/// Number of bytes of one row. The caller guarantees that there is at least one row.
fn row_bytes(rows: &Literal) -> usize {
    let shape = rows.array_shape();
    shape.byte_size() as usize / shape.size(0) as usize
}

fn feeds(signature: &Signature) -> impl Iterator<Item = (usize, &Argument)> {
    signature.arguments().iter().enumerate().filter(|(_, argument)| argument.role == Role::Feed)
}

/// Members of an archive whose names are feeds.
fn archive(path: &Path, signature: &Signature) -> Result<Vec<Column>> {
    let mut archive = npz::Archive::open(tf::source::read_bytes(path)?, MAX_ARRAY)?;
    let names: Vec<String> = archive.names().map(str::to_owned).collect();
    let mut columns = Vec::new();
    for name in names {
        let Some((at, argument)) = feeds(signature).find(|(_, feed)| feed.is_called(&name)) else { continue };
        let Some(rows) = archive.get(&name)? else { continue };
        let (whole, batch) = (rows.array_shape().sizes(), argument.shape.sizes());
        let fits = rows.array_shape().element_type == argument.shape.element_type
            && !batch.is_empty()
            && whole.len() == batch.len()
            && whole[1..] == batch[1..]
            && (1..=whole[0]).contains(&batch[0]);
        if !fits {
            return Err(Error::invalid(format!(
                "'{name}' is {}, which cannot be split into batches of {}",
                rows.array_shape(),
                argument.shape
            )));
        }
        columns.push(Column { argument: at, content: Content::Rows(rows), shape: argument.shape.clone() });
    }
    if columns.is_empty() {
        Err(Error::invalid("no member of the archive is a feed of the model"))
    } else {
        Ok(columns)
    }
}

/// Digits for the feed that accepts images and the feed that accepts labels.
fn mnist(directory: &Path, signature: &Signature) -> Result<Batches> {
    let Mnist { train, test } = Mnist::read(directory)?;
    let pixels = train.row;
    let accepts_images = |shape: &ArrayShape| {
        let row = shape.sizes().iter().skip(1).try_fold(1i64, |n, &size| n.checked_mul(size));
        shape.element_type.is_floating_point() && shape.rank() > 1 && row == i64::try_from(pixels).ok()
    };
    let accepts_labels = |shape: &ArrayShape| match shape.rank() {
        1 => shape.element_type.is_integer(),
        2 => !accepts_images(shape) && !shape.element_type.is_complex(),
        _ => false,
    };
    let images = only(signature, &accepts_images, &format!("images of {pixels} pixels (batch, pixels)"))?;
    let labels = only(signature, &accepts_labels, "labels: integers (batch), or one-hot (batch, classes)")?;
    let columns = |digits: &Digits| -> Result<Vec<Column>> {
        let feed = |at: usize, content: Content| {
            let shape = signature.arguments()[at].shape.clone();
            Column { argument: at, content, shape }
        };
        let columns = vec![
            feed(images, Content::Pixels { bytes: digits.images.clone(), row: digits.row }),
            feed(labels, Content::Labels(digits.labels.clone())),
        ];
        let (shape, largest) = (&columns[1].shape, digits.labels.iter().max());
        match largest {
            Some(&label) if shape.rank() == 2 && i64::from(label) >= shape.size(1) => {
                Err(Error::invalid(format!(
                    "label {label} is out of range: feed '{}' of {shape} has {} classes",
                    signature.arguments()[labels].label(),
                    shape.size(1)
                )))
            }
            _ => Ok(columns),
        }
    };
    let (count, batches) = (test.labels.len(), columns(&train)?);
    for column in &batches {
        if !(1..=train.labels.len()).contains(&column.batch()) {
            return Err(Error::invalid(format!(
                "feed '{}' requires {} rows per batch, but the training set has {}",
                signature.arguments()[column.argument].label(),
                column.batch(),
                train.labels.len()
            )));
        }
    }
    if batches[0].batch() != batches[1].batch() {
        return Err(Error::invalid(format!(
            "feed '{}' requires {} images per batch, but feed '{}' {} labels: set the same size with --batch or the config",
            signature.arguments()[images].label(),
            batches[0].batch(),
            signature.arguments()[labels].label(),
            batches[1].batch()
        )));
    }
    Ok(Batches { columns: batches, order: None, test: Some(Test { columns: columns(&test)?, count }) })
}

/// Returns the only feed that accepts the data described by `what`, or an error if there is not
/// exactly one.
fn only(signature: &Signature, accepts: &dyn Fn(&ArrayShape) -> bool, what: &str) -> Result<usize> {
    let matches: Vec<(usize, &Argument)> =
        feeds(signature).filter(|(_, feed)| accepts(&feed.shape)).collect();
    let listed = |feeds: &mut dyn Iterator<Item = &Argument>| {
        feeds.map(|feed| format!("'{}' of {}", feed.label(), feed.shape)).collect::<Vec<_>>().join(", ")
    };
    match matches.as_slice() {
        [(at, _)] => Ok(*at),
        [] => Err(Error::invalid(format!(
            "no feed accepts {what}; the model's feeds are {}",
            listed(&mut feeds(signature).map(|(_, feed)| feed))
        ))),
        several => Err(Error::invalid(format!(
            "several feeds accept {what}: {}; use --batches, whose members name the feeds",
            listed(&mut several.iter().map(|(_, feed)| *feed))
        ))),
    }
}

/// Row numbers of all batches in sequence, and the number of rows per batch.
fn order(path: &Path, columns: &[Column]) -> Result<(Vec<usize>, usize)> {
    let rows = npz::parse_npy(&tf::source::read_bytes(path)?)?;
    let shape = rows.array_shape().clone();
    let count = columns.iter().map(Column::rows).min().unwrap_or(0);
    let batch = columns.iter().map(Column::batch).max().unwrap_or(0);
    let is_fitting = shape.rank() == 2
        && shape.element_type.is_integer()
        && shape.size(0) > 0
        && columns.iter().all(|column| shape.size(1) == column.batch() as i64);
    if !is_fitting {
        return Err(Error::invalid(format!("expected integers of shape [batches,{batch}], got {shape}")));
    }
    let within = |row: i64| usize::try_from(row).ok().filter(|&row| row < count);
    let rows = rows.to_i64s().ok_or_else(|| Error::invalid("a row number is too large"))?;
    let rows = rows.into_iter().map(|row| {
        within(row)
            .ok_or_else(|| Error::invalid(format!("row {row} is out of range: expected 0 to {}", count - 1)))
    });
    Ok((rows.collect::<Result<Vec<_>>>()?, batch))
}
