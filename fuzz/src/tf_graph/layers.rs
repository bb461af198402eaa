//! Parts of networks: groups of nodes as frameworks write them.

use super::{Tensor, Writer};
use crate::Numbers;
use shape::{PrimitiveType, Shape};
use tf::DataType;
use tf::proto::{ListValue, attr_value::Value};

/// Name and output of a layer.
pub(super) type Layer = (&'static str, Vec<(String, DataType)>);

const FLOAT: DataType = DataType::Float;
const INT: DataType = DataType::Int32;

pub(super) fn of_type(data_type: DataType) -> Value {
    Value::Type(data_type.number())
}

fn text(value: &str) -> Value {
    Value::S(value.as_bytes().to_vec().into())
}

fn list(numbers: &[i64]) -> Value {
    Value::List(Box::new(ListValue { i: numbers.to_vec(), ..ListValue::default() }))
}

impl Writer {
    /// Adds a layer on an array of floats. Returns `None` if it does not fit.
    pub(super) fn layer(&mut self) -> Option<Layer> {
        type Make = fn(&mut Writer) -> Option<(String, DataType)>;
        const LAYERS: &[(&str, Make)] = &[
            ("dense", |w| w.dense()),
            ("dense", |w| w.dense()),
            ("convolution", |w| w.convolution()),
            ("pool", |w| w.pool()),
            ("flatten", |w| w.flatten()),
            ("merge", |w| w.merge()),
            ("split dimension", |w| w.split_dimension()),
            ("batch norm", |w| w.batch_norm()),
            ("layer norm", |w| w.layer_norm()),
            ("softmax", |w| w.softmax()),
            ("attention", |w| w.attention()),
            ("attention", |w| w.attention()),
            ("reduction", |w| w.reduction()),
            ("reduction", |w| w.reduction()),
            ("concatenation", |w| w.concatenation()),
            ("slice", |w| w.slice()),
            ("slice", |w| w.slice()),
            ("padding", |w| w.padding()),
            ("embedding", |w| w.embedding()),
            ("cumulative sum", |w| w.cumulative_sum()),
            ("selection", |w| w.selection()),
            ("positions", |w| w.positions()),
            ("tile", |w| w.tile()),
            ("transpose", |w| w.transpose()),
            ("top", |w| w.top()),
            ("recurrent", |w| w.recurrent()),
            ("repetition", |w| w.repetition()),
            ("activation", |w| w.activation()),
        ];
        let (name, make) = self.draw.choose(LAYERS);
        make(self).map(|output| (name, vec![output]))
    }

    /// Returns an array of floats with a rank in this range.
    pub(super) fn hidden(&mut self, low: usize, high: usize) -> Option<Tensor> {
        let fits: Vec<Tensor> = self
            .tensors
            .iter()
            .filter(|t| t.data_type == FLOAT && (low..=high).contains(&t.sizes.len()))
            .cloned()
            .collect();
        if !fits.is_empty() && !self.draw.once_in(4) {
            return Some(self.draw.pick(&fits));
        }
        let rank = self.draw.between(low as i64, high as i64) as usize;
        let mut sizes = self.draw.sizes(rank, 400);
        for (d, size) in sizes.iter_mut().enumerate() {
            *size = self.names.stand_in(&mut self.draw, d == 0).unwrap_or(*size);
        }
        let name = self.new_tensor(FLOAT, &sizes)?;
        Some(Tensor { name, data_type: FLOAT, sizes })
    }

    /// Adds constant weights. Their sizes are known.
    pub(super) fn weights(&mut self, sizes: &[i64]) -> Option<String> {
        if self.names.are_in(sizes) {
            return None;
        }
        let literal = self.draw.literal(&Shape::array(PrimitiveType::F32, sizes), Numbers::Gentle);
        Some(self.constant(FLOAT, &literal))
    }

    fn number(&mut self, value: i64) -> Option<String> {
        self.integers(INT, &[], &[value])
    }

    fn vector(&mut self, values: &[i64]) -> Option<String> {
        self.integers(INT, &[values.len() as i64], values)
    }

    pub(super) fn unary(&mut self, op: &str, x: &str) -> String {
        self.add(op, &[x], &[("T", of_type(FLOAT))])
    }

    pub(super) fn binary(&mut self, op: &str, x: &str, y: &str) -> String {
        self.add(op, &[x, y], &[("T", of_type(FLOAT))])
    }

    fn reshape(&mut self, x: &str, sizes: &[i64]) -> Option<String> {
        let mut sizes = sizes.to_vec();
        // One of the sizes may be what is left, unless that is undefined.
        if !sizes.is_empty() && self.draw.once_in(2) {
            let d = self.draw.below(sizes.len());
            let others = [&sizes[..d], &sizes[d + 1..]].concat();
            if !self.names.may_be_empty(&others) {
                sizes[d] = -1;
            }
        }
        let shape = self.vector(&sizes)?;
        Some(self.add("Reshape", &[x, &shape], &[("T", of_type(FLOAT))]))
    }

    fn reduce(&mut self, op: &str, x: &str, axes: &[i64], keeps: bool) -> Option<String> {
        let axes = self.vector(axes)?;
        Some(self.add(op, &[x, &axes], &[("T", of_type(FLOAT)), ("keep_dims", Value::B(keeps))]))
    }

    fn activation(&mut self) -> Option<(String, DataType)> {
        let x = self.hidden(1, 4)?;
        let op = self.draw.choose(&["Relu", "Tanh", "Sigmoid", "Elu", "Relu6", "Softplus", "Square", "Abs"]);
        Some((self.unary(op, &x.name), FLOAT))
    }

    fn dense(&mut self) -> Option<(String, DataType)> {
        let x = self.hidden(2, 4)?;
        let (rank, depth) = (x.sizes.len(), *x.sizes.last()?);
        let units = self.draw.choose(&[1, 2, 3, 5, 8, 16, 17]);
        let weights = self.weights(&[depth, units])?;
        let product = if rank == 2 {
            self.binary("MatMul", &x.name, &weights)
        } else if self.draw.once_in(2) {
            self.binary("BatchMatMulV2", &x.name, &weights)
        } else {
            // Keras's product of tensors: by way of a matrix.
            let shape = self.vector(&[-1, depth])?;
            let rows = self.add("Reshape", &[&x.name, &shape], &[("T", of_type(FLOAT))]);
            let product = self.binary("MatMul", &rows, &weights);
            let mut sizes = x.sizes.clone();
            sizes[rank - 1] = units;
            let shape = self.vector(&sizes)?;
            self.add("Reshape", &[&product, &shape], &[("T", of_type(FLOAT))])
        };
        let bias = self.weights(&[units])?;
        let y = self.binary("BiasAdd", &product, &bias);
        let op = self.draw.choose(&["Relu", "Tanh", "Sigmoid", "Identity"]);
        Some((self.unary(op, &y), FLOAT))
    }

    /// Returns images.
    fn images(&mut self) -> Option<Tensor> {
        let fits: Vec<Tensor> =
            self.tensors.iter().filter(|t| t.data_type == FLOAT && t.sizes.len() == 4).cloned().collect();
        if !fits.is_empty() && !self.draw.once_in(4) {
            return Some(self.draw.pick(&fits));
        }
        let mut sizes =
            [2, self.draw.between(3, 9), self.draw.between(3, 9), self.draw.choose(&[1, 2, 3, 4, 8])];
        sizes[0] = self.names.stand_in(&mut self.draw, true).unwrap_or(2);
        sizes[1] = self.names.stand_in(&mut self.draw, false).unwrap_or(sizes[1]);
        let name = self.new_tensor(FLOAT, &sizes)?;
        Some(Tensor { name, data_type: FLOAT, sizes: sizes.to_vec() })
    }

    fn convolution(&mut self) -> Option<(String, DataType)> {
        let x = self.images()?;
        let (depth, size) = (x.sizes[3], self.draw.choose(&[1, 2, 3]));
        let stride = self.draw.choose(&[1, 1, 2]);
        let padding = self.draw.choose(&["SAME", "SAME", "VALID"]);
        let attr =
            [("T", of_type(FLOAT)), ("strides", list(&[1, stride, stride, 1])), ("padding", text(padding))];
        let filters = self.draw.choose(&[1, 2, 4, 8, 16]);
        let (op, weights, channels) = if self.draw.once_in(4) {
            ("DepthwiseConv2dNative", self.weights(&[size, size, depth, 2])?, depth * 2)
        } else {
            ("Conv2D", self.weights(&[size, size, depth, filters])?, filters)
        };
        let product = self.add(op, &[&x.name, &weights], &attr);
        let bias = self.weights(&[channels])?;
        let y = self.binary("BiasAdd", &product, &bias);
        Some((self.unary("Relu", &y), FLOAT))
    }

    fn pool(&mut self) -> Option<(String, DataType)> {
        let x = self.images()?;
        if self.draw.once_in(3) {
            return Some((self.reduce("Mean", &x.name, &[1, 2], false)?, FLOAT));
        }
        let (size, stride) = (self.draw.choose(&[2, 3]), self.draw.choose(&[1, 2]));
        let padding = self.draw.choose(&["SAME", "VALID"]);
        let attr = [
            ("T", of_type(FLOAT)),
            ("ksize", list(&[1, size, size, 1])),
            ("strides", list(&[1, stride, stride, 1])),
            ("padding", text(padding)),
        ];
        let op = self.draw.choose(&["MaxPool", "AvgPool"]);
        Some((self.add(op, &[&x.name], &attr), FLOAT))
    }

    fn flatten(&mut self) -> Option<(String, DataType)> {
        let x = self.hidden(3, 4)?;
        let rest: i64 = x.sizes[1..].iter().product();
        let sizes = match self.draw.below(3) {
            0 if self.names.may_be_empty(&x.sizes[..1]) => return None,
            0 => [x.sizes[0], -1],
            _ if self.names.are_in(&x.sizes[1..]) => return None,
            1 => [-1, rest],
            _ => [x.sizes[0], rest],
        };
        let shape = self.vector(&sizes)?;
        Some((self.add("Reshape", &[&x.name, &shape], &[("T", of_type(FLOAT))]), FLOAT))
    }

    /// Merges the first two dimensions, computes, and splits them.
    fn merge(&mut self) -> Option<(String, DataType)> {
        let x = self.hidden(3, 4)?;
        if self.names.may_be_empty(&x.sizes[2..]) {
            return None;
        }
        let shape = self.vector(&[&[-1], &x.sizes[2..]].concat())?;
        let rows = self.add("Reshape", &[&x.name, &shape], &[("T", of_type(FLOAT))]);
        if self.draw.once_in(3) {
            return Some((rows, FLOAT));
        }
        let y = self.unary("Tanh", &rows);
        Some((self.reshape(&y, &x.sizes)?, FLOAT))
    }

    /// Splits a known dimension in two.
    fn split_dimension(&mut self) -> Option<(String, DataType)> {
        let x = self.hidden(2, 3)?;
        let d = self.draw.below(x.sizes.len());
        let size = x.sizes[d];
        let factor = [4, 3, 2].into_iter().find(|factor| size % factor == 0 && size > 0)?;
        let mut sizes = x.sizes.clone();
        sizes.splice(d..=d, [factor, size / factor]);
        Some((self.reshape(&x.name, &sizes)?, FLOAT))
    }

    fn batch_norm(&mut self) -> Option<(String, DataType)> {
        let x = self.images()?;
        let depth = x.sizes[3];
        let mut inputs = vec![x.name];
        for _ in 0..4 {
            inputs.push(self.weights(&[depth])?);
        }
        inputs[4] = self.unary("Square", &inputs[4]);
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let attr = [("T", of_type(FLOAT)), ("U", of_type(FLOAT)), ("is_training", Value::B(false))];
        Some((self.add("FusedBatchNormV3", &inputs, &attr), FLOAT))
    }

    fn layer_norm(&mut self) -> Option<(String, DataType)> {
        let x = self.hidden(2, 4)?;
        let axis = if self.draw.once_in(4) { self.draw.below(x.sizes.len()) as i64 } else { -1 };
        let mean = self.reduce("Mean", &x.name, &[axis], true)?;
        let square = self.binary("SquaredDifference", &x.name, &mean);
        let variance = self.reduce("Mean", &square, &[axis], true)?;
        let epsilon = self.constant(FLOAT, &shape::Literal::scalar(0.01f32));
        let sum = self.binary("AddV2", &variance, &epsilon);
        let factor = self.unary("Rsqrt", &sum);
        let centered = self.binary("Sub", &x.name, &mean);
        Some((self.binary("Mul", &centered, &factor), FLOAT))
    }

    fn softmax(&mut self) -> Option<(String, DataType)> {
        let x = self.hidden(1, 4)?;
        let op = self.draw.choose(&["Softmax", "Softmax", "LogSoftmax"]);
        Some((self.unary(op, &x.name), FLOAT))
    }

    /// Attention over the second dimension from the end, with one or two heads.
    fn attention(&mut self) -> Option<(String, DataType)> {
        let x = self.hidden(3, 3)?;
        let (depth, heads) = (x.sizes[2], self.draw.choose(&[1, 2]));
        let width = self.draw.choose(&[2, 4, 8]);
        let mut parts = Vec::new();
        for _ in 0..3 {
            let weights = self.weights(&[depth, heads * width])?;
            let part = self.binary("BatchMatMulV2", &x.name, &weights);
            let part = self.reshape(&part, &[x.sizes[0], x.sizes[1], heads, width])?;
            let order = self.vector(&[0, 2, 1, 3])?;
            parts.push(self.add("Transpose", &[&part, &order], &[("T", of_type(FLOAT))]));
        }
        let attr = [("T", of_type(FLOAT)), ("adj_y", Value::B(true))];
        let mut scores = self.add("BatchMatMulV2", &[&parts[0], &parts[1]], &attr);
        if self.draw.once_in(2) {
            // A mask of the tokens that follow.
            let positions = self.range(x.sizes[1])?;
            let [last, first] = [self.number(1)?, self.number(0)?];
            let int = [("T", of_type(INT))];
            let row = self.add("ExpandDims", &[&positions, &last], &int);
            let column = self.add("ExpandDims", &[&positions, &first], &int);
            let is_seen = self.add("GreaterEqual", &[&row, &column], &int);
            let low = self.constant(FLOAT, &shape::Literal::scalar(-1e9f32));
            scores = self.add("SelectV2", &[&is_seen, &scores, &low], &[("T", of_type(FLOAT))]);
        }
        let shares = self.unary("Softmax", &scores);
        let y = self.binary("BatchMatMulV2", &shares, &parts[2]);
        let order = self.vector(&[0, 2, 1, 3])?;
        let y = self.add("Transpose", &[&y, &order], &[("T", of_type(FLOAT))]);
        Some((self.reshape(&y, &[x.sizes[0], x.sizes[1], heads * width])?, FLOAT))
    }

    fn range(&mut self, size: i64) -> Option<String> {
        let [start, limit, step] = [self.number(0)?, self.number(size)?, self.number(1)?];
        Some(self.add("Range", &[&start, &limit, &step], &[("Tidx", of_type(INT))]))
    }

    fn reduction(&mut self) -> Option<(String, DataType)> {
        let x = self.hidden(1, 4)?;
        if self.draw.once_in(5) {
            let axis = self.draw.below(x.sizes.len()) as i64;
            let axis = self.number(axis)?;
            let op = self.draw.choose(&["ArgMax", "ArgMin"]);
            let attr = [("T", of_type(FLOAT)), ("output_type", of_type(INT))];
            return Some((self.add(op, &[&x.name, &axis], &attr), INT));
        }
        let mut axes: Vec<i64> = self.draw.subset(x.sizes.len()).into_iter().map(|d| d as i64).collect();
        if axes.is_empty() {
            axes.push(self.draw.below(x.sizes.len()) as i64);
        }
        let op = self.draw.choose(&["Mean", "Sum", "Max", "Min", "Prod", "Sum", "Mean"]);
        let keeps = self.draw.once_in(2);
        Some((self.reduce(op, &x.name, &axes, keeps)?, FLOAT))
    }

    fn concatenation(&mut self) -> Option<(String, DataType)> {
        let x = self.hidden(1, 4)?;
        let d = self.draw.below(x.sizes.len());
        let fits = |t: &&Tensor| {
            let rest = |sizes: &[i64]| [&sizes[..d], &sizes[d + 1..]].concat();
            t.data_type == FLOAT && t.sizes.len() == x.sizes.len() && rest(&t.sizes) == rest(&x.sizes)
        };
        let fits: Vec<String> = self.tensors.iter().filter(fits).map(|t| t.name.clone()).collect();
        let count = self.draw.between(1, 3);
        let mut inputs = vec![x.name.clone()];
        for _ in 1..count.max(2) {
            inputs.push(self.draw.pick(&fits));
        }
        let axis = self.number(d as i64)?;
        inputs.push(axis);
        let count = Value::I(inputs.len() as i64 - 1);
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        Some((self.add("ConcatV2", &inputs, &[("N", count), ("T", of_type(FLOAT))]), FLOAT))
    }

    /// A strided slice of one dimension: the first ones, the last ones, one, or in reverse.
    fn slice(&mut self) -> Option<(String, DataType)> {
        let x = self.hidden(1, 4)?;
        let rank = x.sizes.len();
        let d = self.draw.below(rank);
        let all = (1i64 << rank) - 1;
        let bit = 1i64 << d;
        let (mut begin, mut end, mut step) = (vec![0; rank], vec![0; rank], vec![1; rank]);
        let (mut begin_mask, mut end_mask, mut shrink) = (all, all, 0);
        match self.draw.below(7) {
            0 => (begin[d], begin_mask) = (1, all - bit),
            1 => (end[d], end_mask) = (-1, all - bit),
            2 => (begin[d], begin_mask) = (-2, all - bit),
            3 => (begin[d], end[d], begin_mask, end_mask, shrink) = (-1, 0, all - bit, all - bit, bit),
            4 => step[d] = -1,
            5 => step[d] = 2,
            _ => (begin[d], end[d], begin_mask, end_mask, shrink) = (0, 1, all - bit, all - bit, bit),
        }
        let [begin, end, step] = [self.vector(&begin)?, self.vector(&end)?, self.vector(&step)?];
        let attr = [
            ("T", of_type(FLOAT)),
            ("Index", of_type(INT)),
            ("begin_mask", Value::I(begin_mask)),
            ("end_mask", Value::I(end_mask)),
            ("shrink_axis_mask", Value::I(shrink)),
        ];
        Some((self.add("StridedSlice", &[&x.name, &begin, &end, &step], &attr), FLOAT))
    }

    fn padding(&mut self) -> Option<(String, DataType)> {
        let x = self.hidden(1, 4)?;
        let rank = x.sizes.len();
        let d = self.draw.below(rank);
        let mut paddings = vec![0; 2 * rank];
        paddings[2 * d] = self.draw.between(0, 2);
        paddings[2 * d + 1] = self.draw.between(0, 3);
        let paddings = self.integers(INT, &[rank as i64, 2], &paddings)?;
        Some((self.add("Pad", &[&x.name, &paddings], &[("T", of_type(FLOAT))]), FLOAT))
    }

    fn embedding(&mut self) -> Option<(String, DataType)> {
        let width = self.draw.choose(&[1, 4, 8]);
        let table = self.weights(&[9, width])?;
        let rank = 1 + self.draw.below(2);
        let mut sizes = vec![4; rank];
        for (d, size) in sizes.iter_mut().enumerate() {
            *size = self.names.stand_in(&mut self.draw, d == 0).unwrap_or(*size);
        }
        let numbers = self.new_tensor(INT, &sizes)?;
        let axis = self.number(0)?;
        let attr = [("Tparams", of_type(FLOAT)), ("Tindices", of_type(INT)), ("Taxis", of_type(INT))];
        Some((self.add("GatherV2", &[&table, &numbers, &axis], &attr), FLOAT))
    }

    fn cumulative_sum(&mut self) -> Option<(String, DataType)> {
        let x = self.hidden(1, 3)?;
        let axis = self.draw.below(x.sizes.len()) as i64;
        let axis = self.number(axis)?;
        let [exclusive, reverse] = [0; 2].map(|_| Value::B(self.draw.once_in(3)));
        let op = self.draw.choose(&["Cumsum", "Cumsum", "Cumprod", "CumulativeLogsumexp"]);
        let attr = [("T", of_type(FLOAT)), ("exclusive", exclusive), ("reverse", reverse)];
        Some((self.add(op, &[&x.name, &axis], &attr), FLOAT))
    }

    fn selection(&mut self) -> Option<(String, DataType)> {
        let x = self.hidden(1, 4)?;
        let fits = |t: &&Tensor| t.data_type == FLOAT && t.sizes == x.sizes;
        let fits: Vec<String> = self.tensors.iter().filter(fits).map(|t| t.name.clone()).collect();
        let [y, z] = [self.draw.pick(&fits), self.draw.pick(&fits)];
        let zero = self.constant(FLOAT, &shape::Literal::scalar(0.25f32));
        let is_above = self.binary("Greater", &x.name, &zero);
        Some((self.add("SelectV2", &[&is_above, &y, &z], &[("T", of_type(FLOAT))]), FLOAT))
    }

    /// Adds the position in one dimension.
    fn positions(&mut self) -> Option<(String, DataType)> {
        let x = self.hidden(1, 3)?;
        let rank = x.sizes.len();
        let d = self.draw.below(rank);
        let positions = self.range(x.sizes[d])?;
        let attr = [("SrcT", of_type(INT)), ("DstT", of_type(FLOAT))];
        let mut positions = self.add("Cast", &[&positions], &attr);
        for _ in d + 1..rank {
            let last = self.number(-1)?;
            positions = self.add("ExpandDims", &[&positions, &last], &[("T", of_type(FLOAT))]);
        }
        let op = self.draw.choose(&["AddV2", "Mul", "Sub", "Maximum"]);
        Some((self.binary(op, &x.name, &positions), FLOAT))
    }

    /// Repeats an array along one dimension, or broadcasts it along a new one.
    fn tile(&mut self) -> Option<(String, DataType)> {
        let x = self.hidden(1, 3)?;
        let rank = x.sizes.len();
        let attr = [("T", of_type(FLOAT))];
        if self.draw.once_in(2) {
            let mut counts = vec![1; rank];
            let d = self.draw.below(rank);
            counts[d] = self.draw.choose(&[2, 3]);
            let counts = self.vector(&counts)?;
            return Some((self.add("Tile", &[&x.name, &counts], &attr), FLOAT));
        }
        let size = self.names.stand_in(&mut self.draw, false).unwrap_or(3);
        let sizes = self.vector(&[&[size], &x.sizes[..]].concat())?;
        Some((self.add("BroadcastTo", &[&x.name, &sizes], &attr), FLOAT))
    }

    fn transpose(&mut self) -> Option<(String, DataType)> {
        let x = self.hidden(2, 4)?;
        let order: Vec<i64> = self.draw.permutation(x.sizes.len()).into_iter().map(|d| d as i64).collect();
        let order = self.vector(&order)?;
        Some((self.add("Transpose", &[&x.name, &order], &[("T", of_type(FLOAT))]), FLOAT))
    }

    fn top(&mut self) -> Option<(String, DataType)> {
        let x = self.hidden(1, 3)?;
        let count = self.draw.between(1, 2);
        let count = self.number(count)?;
        let top = self.add("TopKV2", &[&x.name, &count], &[("T", of_type(FLOAT))]);
        let output = self.draw.below(2);
        Some((format!("{top}:{output}"), [FLOAT, INT][output]))
    }
}
