//! The model's configuration (`config.pbtxt`, as JSON): completed from the program, and checked
//! against it.

use crate::signature::{Rows, Signature, Size, Tensor};
use serde_json::{Map, Value, json};
use support::{Error, Result};

/// Settings of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The rows that requests share, if the server may send several at once.
    pub rows: Option<Rows>,
    /// Threads of each instance.
    pub threads: usize,
    /// Number of the GPU, if it is not that of the instance.
    pub device: Option<usize>,
    /// Outputs whose values the server keeps for the next request of a sequence: the output and the
    /// name of the state.
    pub states: Vec<(usize, String)>,
    /// Parameters that nothing reads.
    pub unknown: Vec<String>,
}

/// Returns the name of the library, if the configuration states one.
pub fn library_name(config: &Value) -> Option<&str> {
    config["default_model_filename"].as_str().filter(|name| !name.is_empty())
}

/// Adds what a configuration leaves open: inputs, outputs, and the largest batch. Returns true if
/// it changed.
pub fn complete(config: &mut Value, signature: &Signature) -> bool {
    let before = config.clone();
    let has_inputs = entries(config, "input").next().is_some();
    let mut largest = integer(&config["max_batch_size"]).unwrap_or(0);
    if largest == 0 && !has_inputs && signature.is_proven && signature.rows.is_some_and(|rows| rows.low <= 1)
    {
        largest = signature.rows.map_or(0, |rows| rows.high);
        config["max_batch_size"] = json!(largest);
    }
    let has_scheduler = ["sequence_batching", "dynamic_batching", "ensemble_scheduling"]
        .iter()
        .any(|key| !config[*key].is_null());
    if largest > 1 && !has_scheduler {
        config["dynamic_batching"] = json!({});
    }
    let states = sequence_names(config);
    let inputs: Vec<&Tensor> =
        signature.inputs.iter().filter(|input| !states.inputs.contains(&input.name)).collect();
    // A state is an output of the model only if the configuration says so.
    let outputs: Vec<&Tensor> =
        signature.outputs.iter().filter(|output| !states.outputs.contains(&output.name)).collect();
    complete_tensors(config, "input", &inputs, largest > 0);
    complete_tensors(config, "output", &outputs, largest > 0);
    *config != before
}

/// Adds all tensors to an empty list; adds types and sizes that a list leaves open.
fn complete_tensors(config: &mut Value, key: &str, tensors: &[&Tensor], is_batched: bool) {
    if entries(config, key).next().is_none() {
        config[key] = tensors.iter().map(|tensor| described(tensor, is_batched)).collect();
        return;
    }
    for entry in config[key].as_array_mut().into_iter().flatten() {
        let Some(tensor) = tensors.iter().find(|tensor| entry["name"] == tensor.name.as_str()) else {
            continue;
        };
        let Value::Object(known) = described(tensor, is_batched) else { continue };
        if entry["data_type"].as_str().is_none_or(|name| name == "TYPE_INVALID") {
            entry["data_type"] = known["data_type"].clone();
        }
        if entry["dims"].as_array().is_none_or(Vec::is_empty) {
            for key in ["dims", "reshape"] {
                if let Some(value) = known.get(key) {
                    entry[key] = value.clone();
                }
            }
        }
    }
}

/// Describes a tensor. The server refuses shapes without dimensions: a scalar has one, of size 1,
/// which the server removes in batches only.
fn described(tensor: &Tensor, is_batched: bool) -> Value {
    let sizes: Vec<i64> =
        tensor.sizes.iter().skip(usize::from(is_batched)).map(|size| size.for_config()).collect();
    let mut entry = Map::new();
    entry.insert("name".into(), json!(tensor.name));
    entry.insert("data_type".into(), json!(tensor.type_name()));
    if sizes.is_empty() {
        if is_batched {
            entry.insert("reshape".into(), json!({ "shape": [] }));
        }
        entry.insert("dims".into(), json!([1]));
    } else {
        entry.insert("dims".into(), json!(sizes));
    }
    Value::Object(entry)
}

/// Checks a complete configuration against the program.
pub fn check(config: &Value, signature: &Signature) -> Result<Settings> {
    let rows = check_batch(config, signature)?;
    let states = sequence_names(config);
    let inputs: Vec<&Tensor> = signature.inputs.iter().collect();
    let outputs: Vec<&Tensor> = signature.outputs.iter().collect();
    check_tensors(config, "input", "feed", &inputs, rows.is_some())?;
    check_tensors(config, "output", "fetch", &outputs, rows.is_some())?;
    let listed: Vec<&str> = entries(config, "input").filter_map(|entry| entry["name"].as_str()).collect();
    for input in &inputs {
        if !listed.contains(&&*input.name) && !states.inputs.contains(&input.name) {
            return Err(Error::invalid(format!(
                "config.pbtxt has no input '{}', which the program needs; the feeds are {}; omit the inputs to have them filled in",
                input.name,
                names(&inputs)
            )));
        }
    }
    let output = |name: &String| {
        let known = signature.outputs.iter().position(|output| output.name == *name);
        let known = known.ok_or_else(|| {
            Error::invalid(format!(
                "sequence_batching.state: output_name '{name}' is no fetch of the program; these are {}",
                names(&outputs)
            ))
        })?;
        Ok((known, name.clone()))
    };
    let states = states.outputs.iter().map(output).collect::<Result<Vec<_>>>()?;
    let parameter = |name: &str| -> Result<Option<usize>> {
        let Some(text) = config["parameters"][name]["string_value"].as_str() else { return Ok(None) };
        let number = text
            .trim()
            .parse()
            .map_err(|_| Error::invalid(format!("parameter '{name}': expected a number, got '{text}'")))?;
        Ok(Some(number))
    };
    let threads = parameter("threads")?.unwrap_or(1);
    if threads == 0 || threads > 1024 {
        return Err(Error::invalid(format!("parameter 'threads': expected 1 to 1024, got {threads}")));
    }
    let parameters = config["parameters"].as_object().into_iter().flat_map(|all| all.keys().cloned());
    let unknown = parameters.filter(|name| !["threads", "device"].contains(&&**name)).collect();
    Ok(Settings { rows, threads, device: parameter("device")?, states, unknown })
}

/// Returns the rows that requests share, as `max_batch_size` permits.
fn check_batch(config: &Value, signature: &Signature) -> Result<Option<Rows>> {
    let largest = integer(&config["max_batch_size"]).unwrap_or(0);
    if largest <= 0 {
        return Ok(None);
    }
    match signature.rows {
        Some(rows) if largest <= rows.high => Ok(Some(rows)),
        Some(rows) => Err(Error::invalid(format!(
            "max_batch_size is {largest}, but the program takes at most {} rows; reduce it, or build with --dim batch=1..{largest}",
            rows.high
        ))),
        None => Err(Error::invalid(format!(
            "max_batch_size is {largest}, but the feeds and fetches do not share a leading dimension; set it to 0 and \
             give the sizes with all dimensions, or build with --dim batch=1..{largest}"
        ))),
    }
}

/// Checks each tensor of a list against the program's tensor of the same name.
fn check_tensors(config: &Value, key: &str, kind: &str, tensors: &[&Tensor], is_batched: bool) -> Result<()> {
    for entry in entries(config, key) {
        let name = entry["name"].as_str().unwrap_or_default();
        let wrong = |why: String| Err(Error::invalid(format!("config.pbtxt, {key} '{name}': {why}")));
        let Some(tensor) = tensors.iter().find(|tensor| tensor.name == name) else {
            return wrong(format!("the program has no {kind} of this name; it has {}", names(tensors)));
        };
        let data_type = entry["data_type"].as_str().unwrap_or("TYPE_INVALID");
        if data_type != tensor.type_name() {
            return wrong(format!("data_type is {data_type}, but the program's is {}", tensor.type_name()));
        }
        for flag in ["optional", "is_shape_tensor"] {
            if entry[flag] == true {
                return wrong(format!("{flag} is true, but the program needs the tensor; remove the line"));
            }
        }
        let reshaped = &entry["reshape"];
        let sizes = sizes(if reshaped.is_object() { &reshaped["shape"] } else { &entry["dims"] });
        let own = match tensor.sizes.as_slice() {
            [] => &[Size::Fixed(1)],
            sizes => &sizes[usize::from(is_batched)..],
        };
        let fits = sizes.len() == own.len()
            && sizes.iter().zip(own).all(|(&size, own)| match size {
                -1 => own.for_config() == -1,
                size => own.permits(size),
            });
        if !fits {
            let expected: Vec<i64> = own.iter().map(|size| size.for_config()).collect();
            let batch = if is_batched { " after the batch" } else { "" };
            return wrong(format!("the sizes are {sizes:?}, but the program's are {expected:?}{batch}"));
        }
    }
    Ok(())
}

/// Names of tensors in the configuration of a sequence.
#[derive(Default)]
struct SequenceNames {
    /// States and control signals, which requests do not have.
    inputs: Vec<String>,
    /// States that are written.
    outputs: Vec<String>,
}

fn sequence_names(config: &Value) -> SequenceNames {
    let batching = &config["sequence_batching"];
    let name = |entry: &Value, key: &str| entry[key].as_str().map(str::to_owned);
    let states = || entries(batching, "state");
    let controls = entries(batching, "control_input").filter_map(|entry| name(entry, "name"));
    SequenceNames {
        inputs: states().filter_map(|entry| name(entry, "input_name")).chain(controls).collect(),
        outputs: states().filter_map(|entry| name(entry, "output_name")).collect(),
    }
}

fn entries<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value[key].as_array().map_or(&[][..], Vec::as_slice).iter()
}

fn names(tensors: &[&Tensor]) -> String {
    let names: Vec<String> = tensors.iter().map(|tensor| format!("'{}'", tensor.name)).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn sizes(value: &Value) -> Vec<i64> {
    value.as_array().map_or(&[][..], Vec::as_slice).iter().filter_map(integer).collect()
}

/// Returns an integer, which JSON of protocol buffers may write as text.
fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests;
