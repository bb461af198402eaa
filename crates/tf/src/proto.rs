//! TensorFlow's protocol buffers, written by hand, with the fields that a compiler needs. The
//! decoder skips other fields.
//!
//! Names and numbers are those of the `.proto` files. Byte fields share the file's memory.

mod checkpoint;
mod config;
mod function;
mod graph;
mod node;
mod saved_model;
mod session_config;
mod step_stats;
mod tensor;

pub use checkpoint::{
    BundleEntryProto, BundleHeaderProto, ObjectReference, SavedSlice, SavedSliceMeta, SavedTensorSliceMeta,
    SavedTensorSlices, SaverDef, SerializedTensor, SlotVariableReference, TensorSliceProto, TrackableObject,
    TrackableObjectGraph, slice_extent,
};
pub use config::{Config, Dimension, Feed, Fetch, TensorId, Variable};
pub use function::{ArgAttrs, ArgDef, AttrDef, FunctionDef, FunctionDefLibrary, GradientDef, OpDef};
pub use graph::{GraphDef, VersionDef};
pub use node::{AttrValue, ListValue, NameAttrList, NodeDef, attr_value};
pub use saved_model::{
    AssetFileDef, BytesList, CollectionDef, MetaGraphDef, MetaInfoDef, NodeList, SavedModel, SignatureDef,
    TensorInfo,
};
pub use session_config::{ConfigProto, GpuOptions, GraphOptions, OptimizerOptions};
pub use step_stats::{
    AllocationDescription, AllocationRecord, AllocatorMemoryUsed, DeviceStepStats, MemoryStats,
    NodeExecStats, NodeOutput, RunMetadata, StepStats, TensorDescription,
};
pub use tensor::{Dim, TensorProto, TensorShapeProto};
