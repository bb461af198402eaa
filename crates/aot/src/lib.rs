//! Everything that a program gets besides the code: headers for C++ and C, the Rust module, the
//! metadata object, static archives, and the runtime's headers.
//!
//! All functions are pure functions of an [`Artifact`], which the compiler constructs. They read no
//! files, no clock, and no environment, so equal artifacts yield equal bytes.

mod archive;
mod artifact;
mod c_header;
mod constants_file;
mod cpp_name;
mod cpp_type;
mod embed;
mod header;
mod inspect;
mod mangle;
mod metadata;
mod object_file;
mod program_shape_proto;
mod programs;
mod quantized;
mod runtime_headers;
mod rust_module;
mod shared;
mod sizes;
mod template;
mod web;

pub use archive::{Member, archive};
pub use artifact::{
    Artifact, DeviceDriver, DeviceTarget, MemorySizes, ModuleSize, ProfileCounter, Provenance, Signature,
    SizeFacts,
};
pub use c_header::{CHeaderOptions, c_header};
pub use constants_file::{
    CONSTANTS_FILE_HEADER, CONSTANTS_FILE_MAGIC, CONSTANTS_FILE_VERSION, ConstantsFileHeader, ConstantsMode,
    LayoutHash, constants_file, constants_file_parts,
};
pub use cpp_name::{CppClass, is_identifier, is_keyword, is_taken, parse_cpp_class, validate_entry_point};
pub use header::{FunctionClass, HeaderOptions, functions_header, header};
pub use inspect::{MetadataRecord, function_sizes, read_metadata};
pub use metadata::{
    Accessor, METADATA_MAGIC, METADATA_VERSION, MetadataOptions, accessors, metadata_object,
    program_shape_symbol, read_interface, with_metadata,
};
pub use object_file::empty_object;
pub use programs::{benchmark_program, check_c_program, test_program};
pub use runtime_headers::runtime_headers;
pub use rust_module::{RustOptions, check_rust_module, rust_module};
pub use shared::SharedLibrary;
pub use sizes::shape_text;
pub use web::{WebModule, web_module};
