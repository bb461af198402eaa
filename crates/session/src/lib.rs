//! Runs graphs as TensorFlow's sessions do: node by node, with state, and each node that computes as a kernel of its own.
//!
//! A [`Session`] keeps a graph and its variables. Each run names feeds, fetches and targets; what they need is pruned, typed,
//! inlined and laid out as a plan, which is kept. A dataflow executor walks over it: nodes run when their inputs are there,
//! independent ones on several threads, with TensorFlow 1's control flow as it stands. Nodes with arithmetic are compiled
//! through import, passes, plan and code generation for the types and shapes that come; nodes without run on the host.
//!
//! ```
//! use session::{Options, Session};
//! use shape::Literal;
//!
//! let text = r#"
//!     node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
//!     node { name: "w" op: "VariableV2" attr { key: "dtype" value { type: DT_FLOAT } }
//!            attr { key: "shape" value { shape { dim { size: 2 } } } } }
//!     node { name: "sum" op: "AssignAdd" input: "w" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
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
pub use options::config::{cluster_options, jit_level};
pub use options::{Launches, Options, Output, Rewrite};
pub use recorder::profile::ClusterProfile;
pub use session::Session;
pub use value::{Handle, List, Stack, Strings, Tensor, TensorArray, Value, Variable};
