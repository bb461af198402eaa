//! Runs TensorFlow graphs in Rust programs, without TensorFlow. The library form of
//! `tfcompile run --jit`.
//!
//! A [`Session`] holds a graph and the values of its variables. [`Session::run`] computes the
//! outputs that it is asked for and nothing else. Every node that computes is compiled to machine
//! code the first time it runs. [`Options::jit`], or a TensorFlow `ConfigProto` in
//! [`Options::config`], selects whether whole groups of nodes (clusters) are compiled together,
//! as TensorFlow does with XLA. [`Session::run_traced`] also returns a [`Trace`], which
//! TensorFlow's tools and web browsers display.
//!
//! To compile a graph ahead of time, with no compiler in the final program, use the crates
//! `tfcompile-build` and `tfcompile-runtime` instead.
//!
//! # Run a saved model
//!
//! ```no_run
//! use tfcompile::{Literal, Options, Session};
//!
//! let session = Session::open("path/to/saved_model", &Options::default())?;
//! let image = Literal::from_elements(&[1, 784], &[0f32; 784]);
//! let results = session.run(&[("image", image)], &["scores"], &[])?;
//! println!("{:?}", results[0].to_vec::<f32>());
//! # Ok::<(), tfcompile::Error>(())
//! ```
//!
//! # Train a variable
//!
//! One step of gradient descent on the squared error of `w * x - y`, three times:
//! `w -= 0.5 * (w * x - y) * x`.
//!
//! ```
//! use tfcompile::{JitLevel, Literal, Options, Session, TimelineOptions, parse_graph};
//!
//! let float = |name: &str| format!(r#"attr {{ key: "{name}" value {{ type: DT_FLOAT }} }}"#);
//! let scalar = r#"attr { key: "shape" value { shape { } } }"#;
//! let half = r#"attr { key: "value" value {
//!     tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0.5 } } }"#;
//! let node = |name: &str, op: &str, inputs: &[&str], attributes: &str| {
//!     let inputs: String = inputs.iter().map(|input| format!(r#" input: "{input}""#)).collect();
//!     format!(r#"node {{ name: "{name}" op: "{op}"{inputs} {attributes} }}"#)
//! };
//! let (dtype, t) = (float("dtype"), float("T"));
//! let text = [
//!     node("x", "Placeholder", &[], &dtype),
//!     node("y", "Placeholder", &[], &dtype),
//!     node("rate", "Const", &[], &format!("{dtype} {half}")),
//!     node("w", "VarHandleOp", &[], &format!("{dtype} {scalar}")),
//!     node("value", "ReadVariableOp", &["w"], &dtype),
//!     node("product", "Mul", &["value", "x"], &t),
//!     node("error", "Sub", &["product", "y"], &t),
//!     node("gradient", "Mul", &["error", "x"], &t),
//!     node("train", "ResourceApplyGradientDescent", &["w", "rate", "gradient"], &t),
//! ];
//! let graph = parse_graph(text.concat().into_bytes())?;
//!
//! let session = Session::new(graph, &Options { jit: Some(JitLevel::On1), ..Options::default() })?;
//! session.set_variable("w", &Literal::scalar(0f32))?;
//! let feeds = [("x", Literal::scalar(1f32)), ("y", Literal::scalar(2f32))];
//! for expected in [-2f32, -1.0, -0.5] {
//!     let results = session.run(&feeds, &["error"], &["train"])?;
//!     assert_eq!(results[0].to_vec::<f32>(), Some(vec![expected]));
//! }
//! assert_eq!(session.variable("w")?.and_then(|w| w.to_vec::<f32>()), Some(vec![1.75]));
//!
//! // The timeline has one bar for the whole cluster.
//! let (_, trace) = session.run_traced(&feeds, &["error"], &["train"])?;
//! assert!(trace.timeline(TimelineOptions::default()).contains(r#""name": "_XlaLaunch""#));
//! # Ok::<(), tfcompile::Error>(())
//! ```

mod options;
mod session;
mod trace;

pub use self::trace::Trace;
pub use ::cluster::{Flags as TfXlaFlags, JitLevel};
pub use ::session::{ClusterProfile, Copies, DeviceKind, Output};
pub use ::shape::{ArrayShape, Literal, PrimitiveType};
pub use ::support::{Error, ErrorKind, Result};
pub use ::trace::TimelineOptions;
pub use compiler::{PlanOptions, UnitCache};
pub use options::{Options, parse_config, parse_graph};
pub use session::Session;
pub use tf::proto::{ConfigProto, GraphDef, RunMetadata};
