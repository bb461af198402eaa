//! The softmax regression of the classic script: a thousand training steps, then the trained model
//! on unseen images.

use super::config;
use super::program::{self, Session};
use super::tools::{Model, Settings, Tools};
use super::{Check, read_json, values};
use crate::tolerance::Tolerance;
use serde_json::Value;
use shape::Literal;
use std::path::{Path, PathBuf};

/// Number of pixels of an image.
const PIXELS: usize = 784;
/// Tolerance of losses and trained variables, from the oracle's README.
const TRAINING: Tolerance = Tolerance { absolute: 1e-5, relative: 0.0 };
/// Tolerance of the trained model's outputs, which depend on those variables.
const LOGITS: Tolerance = Tolerance { absolute: 1e-4, relative: 0.0 };

/// Returns the check, if the directory exists.
pub(super) fn checks(directory: &Path) -> Result<Vec<Check>, String> {
    if !directory.join("spec.json").is_file() {
        return Ok(Vec::new());
    }
    let directory: PathBuf = directory.to_owned();
    Ok(vec![Check::new("mnist_softmax", move |tools, work| check(tools, &directory, work))])
}

/// Images and labels in the graph's format.
struct Data {
    images: Vec<Vec<f32>>,
    labels: Vec<i64>,
}

impl Data {
    fn read(digits: &mut npz::Archive, set: &str) -> Result<Self, String> {
        let images = values::require(digits, &format!("{set}_images"))?;
        let labels = values::require(digits, &format!("{set}_labels"))?;
        let images = images.to_vec::<u8>().ok_or("expected images of bytes")?;
        let images: Vec<Vec<f32>> = images
            .chunks_exact(PIXELS)
            .map(|image| image.iter().map(|&p| f32::from(p) / 255.0).collect())
            .collect();
        let labels = labels.to_i64s().ok_or("expected integer labels")?;
        if images.len() == labels.len() {
            Ok(Self { images, labels })
        } else {
            Err("the numbers of images and labels differ".into())
        }
    }

    /// Returns the bytes of these rows: images, labels.
    fn rows(&self, rows: &[usize]) -> Result<(Vec<u8>, Vec<u8>), String> {
        let (mut images, mut labels) = (Vec::new(), Vec::new());
        for &row in rows {
            let image = self.images.get(row).ok_or("row index out of range")?;
            images.extend(image.iter().flat_map(|pixel| pixel.to_le_bytes()));
            labels.extend(self.labels[row].to_le_bytes());
        }
        Ok((images, labels))
    }
}

fn check(tools: &Tools, directory: &Path, work: &Path) -> Result<String, String> {
    let spec = read_json(&directory.join("spec.json"))?;
    let name = |key: &str| spec["train"][key].as_str().ok_or("missing name in spec.json");
    let (x, y, w, b, loss) = (name("x")?, name("y")?, name("w")?, name("b")?, name("loss")?);
    let mut digits = values::open(&directory.join("digits.npz"))?;
    let mut expected = values::open(&directory.join("expected.npz"))?;
    let (train, test) = (Data::read(&mut digits, "train")?, Data::read(&mut digits, "test")?);
    let steps = values::require(&mut digits, "batch_rows")?;
    let batch =
        steps.array_shape().sizes().get(1).copied().ok_or("expected a matrix of batch_rows")? as usize;
    let rows: Vec<usize> =
        steps.to_i64s().ok_or("expected integer batch_rows")?.iter().map(|&row| row as usize).collect();

    // Training from zero: every loss and the final variables must match TensorFlow's.
    let mut model = Part::start(tools, directory, "train", work)?;
    let zeros = [vec![0u8; PIXELS * 10 * 4], vec![0u8; 10 * 4]];
    let mut trained = [(w, &zeros[0]), (b, &zeros[1])].map(|(name, zero)| (name.to_owned(), zero.clone()));
    model.new_case(&trained)?;
    let mut losses = Vec::new();
    for step in rows.chunks_exact(batch) {
        let (images, labels) = train.rows(step)?;
        let answer = model.run(&[(x, &images), (y, &labels)])?;
        losses.extend_from_slice(&answer.results[0]);
        for (name, value) in model.config.variables.iter().zip(answer.variables) {
            trained
                .iter_mut()
                .filter(|(known, _)| known == name)
                .for_each(|(_, target)| target.clone_from(&value));
        }
    }
    let remark = model.session.finish()?;
    values::check_whole("losses", &losses, &values::require(&mut expected, loss)?, TRAINING)?;
    for (name, value) in &trained {
        let want = values::require(&mut expected, &format!("final/{name}"))?;
        values::check_whole(&format!("final {name}"), value, &want, TRAINING)?;
    }
    check_trained(tools, directory, work, &spec, &test, &trained, &mut expected)?;
    let last = losses.last_chunk::<4>().map_or(f32::NAN, |bytes| f32::from_le_bytes(*bytes));
    Ok(format!("{} steps, last loss {last}, {remark}", rows.len() / batch))
}

/// Checks the number of correctly classified test images, in three forms of the trained model.
fn check_trained(
    tools: &Tools,
    directory: &Path,
    work: &Path,
    spec: &Value,
    test: &Data,
    trained: &[(String, Vec<u8>); 2],
    expected: &mut npz::Archive,
) -> Result<(), String> {
    let (x, y) = (&spec["train"]["x"], &spec["train"]["y"]);
    let (x, y) = (x.as_str().ok_or("missing x in spec.json")?, y.as_str().ok_or("missing y in spec.json")?);
    let correct = spec["correct"].as_u64().ok_or("missing count in spec.json")?;
    let all: Vec<usize> = (0..test.labels.len()).collect();
    let (images, labels) = test.rows(&all)?;
    let accuracy = Literal::from_elements(&[], &[correct as f32 / all.len() as f32]);
    // No decision is close, so the count is exact. The quotient may be rounded either way.
    let close = Tolerance { absolute: 1e-7, relative: 0.0 };
    for part in ["accuracy", "accuracy_fed"] {
        let mut model = Part::start(tools, directory, part, work)?;
        let mut feeds = vec![(x, &images), (y, &labels)];
        let [(w, w_value), (b, b_value)] = trained;
        let variable_tensors = [format!("{w}:0"), format!("{b}:0")];
        if model.config.variables.is_empty() {
            feeds.extend([(variable_tensors[0].as_str(), w_value), (variable_tensors[1].as_str(), b_value)]);
        }
        model.new_case(trained)?;
        let answer = model.run(&feeds)?;
        values::check_whole(part, &answer.results[0], &accuracy, close)?;
        model.session.finish()?;
    }
    let logits = spec["logits"].as_str().ok_or("missing logits in spec.json")?;
    let want = values::require(expected, &format!("test/{logits}"))?;
    let want = want.to_vec::<f32>().ok_or("expected floating-point logits")?;
    let mut model = Part::start(tools, directory, "logits_1", work)?;
    model.new_case(trained)?;
    for row in all {
        let (image, _) = test.rows(&[row])?;
        let answer = model.run(&[(x, &image)])?;
        let want =
            Literal::from_elements(&[1, 10], want.get(row * 10..row * 10 + 10).ok_or("missing logits")?);
        values::check_whole(&format!("logits of image {row}"), &answer.results[0], &want, LOGITS)?;
    }
    model.session.finish().map(|_| ())
}

/// A running graph of the script.
struct Part {
    config: config::Config,
    session: Session,
}

impl Part {
    fn start(tools: &Tools, directory: &Path, name: &str, work: &Path) -> Result<Self, String> {
        let work = work.join(name);
        std::fs::create_dir(&work).map_err(|e| e.to_string())?;
        let (graph, path) =
            (directory.join(name).join("graph.pb"), directory.join(name).join("config.pbtxt"));
        let config = config::read(&path)?;
        let entry_point = format!("oracle_mnist_{name}");
        let model = Model {
            graph: &graph,
            settings: Settings::Config(&path),
            class: "oracle::Mnist",
            entry_point: &entry_point,
        };
        let session = program::start(tools, &model, &config, &work).map_err(|e| format!("{name}: {e}"))?;
        Ok(Self { config, session })
    }

    /// Sets those variables that the graph has.
    fn new_case(&mut self, values: &[(String, Vec<u8>)]) -> Result<(), String> {
        let value = |name: &String| {
            let value = values.iter().find(|(known, _)| known == name);
            value.map(|(_, value)| value.as_slice()).ok_or_else(|| format!("no value for variable {name}"))
        };
        let variables = self.config.variables.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        self.session.new_case(&variables)
    }

    /// Runs with those feeds that the graph has.
    fn run(&mut self, values: &[(&str, &Vec<u8>)]) -> Result<program::Answer, String> {
        let value = |feed: &config::Feed| {
            let value = values.iter().find(|(known, _)| *known == feed.tensor);
            value
                .map(|(_, value)| value.as_slice())
                .ok_or_else(|| format!("no value for feed {}", feed.tensor))
        };
        let feeds = self.config.feeds.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        self.session.run(&feeds)
    }
}
