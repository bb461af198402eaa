//! The objects that `tf.train.Checkpoint` stores beside the tensors: which variable of which object has which key.

use super::{Checkpoint, Value};
use crate::proto::TrackableObjectGraph;
use prost::Message;
use std::collections::BTreeMap;
use support::{Error, Result};

/// Where the objects stand.
pub const OBJECT_GRAPH_KEY: &str = "_CHECKPOINTABLE_OBJECT_GRAPH";

/// The most bytes of it; decoded it takes a multiple.
const MAX_BYTES: usize = 16 << 20;

impl Checkpoint {
    /// The objects, if the checkpoint has some.
    pub fn object_graph(&self) -> Result<Option<TrackableObjectGraph>> {
        let Some(value) = self.value(OBJECT_GRAPH_KEY)? else { return Ok(None) };
        let error =
            |what: &str| Error::invalid(format!("'{OBJECT_GRAPH_KEY}' of {}: {what}", self.describe()));
        let bytes = match value {
            Value::Strings(sizes, strings) if sizes.is_empty() => {
                strings.into_iter().next().unwrap_or_default()
            }
            _ => return Err(error("it is no string")),
        };
        if bytes.len() > MAX_BYTES {
            return Err(error("it is larger than 16 MiB"));
        }
        TrackableObjectGraph::decode(bytes).map(Some).map_err(|e| error(&e.to_string()))
    }

    /// The keys of the variables that the objects hold, by the variables' names, which are the `shared_name`s of their
    /// handles. A name that several variables have is left out.
    pub fn variable_keys(&self) -> Result<BTreeMap<String, String>> {
        let mut keys: BTreeMap<String, Option<String>> = BTreeMap::new();
        let graph = self.object_graph()?.unwrap_or_default();
        for attribute in graph.nodes.into_iter().flat_map(|node| node.attributes) {
            if attribute.full_name.is_empty() || !self.contains(&attribute.checkpoint_key) {
                continue;
            }
            let key = attribute.checkpoint_key;
            keys.entry(attribute.full_name)
                .and_modify(|known| {
                    if known.as_ref() != Some(&key) {
                        *known = None;
                    }
                })
                .or_insert(Some(key.clone()));
        }
        Ok(keys.into_iter().filter_map(|(name, key)| Some((name, key?))).collect())
    }
}
