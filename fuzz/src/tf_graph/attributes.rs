//! Chooses attribute values by kind and name.

use super::Writer;
use import::SupportedOp;
use std::collections::BTreeMap;
use tf::DataType;
use tf::proto::{AttrDef, AttrValue, ListValue, OpDef, attr_value::Value};

/// Types of unrestricted attributes.
const USUAL: &[DataType] = &[
    DataType::Float,
    DataType::Float,
    DataType::Float,
    DataType::Double,
    DataType::Int32,
    DataType::Int64,
    DataType::Half,
    DataType::Bfloat16,
    DataType::Bool,
    DataType::Uint8,
];

/// Equations of `Einsum` with one and two inputs.
const EQUATIONS: &[&str] = &[
    "ab,bc->ac",
    "ab,cb->ac",
    "abc,acd->abd",
    "ab,ab->",
    "ab,ab->ba",
    "a,b->ab",
    "ab->ba",
    "ab->a",
    "aab->ab",
    "abc->cab",
    "...a,ab->...b",
    "abcd,aecd->acbe",
    "ab->",
    "aa->a",
    "abc,abc->abc",
];

impl Writer {
    /// Chooses values for all attributes. Returns them and the type of most inputs, or `None` if a
    /// value cannot be generated.
    pub(super) fn attributes(
        &mut self,
        op: &SupportedOp,
        signature: &OpDef,
    ) -> Option<(BTreeMap<String, AttrValue>, Option<DataType>)> {
        let plain = self.draw.once_in(2);
        let mut values = BTreeMap::new();
        let mut main = None;
        for attr in &signature.attr {
            if attr.name.starts_with('_') {
                continue;
            }
            let value = match attr.r#type.as_str() {
                "type" => {
                    let data_type = self.type_of(op, attr)?;
                    main.get_or_insert(data_type);
                    Value::Type(data_type.number())
                }
                "list(type)" => {
                    let count = 1 + self.draw.below(3);
                    let types: Option<Vec<i32>> =
                        (0..count).map(|_| Some(self.type_of(op, attr)?.number())).collect();
                    Value::List(Box::new(ListValue { r#type: types?, ..ListValue::default() }))
                }
                _ => self.attribute(attr, signature, plain)?,
            };
            values.insert(attr.name.clone(), value.into());
        }
        Some((values, main))
    }

    /// Returns one of the types that the rule accepts, often one of an available tensor.
    fn type_of(&mut self, op: &SupportedOp, attr: &AttrDef) -> Option<DataType> {
        let rule_types =
            op.types.iter().find(|(name, _)| *name == attr.name).map(|(_, types)| types.to_vec());
        let allowed = match attr.allowed_values.as_ref().and_then(|v| v.value.as_ref()) {
            Some(Value::List(list)) => {
                list.r#type.iter().filter_map(|&number| DataType::from_number(number)).collect()
            }
            _ => USUAL.to_vec(),
        };
        let mut types = rule_types.unwrap_or(allowed);
        types.retain(|t| t.primitive_type().is_some());
        let at_hand: Vec<DataType> =
            self.tensors.iter().map(|t| t.data_type).filter(|t| types.contains(t)).collect();
        if !at_hand.is_empty() && self.draw.once_in(2) {
            return Some(self.draw.choose(&at_hand));
        }
        let usual: Vec<DataType> = types.iter().copied().filter(|t| USUAL.contains(t)).collect();
        match (types.is_empty(), usual.is_empty() || self.draw.once_in(4)) {
            (true, _) => None,
            (_, true) => Some(self.draw.choose(&types)),
            _ => Some(self.draw.choose(&usual)),
        }
    }

    /// Returns the value of an attribute. `plain` means strides of 1, no dilation, padding `SAME`,
    /// and channels last, which many ops need to fit together.
    fn attribute(&mut self, attr: &AttrDef, op: &OpDef, plain: bool) -> Option<Value> {
        let default = attr.default_value.as_ref().and_then(|v| v.value.clone());
        let spatial = ["strides", "dilations", "padding", "data_format", "explicit_paddings"];
        if plain && spatial.contains(&attr.name.as_str()) && default.is_some() {
            return default;
        }
        let rank = if op.name.contains("3D") { 5 } else { 4 };
        let window = |draw: &mut crate::Draw, choices: &[i64]| {
            let mut list = vec![1; rank];
            (1..rank - 1).for_each(|d| list[d] = draw.choose(choices));
            Value::List(Box::new(ListValue { i: list, ..ListValue::default() }))
        };
        Some(match (attr.r#type.as_str(), attr.name.as_str()) {
            ("list(int)", "strides") if plain => window(&mut self.draw, &[1]),
            ("list(int)", "strides" | "rates") => window(&mut self.draw, &[1, 2, 3]),
            ("list(int)", "ksize" | "ksizes") => window(&mut self.draw, &[1, 2, 3]),
            ("list(int)", "dilations") => window(&mut self.draw, &[1, 1, 2]),
            ("list(int)", "squeeze_dims") => default?,
            ("list(int)", _) if default.is_some() => default?,
            ("list(float)", "boundaries") => {
                let f = vec![-2.0, -0.5, 0.0, 1.5, 3.0];
                Value::List(Box::new(ListValue { f, ..ListValue::default() }))
            }
            ("string", "equation") => {
                let inputs = 1 + self.draw.below(2);
                let fits: Vec<&str> =
                    EQUATIONS.iter().copied().filter(|e| e.matches(',').count() + 1 == inputs).collect();
                Value::S(self.draw.choose(&fits).as_bytes().to_vec().into())
            }
            ("string", "padding") if plain => Value::S("SAME".into()),
            ("string", _) => match attr.allowed_values.as_ref().and_then(|v| v.value.as_ref()) {
                Some(Value::List(list)) if !list.s.is_empty() => Value::S(self.draw.pick(&list.s)),
                _ => default?,
            },
            ("bool", _) => Value::B(self.draw.once_in(2)),
            ("int", "N" | "num_split" | "num") => Value::I(self.draw.between(attr.minimum.max(1), 4)),
            ("int", "block_size") => Value::I(2),
            ("int", "axis" | "batch_dim" | "seq_dim" | "batch_dims") => Value::I(self.draw.between(-2, 2)),
            ("int", name) if name.ends_with("_mask") => {
                if self.draw.once_in(3) {
                    Value::I(self.draw.between(0, 7))
                } else {
                    Value::I(0)
                }
            }
            ("int", "k" | "depth_radius") => Value::I(self.draw.between(0, 3)),
            ("int", _) => match default {
                Some(default) => default,
                None => Value::I(self.draw.between(attr.minimum.max(0), attr.minimum.max(0) + 3)),
            },
            ("float", _) => match default {
                Some(default) => default,
                None => Value::F(self.draw.choose(&[0.5, 1.0, 2.0])),
            },
            _ => default?,
        })
    }
}
