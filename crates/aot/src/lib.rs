//! What a C++ program gets beside the code: the header, the metadata object, the headers of the runtime.
//!
//! Pure functions of an [`Artifact`], which the compiler fills in: nothing here reads a file, a clock or the
//! environment, and equal artifacts give equal bytes.

mod artifact;
mod cpp_name;
mod cpp_type;
mod header;
mod mangle;
mod metadata;
mod object_file;
mod program_shape_proto;
mod runtime_headers;

pub use artifact::{Argument, ArgumentKind, Artifact, MemorySizes, Provenance, ResultEntry, ResultKind};
pub use cpp_name::{CppClass, is_identifier, is_keyword, parse_cpp_class, validate_entry_point};
pub use header::{HeaderOptions, header};
pub use metadata::{
    METADATA_MAGIC, METADATA_VERSION, MetadataOptions, metadata_object, program_shape_symbol,
};
pub use object_file::empty_object;
pub use runtime_headers::runtime_headers;
