//! WebAssembly's binary format: LLVM's relocatable objects, custom sections, and a linker that
//! turns one object into a module that engines run.
//!
//! Sources: the WebAssembly core specification, and "WebAssembly Object File Linking" of its tool
//! conventions. The crate trusts no offset of its input.

mod cursor;
mod data_object;
mod encode;
mod link;
mod object;
mod relocation;

pub use cursor::Cursor;
pub use data_object::data_object;
pub use encode::{append_custom_section, section};
pub use link::{LinkOptions, LinkedModule, Threads, link};
pub use object::{FunctionSize, WasmObject};

/// First bytes of objects and modules: the magic number and version 1.
pub const MAGIC: [u8; 8] = *b"\0asm\x01\0\0\0";

/// Returns the contents of all custom sections with a name.
///
/// Fails if the file is no WebAssembly.
pub fn custom_sections<'a>(file: &'a [u8], name: &str) -> support::Result<Vec<&'a [u8]>> {
    let mut found = Vec::new();
    for section in object::sections(file)? {
        if section.id == 0 {
            let mut cursor = Cursor::new(section.bytes);
            if cursor.name()? == name {
                found.push(cursor.rest());
            }
        }
    }
    Ok(found)
}
