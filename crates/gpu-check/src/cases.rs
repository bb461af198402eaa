//! Runs recorded cases and compares their results.

use crate::{names, read};
use device::{Device, Program};
use recorded::case::{Case, read_case};
use recorded::compare::check_results;
use serde_json::{Value, json};
use shape::{ArrayShape, Literal, PrimitiveType};
use std::path::Path;
use support::{Error, Result};

/// Outcome of a case.
pub(crate) struct Outcome {
    pub(crate) name: String,
    pub(crate) error: Option<String>,
}

impl Outcome {
    /// A failure as JSON.
    pub(crate) fn to_json(&self) -> Option<Value> {
        self.error.as_ref().map(|error| json!({ "case": self.name, "error": error }))
    }
}

/// Runs the chosen cases of a folder. Each runs twice, and the results must have the same bits.
pub(crate) fn run(folder: &Path, device: &Device, is_chosen: &dyn Fn(&str) -> bool) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    for name in names(folder, "device")?.into_iter().filter(|name| is_chosen(name)) {
        let result = one(folder, &name, device);
        outcomes.push(Outcome { name, error: result.err().map(|error| error.to_string()) });
    }
    Ok(outcomes)
}

fn one(folder: &Path, name: &str, device: &Device) -> Result<()> {
    let file = |extension: &str| folder.join(format!("{name}.{extension}"));
    let case = read_case(&file("npz"))?;
    let program = Program::new(&read(&file("device"))?, &read(&file("constants"))?)?;
    let interface: Value = serde_json::from_slice(&read(&file("json"))?)
        .map_err(|e| Error::invalid(format!("{name}.json: {e}")))?;
    let first = results(&case, &program, &interface, device)?;
    let metadata = &case.metadata;
    check_results(&first, &case.expected, metadata.tolerance, metadata.values).map_err(Error::invalid)?;
    let second = results(&case, &program, &interface, device)?;
    let same = first.iter().zip(&second).all(|(a, b)| a.bytes() == b.bytes());
    if same { Ok(()) } else { Err(Error::invalid("two runs have different bits")) }
}

/// Runs a case on fresh state.
fn results(case: &Case, program: &Program, interface: &Value, device: &Device) -> Result<Vec<Literal>> {
    let mut loaded = program.load(device)?;
    let mut arguments: Vec<Vec<u8>> = case.arguments.iter().map(|a| a.bytes().to_vec()).collect();
    loaded.run(&mut arguments)?;
    let described = interface["results"].as_array().map(Vec::as_slice).unwrap_or_default();
    let result = |(k, described): (usize, &Value)| {
        let wrong = || Error::invalid(format!("result {k} has no description"));
        let element_type: PrimitiveType =
            described["type"].as_str().and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
        let dimensions = described["dimensions"].as_array().ok_or_else(wrong)?;
        let dimensions: Vec<i64> = dimensions.iter().filter_map(Value::as_i64).collect();
        let whole = ArrayShape::new(element_type, &dimensions);
        let bytes = match loaded.shared_argument(k) {
            Some(argument) => arguments[argument][..whole.byte_size() as usize].to_vec(),
            None => loaded.result(k),
        };
        let mut sizes = whole.sizes();
        for place in described["sizes"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let number = |key: &str| place[key].as_u64().map(|n| n as usize).ok_or_else(wrong);
            sizes[number("dimension")?] = *loaded.sizes().get(number("index")?).ok_or_else(wrong)?;
        }
        let literal = Literal::from_bytes(whole, bytes.into()).ok_or_else(wrong)?;
        literal.corner(&sizes).ok_or_else(wrong)
    };
    described.iter().enumerate().map(result).collect()
}
