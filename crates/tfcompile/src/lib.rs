//! TensorFlow graphs in sessions, for Rust programs: what `tfcompile run --jit` does, as a library.
//!
//! A [`Session`] keeps a graph and its variables and runs parts of it: node by node, or with the nodes that go together
//! compiled into one, as [`Options::jit`] or a TensorFlow `ConfigProto` says. A traced run answers with a [`Trace`], which
//! TensorFlow's tools and browsers read.
//!
//! ```
//! use tfcompile::{JitLevel, Literal, Options, Session, TimelineOptions, parse_graph};
//!
//! // Least squares: w -= 0.5 * (w * x - y) * x
//! let float = |name: &str| format!(r#"attr {{ key: "{name}" value {{ type: DT_FLOAT }} }}"#);
//! let binary = |name: &str, op: &str, a: &str, b: &str| {
//!     format!(r#"node {{ name: "{name}" op: "{op}" input: "{a}" input: "{b}" {} }}"#, float("T"))
//! };
//! let text = [
//!     format!(r#"node {{ name: "x" op: "Placeholder" {} }}"#, float("dtype")),
//!     format!(r#"node {{ name: "y" op: "Placeholder" {} }}"#, float("dtype")),
//!     format!(r#"node {{ name: "rate" op: "Const" {} attr {{ key: "value" value {{
//!                tensor {{ dtype: DT_FLOAT tensor_shape {{ }} float_val: 0.5 }} }} }} }}"#, float("dtype")),
//!     format!(r#"node {{ name: "w" op: "VarHandleOp" {} attr {{ key: "shape" value {{ shape {{ }} }} }} }}"#, float("dtype")),
//!     format!(r#"node {{ name: "value" op: "ReadVariableOp" input: "w" {} }}"#, float("dtype")),
//!     binary("product", "Mul", "value", "x"),
//!     binary("error", "Sub", "product", "y"),
//!     binary("gradient", "Mul", "error", "x"),
//!     format!(r#"node {{ name: "train" op: "ResourceApplyGradientDescent" input: "w" input: "rate" input: "gradient" {} }}"#,
//!             float("T")),
//! ];
//! let graph = parse_graph(text.concat().into_bytes())?;
//!
//! let session = Session::new(graph, &Options { jit: Some(JitLevel::On1), ..Options::default() })?;
//! session.set_variable("w", &Literal::scalar(0f32))?;
//! let feeds = [("x", Literal::scalar(1f32)), ("y", Literal::scalar(2f32))];
//! for want in [-2f32, -1.0, -0.5] {
//!     let results = session.run(&feeds, &["error"], &["train"])?;
//!     assert_eq!(results[0].to_vec::<f32>(), Some(vec![want]));
//! }
//! assert_eq!(session.variable("w")?.and_then(|w| w.to_vec::<f32>()), Some(vec![1.75]));
//!
//! // One bar for all that is computed.
//! let (_, trace) = session.run_traced(&feeds, &["error"], &["train"])?;
//! assert!(trace.timeline(TimelineOptions::default()).contains(r#""name": "_XlaLaunch""#));
//! # Ok::<(), tfcompile::Error>(())
//! ```

mod options;
mod session;
mod trace;

pub use self::trace::Trace;
pub use ::cluster::{Flags as TfXlaFlags, JitLevel};
pub use ::session::{ClusterProfile, Output};
pub use ::shape::{ArrayShape, Literal, PrimitiveType};
pub use ::support::{Error, ErrorKind, Result};
pub use ::trace::TimelineOptions;
pub use compiler::{PlanOptions, UnitCache};
pub use options::{Options, parse_config, parse_graph};
pub use session::Session;
pub use tf::proto::{ConfigProto, GraphDef, RunMetadata};
