//! Runs graphs as TensorFlow sessions do: node by node, with state. Each node that computes becomes
//! its own kernel.
//!
//! A [`Session`] keeps a graph and its variables. Each run names feeds, fetches, and targets. The
//! session prunes the graph to what they need, infers types, inlines functions, and caches the
//! resulting plan. A dataflow executor walks the plan: a node runs as soon as its inputs are
//! available, independent nodes run on several threads, and TensorFlow 1 control flow is executed
//! as is. Nodes with arithmetic are compiled through import, passes, planning, and code generation
//! for the types and shapes that occur. The host runs all other nodes.
//!
//! ```
//! use session::{Options, Session};
//! use shape::Literal;
//!
//! let text = r#"
//!     node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
//!     node { name: "w" op: "VariableV2" attr { key: "dtype" value { type: DT_FLOAT } }
//!            attr { key: "shape" value { shape { dim { size: 2 } } } } }
//!     node { name: "sum" op: "AssignAdd" input: "w" input: "x"
//!            attr { key: "T" value { type: DT_FLOAT } } }
//! "#;
//! let graph = tf::source::parse_graph_def(text.into(), "example")?;
//! let session = Session::new(graph, Options::default())?;
//! session.set_variable("w", &Literal::from_elements(&[2], &[1f32, 2.0]))?;
//! let x = Literal::from_elements(&[2], &[10f32, 20.0]);
//! session.run(&[("x", x.clone())], &[], &["sum"])?;
//! let results = session.run(&[("x", x)], &["sum"], &[])?;
//! assert_eq!(results[0].to_vec::<f32>(), Some(vec![21.0, 42.0]));
//! # Ok::<(), support::Error>(())
//! ```

mod buffer;
mod clusters;
mod context;
mod device;
mod executor;
mod gpu;
mod kernels;
mod lock;
mod op_kind;
mod ops;
mod options;
mod placement;
mod plan;
mod recorder;
mod resources;
mod session;
mod shared;
mod signature;
mod value;

pub use buffer::Buffer;
pub use clusters::clusters;
pub use device::Device;
pub use gpu::{Copies, GpuOptions};
pub use jit::DeviceKind;
pub use options::config::{cluster_options, jit_level};
pub use options::{Launches, Options, Output, Rewrite};
pub use recorder::profile::ClusterProfile;
pub use session::Session;
pub use value::{Handle, List, Stack, Strings, Tensor, TensorArray, Value, Variable};
