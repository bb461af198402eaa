//! Inputs of a node: available tensors, new ones, and constants where the importer must know the
//! values.

use super::{Writer, templates};
use std::collections::BTreeMap;
use tf::DataType;
use tf::proto::{ArgDef, AttrValue, OpDef, attr_value::Value};

/// Returns the types of an argument, one per tensor.
pub(super) fn types(arg: &ArgDef, attr: &BTreeMap<String, AttrValue>) -> Option<Vec<DataType>> {
    let value = |name: &str| attr.get(name).and_then(|v| v.value.as_ref());
    if !arg.type_list_attr.is_empty() {
        let Some(Value::List(list)) = value(&arg.type_list_attr) else { return None };
        return list.r#type.iter().map(|&number| DataType::from_number(number)).collect();
    }
    let number = match value(&arg.type_attr) {
        Some(Value::Type(number)) => *number,
        _ if arg.type_attr.is_empty() => arg.r#type,
        _ => return None,
    };
    let count = match value(&arg.number_attr) {
        _ if arg.number_attr.is_empty() => 1,
        Some(Value::I(count)) => usize::try_from(*count).ok()?.min(8),
        _ => return None,
    };
    Some(vec![DataType::from_number(number)?; count])
}

impl Writer {
    /// Returns the names of a node's inputs.
    pub(super) fn inputs(
        &mut self,
        op: &OpDef,
        attr: &BTreeMap<String, AttrValue>,
        main: Option<DataType>,
    ) -> Option<Vec<String>> {
        let words = templates::words(&op.name).unwrap_or_default();
        let mut letters = BTreeMap::new();
        let all_equal = self.draw.once_in(3).then(|| self.draw.between(1, 6));
        let shape = self.main_shape(main);
        let equation = match attr.get("equation").and_then(|v| v.value.as_ref()) {
            Some(Value::S(text)) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        };
        let mut names = Vec::new();
        for arg in &op.input_arg {
            for data_type in types(arg, attr)? {
                let number = names.len();
                let letters_of = equation.as_ref().map(|e| subscript(e, number));
                let word = letters_of.as_deref().or(words.get(number).copied());
                let name = match word {
                    None | Some("?") => self.free_input(op, &arg.name, data_type, &shape, number)?,
                    Some("=") => self.constant_input(op, &arg.name, data_type, &shape)?,
                    Some(".") => self.tensor(data_type, &[])?,
                    Some(word) => {
                        let (word, is_sizes) = match word.strip_prefix('#') {
                            Some(word) => (word, true),
                            None => (word, false),
                        };
                        let sizes: Vec<i64> =
                            word.chars().map(|c| self.letter(c, &mut letters, all_equal)).collect();
                        if is_sizes {
                            self.integers(data_type, &[sizes.len() as i64], &sizes)?
                        } else {
                            self.tensor(data_type, &sizes)?
                        }
                    }
                };
                names.push(name);
            }
        }
        Some(names)
    }

    fn letter(&mut self, c: char, letters: &mut BTreeMap<char, i64>, all_equal: Option<i64>) -> i64 {
        if let Some(digit) = c.to_digit(10) {
            return i64::from(digit);
        }
        let stand_in = self.names.stand_in(&mut self.draw, letters.is_empty());
        let size = match (c, all_equal) {
            // Channels that are rearranged into space.
            ('q', _) => self.draw.choose(&[4, 8]),
            (_, Some(size)) => size,
            ('b', _) => self.draw.choose(&[1, 2, 3]),
            ('h' | 'w' | 'd', _) => self.draw.choose(&[2, 4, 5, 6, 8, 9]),
            _ => self.draw.size(),
        };
        *letters.entry(c).or_insert(stand_in.unwrap_or(size))
    }

    /// Returns the shape of an available tensor, or a new one.
    fn main_shape(&mut self, main: Option<DataType>) -> Vec<i64> {
        let fits: Vec<Vec<i64>> = self
            .tensors
            .iter()
            .filter(|t| main.is_none_or(|main| t.data_type == main))
            .map(|t| t.sizes.clone())
            .collect();
        if !fits.is_empty() && !self.draw.once_in(4) {
            return self.draw.pick(&fits);
        }
        let rank = self.draw.choose(&[0, 1, 2, 2, 3, 3, 4]);
        let mut sizes = self.draw.sizes(rank, 1500);
        for (d, size) in sizes.iter_mut().enumerate() {
            *size = self.names.stand_in(&mut self.draw, d == 0).unwrap_or(*size);
        }
        sizes
    }

    /// Returns a tensor with the given type and shape.
    fn tensor(&mut self, data_type: DataType, sizes: &[i64]) -> Option<String> {
        if sizes.iter().product::<i64>() > 20_000 {
            return None;
        }
        let fits: Vec<String> = self
            .tensors
            .iter()
            .filter(|t| t.data_type == data_type && t.sizes == sizes)
            .map(|t| t.name.clone())
            .collect();
        if !fits.is_empty() && !self.draw.once_in(3) {
            return Some(self.draw.pick(&fits));
        }
        self.new_tensor(data_type, sizes)
    }

    /// Returns an input without a template: a constant if its name indicates that its value must be
    /// known, or an array of the main shape, one that broadcasts to it, or a scalar.
    fn free_input(
        &mut self,
        op: &OpDef,
        arg: &str,
        data_type: DataType,
        shape: &[i64],
        number: usize,
    ) -> Option<String> {
        const KNOWN: &[&str] = &[
            "axis",
            "axes",
            "reduction_indices",
            "dim",
            "dimension",
            "dims",
            "concat_dim",
            "split_dim",
            "shape",
            "perm",
            "paddings",
            "begin",
            "size",
            "multiples",
            "k",
            "depth",
            "num_segments",
            "block_shape",
            "crops",
            "end",
            "strides",
            "shift",
            "size_splits",
            "start",
            "limit",
            "delta",
            "num",
            "fft_length",
            "s0",
            "s1",
            "num_lower",
            "num_upper",
            "output_shape",
            "batch_dims",
            "slice_sizes",
            "start_indices",
        ];
        if KNOWN.contains(&arg) {
            return self.constant_input(op, arg, data_type, shape);
        }
        if number > 0 && self.draw.once_in(4) {
            let mut sizes = shape[self.draw.below(shape.len() + 1)..].to_vec();
            for size in &mut sizes {
                if self.draw.once_in(3) {
                    *size = 1;
                }
            }
            return self.tensor(data_type, &sizes);
        }
        if arg == "indices" && self.draw.once_in(2) {
            let rank = self.draw.below(3);
            let sizes: Vec<i64> = (0..rank).map(|_| self.draw.between(0, 6)).collect();
            return self.tensor(data_type, &sizes);
        }
        self.tensor(data_type, shape)
    }

    /// Returns a constant whose value determines shapes.
    fn constant_input(
        &mut self,
        op: &OpDef,
        arg: &str,
        data_type: DataType,
        shape: &[i64],
    ) -> Option<String> {
        let rank = shape.len() as i64;
        let any_axis = |draw: &mut crate::Draw| draw.between(-rank, (rank - 1).max(0));
        match arg {
            "axis" | "dim" | "dimension" | "concat_dim" | "split_dim" if op.name != "ReverseV2" => {
                let axis = any_axis(&mut self.draw);
                self.integers(data_type, &[], &[axis])
            }
            "axis" | "axes" | "reduction_indices" | "dims" => {
                let axes: Vec<i64> = self.draw.subset(shape.len()).into_iter().map(|d| d as i64).collect();
                self.integers(data_type, &[axes.len() as i64], &axes)
            }
            "perm" => {
                let order: Vec<i64> =
                    self.draw.permutation(shape.len()).into_iter().map(|d| d as i64).collect();
                self.integers(data_type, &[rank], &order)
            }
            "paddings" if op.name.starts_with("Space") => self.integers(data_type, &[2, 2], &[0, 0, 2, 0]),
            "crops" => self.integers(data_type, &[2, 2], &[0, 1, 0, 0]),
            "block_shape" => self.integers(data_type, &[2], &[2, 2]),
            "paddings" => {
                let numbers: Vec<i64> = (0..2 * rank).map(|_| self.draw.between(0, 2)).collect();
                self.integers(data_type, &[rank, 2], &numbers)
            }
            "multiples" => {
                let numbers: Vec<i64> = (0..rank).map(|_| self.draw.between(0, 3)).collect();
                self.integers(data_type, &[rank], &numbers)
            }
            "begin" => {
                let numbers: Vec<i64> = shape.iter().map(|&s| self.draw.between(0, s)).collect();
                self.integers(data_type, &[rank], &numbers)
            }
            "size" if op.name.starts_with("Resize") => {
                let sizes = [self.draw.between(1, 9), self.draw.between(1, 9)];
                self.integers(data_type, &[2], &sizes)
            }
            "crop_size" => self.integers(data_type, &[2], &[3, 4]),
            "end" | "size" if op.name == "StridedSlice" || op.name == "Slice" => {
                let numbers: Vec<i64> = shape.iter().map(|&s| self.draw.between(-1, s)).collect();
                self.integers(data_type, &[rank], &numbers)
            }
            "strides" => {
                let numbers: Vec<i64> = (0..rank).map(|_| self.draw.choose(&[1, 1, 2, -1, -2, 3])).collect();
                self.integers(data_type, &[rank], &numbers)
            }
            "shape" | "dims_shape" | "output_shape" | "input_sizes" => {
                let sizes = match (op.name.as_str(), self.draw.once_in(2)) {
                    ("Reshape", true) => vec![-1],
                    ("Reshape", false) => vec![shape.iter().product()],
                    ("ScatterNd", _) => vec![self.draw.between(1, 9), self.draw.size()],
                    _ => {
                        let added = self.draw.below(2);
                        let mut sizes = vec![2; added];
                        sizes.extend(shape);
                        sizes
                    }
                };
                self.integers(data_type, &[sizes.len() as i64], &sizes)
            }
            "fft_length" => {
                let count = if op.name.contains("3D") { 3 } else { 1 + usize::from(op.name.contains("2D")) };
                let sizes: Vec<i64> = (0..count).map(|_| self.draw.between(1, 9)).collect();
                self.integers(data_type, &[count as i64], &sizes)
            }
            "padding_low" | "padding_high" | "padding_interior" => {
                let low = if arg == "padding_interior" { 0 } else { -1 };
                let numbers = [self.draw.between(low, 2), self.draw.between(low, 2)];
                self.integers(data_type, &[2], &numbers)
            }
            _ if data_type.primitive_type()?.is_integer() => {
                let number = self.draw.between(-1, 6);
                self.integers(data_type, &[], &[number])
            }
            _ => self.tensor(data_type, &[]),
        }
    }
}

/// Returns the letters of one input of an equation.
fn subscript(equation: &str, number: usize) -> String {
    let inputs = equation.split("->").next().unwrap_or_default();
    inputs.split(',').nth(number).unwrap_or_default().replace("...", "xy")
}
