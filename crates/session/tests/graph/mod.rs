//! Graphs for tests, written node by node.

#![allow(dead_code, reason = "each test binary uses a part")]

use bytes::Bytes;
use session::{Options, Session};
use shape::Literal;
use tf::DataType;
use tf::proto::attr_value::Value as Attr;
use tf::proto::{
    Dim, FunctionDef, FunctionDefLibrary, GraphDef, NameAttrList, NodeDef, TensorProto, TensorShapeProto,
};

/// A graph under construction.
#[derive(Default)]
pub struct Graph {
    pub def: GraphDef,
}

/// A type as an attribute.
pub fn ty(data_type: DataType) -> Attr {
    Attr::Type(data_type.number())
}

pub const F: DataType = DataType::Float;
pub const I: DataType = DataType::Int32;

/// A shape as an attribute.
pub fn shape(sizes: &[i64]) -> Attr {
    let dim = sizes.iter().map(|&size| Dim { size, name: String::new() }).collect();
    Attr::Shape(TensorShapeProto { dim, unknown_rank: false })
}

pub fn text(text: &str) -> Attr {
    Attr::S(Bytes::copy_from_slice(text.as_bytes()))
}

pub fn func(name: &str) -> Attr {
    Attr::Func(NameAttrList { name: name.to_owned(), ..NameAttrList::default() })
}

pub fn types(types: &[DataType]) -> Attr {
    let list =
        tf::proto::ListValue { r#type: types.iter().map(|t| t.number()).collect(), ..Default::default() };
    Attr::List(Box::new(list))
}

/// A node.
pub fn node(name: &str, op: &str, inputs: &[&str], attributes: &[(&str, Attr)]) -> NodeDef {
    NodeDef {
        name: name.to_owned(),
        op: op.to_owned(),
        input: inputs.iter().map(|&input| input.to_owned()).collect(),
        attr: attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone().into())).collect(),
        ..NodeDef::default()
    }
}

/// A constant.
pub fn constant(name: &str, value: &Literal) -> NodeDef {
    let shape = value.array_shape();
    let data_type =
        DataType::ALL.iter().find(|t| t.primitive_type() == Some(shape.element_type)).expect("a type");
    let dim = shape.sizes().iter().map(|&size| Dim { size, name: String::new() }).collect();
    let proto = TensorProto {
        dtype: data_type.number(),
        tensor_shape: Some(TensorShapeProto { dim, unknown_rank: false }),
        tensor_content: value.bytes().clone(),
        ..TensorProto::default()
    };
    node(name, "Const", &[], &[("dtype", ty(*data_type)), ("value", Attr::Tensor(Box::new(proto)))])
}

/// A constant string.
pub fn string(name: &str, value: &str) -> NodeDef {
    strings(name, &[], &[value])
}

pub fn strings(name: &str, sizes: &[i64], values: &[&str]) -> NodeDef {
    let dim = sizes.iter().map(|&size| Dim { size, name: String::new() }).collect();
    let proto = TensorProto {
        dtype: DataType::String.number(),
        tensor_shape: Some(TensorShapeProto { dim, unknown_rank: false }),
        string_val: values.iter().map(|value| Bytes::copy_from_slice(value.as_bytes())).collect(),
        ..TensorProto::default()
    };
    let value = Attr::Tensor(Box::new(proto));
    node(name, "Const", &[], &[("dtype", ty(DataType::String)), ("value", value)])
}

impl Graph {
    pub fn add(&mut self, name: &str, op: &str, inputs: &[&str], attributes: &[(&str, Attr)]) -> &mut Self {
        self.def.node.push(node(name, op, inputs, attributes));
        self
    }

    pub fn constant(&mut self, name: &str, value: Literal) -> &mut Self {
        self.def.node.push(constant(name, &value));
        self
    }

    pub fn float(&mut self, name: &str, value: f32) -> &mut Self {
        self.constant(name, Literal::scalar(value))
    }

    pub fn int(&mut self, name: &str, value: i32) -> &mut Self {
        self.constant(name, Literal::scalar(value))
    }

    pub fn ints(&mut self, name: &str, values: &[i32]) -> &mut Self {
        self.constant(name, Literal::from_elements(&[values.len() as i64], values))
    }

    pub fn string(&mut self, name: &str, value: &str) -> &mut Self {
        self.def.node.push(string(name, value));
        self
    }

    pub fn placeholder(&mut self, name: &str, data_type: DataType) -> &mut Self {
        self.add(name, "Placeholder", &[], &[("dtype", ty(data_type))])
    }

    pub fn function(&mut self, function: FunctionDef) -> &mut Self {
        self.def.library.get_or_insert_with(FunctionDefLibrary::default).function.push(function);
        self
    }

    pub fn session(&self) -> Session {
        self.session_with(Options::default())
    }

    pub fn session_with(&self, options: Options) -> Session {
        Session::new(self.def.clone(), options).expect("a session")
    }

    /// Fetches one float from a new session.
    pub fn fetch_float(&self, fetch: &str) -> f32 {
        float(&self.session(), &[], fetch)
    }
}

/// Runs the graph and fetches one float.
pub fn float(session: &Session, feeds: &[(&str, Literal)], fetch: &str) -> f32 {
    let results = session.run(feeds, &[fetch], &[]).expect(fetch);
    results[0].to_vec::<f32>().expect("floats")[0]
}

/// Runs the graph and fetches floats.
pub fn floats(session: &Session, feeds: &[(&str, Literal)], fetch: &str) -> Vec<f32> {
    let results = session.run(feeds, &[fetch], &[]).expect(fetch);
    results[0].to_vec::<f32>().expect("floats")
}

pub fn ints(session: &Session, feeds: &[(&str, Literal)], fetch: &str) -> Vec<i32> {
    let results = session.run(feeds, &[fetch], &[]).expect(fetch);
    results[0].to_vec::<i32>().expect("ints")
}

/// The error message of a run that must fail.
pub fn failure(session: &Session, feeds: &[(&str, Literal)], fetches: &[&str], targets: &[&str]) -> String {
    session.run(feeds, fetches, targets).expect_err("a failure").to_string()
}
