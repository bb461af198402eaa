//! Recurrent layers: RNN, GRU, and LSTM, of one or two directions.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule_many};
use crate::ops::linalg::products::dot;
use crate::ops::onnx::operands::{flag, optional, required, required_place};
use crate::ops::onnx::quantization::{bytes_of, real_product};
use crate::ops::onnx::recurrent_functions::{activation, clipped, defaults};
use crate::values::value::Value;
use bounded::list;
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::{Code, Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule_many("OnnxGRU", |cx| layer_of_any_size(cx, Cell::Gru, false)),
    rule_many("OnnxLSTM", |cx| layer_of_any_size(cx, Cell::Lstm, false)),
    rule_many("OnnxMsDynamicQuantizeLSTM", |cx| layer_of_any_size(cx, Cell::Lstm, true)),
    rule_many("OnnxRNN", |cx| layer_of_any_size(cx, Cell::Rnn, false)),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Rnn,
    Gru,
    Lstm,
}

impl Cell {
    /// Number of gates, and of activations.
    fn gates(self) -> usize {
        match self {
            Self::Rnn => 1,
            Self::Gru => 3,
            Self::Lstm => 4,
        }
    }

    fn activations(self) -> &'static [&'static str] {
        match self {
            Self::Rnn => &["Tanh"],
            Self::Gru => &["Sigmoid", "Tanh"],
            Self::Lstm => &["Sigmoid", "Tanh", "Tanh"],
        }
    }
}

/// Options of a step, with the names and parameters of its activations.
#[derive(Clone)]
struct Options {
    cell: Cell,
    activations: Vec<(String, [f64; 2])>,
    clip: Option<f64>,
    hidden: i64,
    /// The reset gate applies after the product, with a bias of its own.
    resets_after: bool,
    /// The forget gate is 1 less the input gate.
    couples: bool,
}

impl Options {
    fn apply(&self, cx: &mut NodeContext<'_, '_>, k: usize, x: InstructionId) -> Result<InstructionId> {
        let x = match self.clip {
            Some(clip) => clipped(cx, x, -clip, clip)?,
            None => x,
        };
        let (name, parameters) = &self.activations[k];
        activation(cx, name, *parameters, x)
    }
}

/// Arrays of one direction.
#[derive(Clone, Copy)]
struct Weights {
    /// Products of the inputs, with the biases of the inputs: (time, batch, gates * hidden).
    inputs: InstructionId,
    /// (gates * hidden, hidden), or (hidden, gates * hidden) as integers.
    recurrent: InstructionId,
    /// Scale and zero point of integers: one for all, or one for each of gates * hidden.
    scales: Option<[InstructionId; 2]>,
    /// (gates * hidden), or none.
    bias: Option<InstructionId>,
    /// (3 * hidden), or none.
    peepholes: Option<InstructionId>,
    /// Length of each sequence.
    lengths: Option<InstructionId>,
}

impl Weights {
    fn pack(&self) -> Vec<InstructionId> {
        let optional = [self.bias, self.peepholes, self.lengths];
        let scales = self.scales.into_iter().flatten();
        [self.inputs, self.recurrent]
            .into_iter()
            .chain(scales)
            .chain(optional.into_iter().flatten())
            .collect()
    }

    /// The same arrays inside of a loop.
    fn unpack(&self, arrays: &[InstructionId]) -> Self {
        let mut rest = arrays.iter().copied();
        let mut next = || rest.next().expect("as many arrays as were packed");
        Self {
            inputs: next(),
            recurrent: next(),
            scales: self.scales.map(|_| [next(), next()]),
            bias: self.bias.map(|_| next()),
            peepholes: self.peepholes.map(|_| next()),
            lengths: self.lengths.map(|_| next()),
        }
    }
}

/// Inputs: x (time, batch, features), weights (directions, gates * hidden, features), recurrent
/// weights (directions, gates * hidden, hidden), bias (directions, 2 * gates * hidden), lengths,
/// the first state, and for LSTM the first cell and peepholes. Weights that are integers have their
/// last two dimensions exchanged, and more inputs: scales (directions) or (directions, gates *
/// hidden), and zero points, first of the weights, then of the recurrent weights. What they are
/// multiplied with is then quantized by its own range, the state in each step. `steps` is the
/// number of times if there may be fewer, and `samples` that of the batch, if further ones must not
/// have a state.
fn layer(
    cx: &mut NodeContext<'_, '_>,
    cell: Cell,
    is_quantized: bool,
    [steps, samples]: [Option<InstructionId>; 2],
) -> Result<Vec<InstructionId>> {
    let (mut x, w, r) = (required(cx, 0)?, required(cx, 1)?, required(cx, 2)?);
    let is_batch_first = flag(cx, "layout", false)?;
    cx.check(cx.rank(x) == 3, || "x: expected three dimensions".to_owned())?;
    if is_batch_first {
        x = cx.transpose(x, &[1, 0, 2])?;
    }
    let (sizes, r_sizes) = (cx.sizes(x), cx.sizes(r));
    let [time, batch, features] = [sizes[0], sizes[1], sizes[2]];
    let direction = cx.text_or("direction", "forward")?;
    let directions = match direction {
        "forward" | "reverse" => 1,
        "bidirectional" => 2,
        other => return Err(cx.invalid(format!("direction: '{other}' does not exist"))),
    };
    let hidden = r_sizes.get(if is_quantized { 1 } else { 2 }).copied().unwrap_or(0);
    let gates = cell.gates() as i64;
    let rows = gates.saturating_mul(hidden);
    let fits = if is_quantized {
        r_sizes == [directions, hidden, rows] && cx.sizes(w) == [directions, features, rows]
    } else {
        r_sizes == [directions, rows, hidden] && cx.sizes(w) == [directions, rows, features]
    };
    cx.check(fits, || {
        format!("weights {} and {} do not fit inputs {}", list(&cx.sizes(w)), list(&r_sizes), list(&sizes))
    })?;
    let element_type = cx.element_type(x);
    let bias = expected(cx, 3, &[directions, 2 * rows])?;
    let mut lengths = expected(cx, 4, &[batch])?;
    if let Some(steps) = steps
        && (lengths.is_some() || direction != "forward")
    {
        let mut all = cx.broadcast(steps, &[batch], &[])?;
        if let Some(given) = lengths {
            let given = cx.convert(given, PrimitiveType::S32)?;
            all = cx.op(Op::Minimum {}, &[given, all])?;
        }
        lengths = Some(all);
    }
    if let Some(samples) = samples {
        let all = match lengths {
            Some(given) => cx.convert(given, PrimitiveType::S32)?,
            None => {
                let all = cx.s32(time)?;
                cx.broadcast(all, &[batch], &[])?
            }
        };
        let exists = cx.before(&[batch], 0, samples)?;
        let none = cx.splat_like(all, 0.0)?;
        lengths = Some(cx.select(exists, all, none)?);
    }
    let state_sizes = if is_batch_first { [batch, directions, hidden] } else { [directions, batch, hidden] };
    let is_lstm = cell == Cell::Lstm;
    let first_state = expected(cx, 5, &state_sizes)?;
    let first_cell = if is_lstm { expected(cx, 6, &state_sizes)? } else { None };
    let peepholes = if is_lstm { expected(cx, 7, &[directions, 3 * hidden])? } else { None };
    let mut scales = Vec::new();
    for k in if is_quantized { 8..12 } else { 0..0 } {
        let scale = required(cx, k)?;
        let sizes = cx.sizes(scale);
        cx.check(sizes == [directions] || sizes == [directions, rows], || {
            format!("input {k}: expected one number or {rows} for each direction, got {}", list(&sizes))
        })?;
        scales.push(scale);
    }

    let mut all = Vec::new();
    let mut last: [Vec<InstructionId>; 2] = [Vec::new(), Vec::new()];
    for d in 0..directions {
        let options = options(cx, cell, d as usize, directions as usize, hidden)?;
        let reverses = d == 1 || direction == "reverse";
        let of_direction = |cx: &mut NodeContext<'_, '_>, array: InstructionId| {
            let part = cx.slice_in(array, 0, d, d + 1)?;
            let sizes = cx.sizes(part);
            cx.reshape(part, &sizes[1..])
        };
        let (w, recurrent) = (of_direction(cx, w)?, of_direction(cx, r)?);
        let mut own = Vec::new();
        for &scale in &scales {
            own.push(of_direction(cx, scale)?);
        }
        let of_weights = |k: usize| own.get(k..k + 2).map(|pair| [pair[0], pair[1]]);
        let mut own_bias = None;
        let mut inputs = product(cx, x, w, of_weights(0))?;
        if let Some(bias) = bias {
            let bias = of_direction(cx, bias)?;
            let of_inputs = cx.slice_in(bias, 0, 0, rows)?;
            let of_state = cx.slice_in(bias, 0, rows, 2 * rows)?;
            let spread = cx.broadcast(of_inputs, &[time, batch, rows], &[2])?;
            inputs = cx.add(inputs, spread)?;
            own_bias = Some(of_state);
        }
        if reverses {
            inputs = reversed(cx, inputs, lengths)?;
        }
        let peepholes = peepholes.map(|peepholes| of_direction(cx, peepholes)).transpose()?;
        let state = initial(cx, first_state, d, is_batch_first, [batch, hidden], element_type)?;
        let cell_state = initial(cx, first_cell, d, is_batch_first, [batch, hidden], element_type)?;
        let lengths_32 = lengths.map(|lengths| cx.convert(lengths, PrimitiveType::S32)).transpose()?;
        let scales = of_weights(2);
        let weights = Weights { inputs, recurrent, scales, bias: own_bias, peepholes, lengths: lengths_32 };
        let outputs = cx.splat(element_type, &[time, batch, hidden], 0.0)?;
        let count = i32::try_from(time).map_err(|_| cx.invalid("too many steps"))?;
        let most = cx.s32(i64::from(count))?;
        let carried =
            [vec![outputs, state, cell_state], weights.pack(), vec![steps.unwrap_or(most)]].concat();
        let below = |cx: &mut NodeContext<'_, '_>, index, carried: &[InstructionId]| {
            let end = if steps.is_some() { carried[carried.len() - 1] } else { cx.s32(i64::from(count))? };
            cx.compare(ComparisonDirection::Lt, index, end)
        };
        let results = cx.bounded_loop(count.max(0) as u64, &carried, below, |cx, index, carried| {
            let weights = weights.unpack(&carried[3..]);
            let input = cx.dynamic_row(weights.inputs, index)?;
            let [mut state, mut cell_state] = [carried[1], carried[2]];
            let [next, next_cell] = step(cx, &options, weights, input, [state, cell_state])?;
            let mut output = next;
            if let Some(lengths) = weights.lengths {
                let now = cx.broadcast(index, &[batch], &[])?;
                let runs = cx.compare(ComparisonDirection::Lt, now, lengths)?;
                let runs = cx.broadcast(runs, &[batch, hidden], &[0])?;
                let zero = cx.splat_like(next, 0.0)?;
                output = cx.select(runs, next, zero)?;
                state = cx.select(runs, next, state)?;
                cell_state = cx.select(runs, next_cell, cell_state)?;
            } else {
                [state, cell_state] = [next, next_cell];
            }
            let outputs = cx.with_dynamic_row(carried[0], output, index)?;
            Ok([vec![outputs, state, cell_state], carried[3..].to_vec()].concat())
        })?;
        let mut outputs = results[0];
        if reverses {
            outputs = reversed(cx, outputs, lengths)?;
        }
        all.push(cx.reshape(outputs, &[time, 1, batch, hidden])?);
        for (k, last) in last.iter_mut().enumerate() {
            last.push(cx.reshape(results[k + 1], &[1, batch, hidden])?);
        }
    }
    let mut results = vec![cx.concatenate(&all, 1)?];
    for last in &last {
        results.push(cx.concatenate(last, 0)?);
    }
    if is_batch_first {
        results[0] = cx.transpose(results[0], &[2, 0, 1, 3])?;
        for result in &mut results[1..] {
            *result = cx.transpose(*result, &[1, 0, 2])?;
        }
    }
    let count = cx.node().output_types.len();
    results.truncate(count);
    Ok(results)
}

/// A layer whose times and batch may have a range. The code for the largest sizes computes rows of
/// the batch that are not used, but no times beyond the true number. If the range of all numbers
/// matters, those beyond the sizes are 0, which is in every range.
fn layer_of_any_size(
    cx: &mut NodeContext<'_, '_>,
    cell: Cell,
    is_quantized: bool,
) -> Result<Vec<InstructionId>> {
    let inputs: Vec<InstructionId> = cx.inputs().iter().filter_map(|value| value.array()).collect();
    if !inputs.iter().any(|&input| cx.is_bounded(input)) {
        return layer(cx, cell, is_quantized, [None; 2]);
    }
    let x = required(cx, 0)?;
    let sizes = cx.all_sizes(x)?;
    let is_batch_first = flag(cx, "layout", false)?;
    cx.check(sizes.len() == 3, || "x: expected three dimensions".to_owned())?;
    let [time, batch] = if is_batch_first { [sizes[1], sizes[0]] } else { [sizes[0], sizes[1]] };
    let has_range = |k: Option<usize>, cx: &NodeContext<'_, '_>| {
        k.and_then(|k| cx.inputs()[k].array()).is_some_and(|input| cx.is_bounded(input))
    };
    let [w, r] = [required_place(cx, 1)?, required_place(cx, 2)?];
    if sizes[2].size.is_some() || has_range(Some(w), cx) || has_range(Some(r), cx) {
        return Err(Error::unsupported("the number of features or units has a range: give it one size")
            .coded(Code::BoundedSize));
    }
    let mut whole = Vec::new();
    for value in cx.inputs().to_vec() {
        whole.push(match value {
            Value::Array(input) if is_quantized => Value::Array(cx.masked_with(input, 0.0)?),
            Value::Array(input) => Value::Array(cx.split(input)?.data),
            other => other,
        });
    }
    let samples = batch.size.filter(|_| is_quantized);
    let results = cx.with_inputs(whole, |cx| layer(cx, cell, is_quantized, [time.size, samples]))?;
    let mut sized = Vec::new();
    for (k, result) in results.into_iter().enumerate() {
        // All states, or the last state or cell.
        let sizes = match (k, is_batch_first) {
            (0, false) => vec![time.size, None, batch.size, None],
            (0, true) => vec![batch.size, time.size, None, None],
            (_, false) => vec![None, batch.size, None],
            (_, true) => vec![batch.size, None, None],
        };
        sized.push(cx.bounded(result, &sizes)?);
    }
    Ok(sized)
}

/// The product with weights: real numbers (columns, depth), or integers (depth, columns) with their
/// scale and zero point.
fn product(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    weights: InstructionId,
    scales: Option<[InstructionId; 2]>,
) -> Result<InstructionId> {
    let last = cx.rank(x) - 1;
    let Some([scale, zero_point]) = scales else { return dot(cx, x, weights, 0, last, 1) };
    let [bytes, x_scale, x_zero] = bytes_of(cx, x)?;
    real_product(cx, [bytes, weights], [Some(x_zero), Some(zero_point)], [x_scale, scale], None)
}

/// An optional input of these sizes.
fn expected(cx: &mut NodeContext<'_, '_>, k: usize, sizes: &[i64]) -> Result<Option<InstructionId>> {
    let Some(input) = optional(cx, k)? else { return Ok(None) };
    cx.check(cx.sizes(input) == sizes, || {
        format!("input {k}: expected shape {}, got {}", list(sizes), list(&cx.sizes(input)))
    })?;
    Ok(Some(input))
}

/// The state of a direction before the first step.
fn initial(
    cx: &mut NodeContext<'_, '_>,
    stated: Option<InstructionId>,
    d: i64,
    is_batch_first: bool,
    sizes: [i64; 2],
    element_type: PrimitiveType,
) -> Result<InstructionId> {
    match stated {
        None => cx.splat(element_type, &sizes, 0.0),
        Some(state) => {
            let state = cx.slice_in(state, usize::from(is_batch_first), d, d + 1)?;
            cx.reshape(state, &sizes)
        }
    }
}

fn options(
    cx: &NodeContext<'_, '_>,
    cell: Cell,
    d: usize,
    directions: usize,
    hidden: i64,
) -> Result<Options> {
    let attributes = cx.attributes();
    let defaults_of_cell = cell.activations();
    let count = defaults_of_cell.len();
    let names: Vec<String> = if attributes.has("activations") {
        let names = attributes.strings("activations")?;
        names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    } else {
        defaults_of_cell.iter().cycle().take(count * directions).map(|name| (*name).to_owned()).collect()
    };
    cx.check(names.len() == count * directions, || {
        format!("expected {} activations, got {}", count * directions, names.len())
    })?;
    let alphas = attributes.floats_or("activation_alpha", Vec::new())?;
    let betas = attributes.floats_or("activation_beta", Vec::new())?;
    // Parameters belong to the activations that have some, in order.
    let (mut alpha, mut beta) = (alphas.iter(), betas.iter());
    let mut activations = Vec::new();
    for name in names {
        let [mut a, mut b] = defaults(&name);
        let (takes_alpha, takes_beta) = match name.to_ascii_lowercase().as_str() {
            "affine" | "scaledtanh" | "hardsigmoid" => (true, true),
            "leakyrelu" | "thresholdedrelu" | "elu" => (true, false),
            _ => (false, false),
        };
        if takes_alpha {
            a = alpha.next().copied().map_or(a, f64::from);
        }
        if takes_beta {
            b = beta.next().copied().map_or(b, f64::from);
        }
        activations.push((name, [a, b]));
    }
    let clip = attributes.has("clip").then(|| attributes.float("clip")).transpose()?;
    Ok(Options {
        cell,
        activations: activations.split_off(d * count).into_iter().take(count).collect(),
        clip: clip.map(f64::from),
        hidden,
        resets_after: flag(cx, "linear_before_reset", false)?,
        couples: flag(cx, "input_forget", false)?,
    })
}

/// Sequences in reverse, each up to its own length.
fn reversed(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    lengths: Option<InstructionId>,
) -> Result<InstructionId> {
    let Some(lengths) = lengths else { return cx.reverse(x, vec![0]) };
    let sizes = cx.sizes(x);
    let grid = [sizes[1], sizes[0]];
    let lengths = cx.convert(lengths, PrimitiveType::S32)?;
    let lengths = cx.broadcast(lengths, &grid, &[0])?;
    let position = cx.iota(PrimitiveType::S32, &grid, 1)?;
    let last = cx.add_scalar(lengths, -1.0)?;
    let mirrored = cx.sub(last, position)?;
    let is_inside = cx.compare(ComparisonDirection::Lt, position, lengths)?;
    let from = cx.select(is_inside, mirrored, position)?;
    let front = cx.transpose(x, &[1, 0, 2])?;
    let gathered = cx.gather_along(front, from, 1, 1)?;
    cx.transpose(gathered, &[1, 0, 2])
}

/// One step: the next state, and the next cell.
fn step(
    cx: &mut NodeContext<'_, '_>,
    options: &Options,
    weights: Weights,
    input: InstructionId,
    [state, cell]: [InstructionId; 2],
) -> Result<[InstructionId; 2]> {
    let hidden = options.hidden;
    let gate = |cx: &mut NodeContext<'_, '_>, x: InstructionId, k: i64| {
        cx.slice_in(x, 1, k * hidden, (k + 1) * hidden)
    };
    if options.cell == Cell::Gru {
        return gru_step(cx, options, weights, input, state).map(|next| [next, cell]);
    }
    let product = product(cx, state, weights.recurrent, weights.scales)?;
    let product = with_bias(cx, product, weights.bias)?;
    let sum = cx.add(input, product)?;
    if options.cell == Cell::Rnn {
        return Ok([options.apply(cx, 0, sum)?, cell]);
    }
    // Gates in the order of the file: input, output, forget, cell.
    let mut parts = Vec::new();
    for k in 0..4 {
        parts.push(gate(cx, sum, k)?);
    }
    let peephole = |cx: &mut NodeContext<'_, '_>, x: InstructionId, k: i64, cell: InstructionId| {
        let Some(peepholes) = weights.peepholes else { return Ok(x) };
        let own = cx.slice_in(peepholes, 0, k * hidden, (k + 1) * hidden)?;
        let sizes = cx.sizes(x);
        let own = cx.broadcast(own, &sizes, &[1])?;
        let own = cx.mul(own, cell)?;
        cx.add(x, own)
    };
    let input_gate = peephole(cx, parts[0], 0, cell)?;
    let input_gate = options.apply(cx, 0, input_gate)?;
    let forget_gate = if options.couples {
        let one = cx.splat_like(input_gate, 1.0)?;
        cx.sub(one, input_gate)?
    } else {
        let forget_gate = peephole(cx, parts[2], 2, cell)?;
        options.apply(cx, 0, forget_gate)?
    };
    let candidate = options.apply(cx, 1, parts[3])?;
    let (kept, added) = (cx.mul(forget_gate, cell)?, cx.mul(input_gate, candidate)?);
    let next_cell = cx.add(kept, added)?;
    let output_gate = peephole(cx, parts[1], 1, next_cell)?;
    let output_gate = options.apply(cx, 0, output_gate)?;
    let shown = options.apply(cx, 2, next_cell)?;
    Ok([cx.mul(output_gate, shown)?, next_cell])
}

fn with_bias(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    bias: Option<InstructionId>,
) -> Result<InstructionId> {
    let Some(bias) = bias else { return Ok(x) };
    let sizes = cx.sizes(x);
    let bias = cx.broadcast(bias, &sizes, &[1])?;
    cx.add(x, bias)
}

/// Gates in the order of the file: update, reset, hidden.
fn gru_step(
    cx: &mut NodeContext<'_, '_>,
    options: &Options,
    weights: Weights,
    input: InstructionId,
    state: InstructionId,
) -> Result<InstructionId> {
    let hidden = options.hidden;
    let part = |cx: &mut NodeContext<'_, '_>, x: InstructionId, dimension: usize, from: i64, to: i64| {
        cx.slice_in(x, dimension, from * hidden, to * hidden)
    };
    let of_gates = part(cx, weights.recurrent, 0, 0, 2)?;
    let of_hidden = part(cx, weights.recurrent, 0, 2, 3)?;
    let bias_of_gates = weights.bias.map(|bias| part(cx, bias, 0, 0, 2)).transpose()?;
    let bias_of_hidden = weights.bias.map(|bias| part(cx, bias, 0, 2, 3)).transpose()?;
    let gates = dot(cx, state, of_gates, 0, 1, 1)?;
    let gates = with_bias(cx, gates, bias_of_gates)?;
    let own = part(cx, input, 1, 0, 2)?;
    let gates = cx.add(own, gates)?;
    let update = part(cx, gates, 1, 0, 1)?;
    let update = options.apply(cx, 0, update)?;
    let reset = part(cx, gates, 1, 1, 2)?;
    let reset = options.apply(cx, 0, reset)?;
    let candidate = if options.resets_after {
        let product = dot(cx, state, of_hidden, 0, 1, 1)?;
        let product = with_bias(cx, product, bias_of_hidden)?;
        cx.mul(reset, product)?
    } else {
        let kept = cx.mul(reset, state)?;
        let product = dot(cx, kept, of_hidden, 0, 1, 1)?;
        with_bias(cx, product, bias_of_hidden)?
    };
    let own = part(cx, input, 1, 2, 3)?;
    let candidate = cx.add(own, candidate)?;
    let candidate = options.apply(cx, 1, candidate)?;
    let one = cx.splat_like(update, 1.0)?;
    let rest = cx.sub(one, update)?;
    let (new, old) = (cx.mul(rest, candidate)?, cx.mul(update, state)?);
    cx.add(new, old)
}
