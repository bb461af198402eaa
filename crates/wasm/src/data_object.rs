//! Objects that contain only data.

use crate::MAGIC;
use crate::encode::{append_custom_section, name, section, unsigned};
use crate::object::id;

/// Base-2 logarithm of the alignment of data.
const ALIGNMENT: u64 = 3;

/// Flag of symbols that a program does not export.
const HIDDEN: u64 = 4;

/// Returns an object that defines symbols with these bytes.
pub fn data_object(symbols: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut object = MAGIC.to_vec();
    let mut import = vec![1];
    name(&mut import, "env");
    name(&mut import, "__linear_memory");
    import.extend([2, 0, 1]);
    section(&mut object, id::IMPORT, &import);
    let count = symbols.len() as u64;
    let (mut data, mut segments, mut table) = (Vec::new(), Vec::new(), Vec::new());
    [&mut data, &mut segments, &mut table].into_iter().for_each(|part| unsigned(part, count));
    for (index, (symbol, bytes)) in symbols.iter().enumerate() {
        // Active, at an address that the linker replaces.
        data.extend([0, 0x41, 0, 0x0b]);
        unsigned(&mut data, bytes.len() as u64);
        data.extend_from_slice(bytes);
        name(&mut segments, &format!(".rodata.{symbol}"));
        unsigned(&mut segments, ALIGNMENT);
        unsigned(&mut segments, 0);
        // A symbol of data: its segment, its offset, and its size.
        table.push(1);
        unsigned(&mut table, HIDDEN);
        name(&mut table, symbol);
        unsigned(&mut table, index as u64);
        unsigned(&mut table, 0);
        unsigned(&mut table, bytes.len() as u64);
    }
    let mut count_section = Vec::new();
    unsigned(&mut count_section, count);
    section(&mut object, id::DATA_COUNT, &count_section);
    section(&mut object, id::DATA, &data);
    let mut linking = vec![2];
    section(&mut linking, 5, &segments);
    section(&mut linking, 8, &table);
    append_custom_section(&mut object, "linking", &linking);
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WasmObject;

    #[test]
    fn symbols_name_their_bytes() {
        let symbols = [("a".to_owned(), b"xyz".to_vec()), ("b".to_owned(), vec![])];
        let object = data_object(&symbols);
        let parsed = WasmObject::parse(&object).unwrap();
        assert_eq!(parsed.defined_symbols().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(&object[parsed.data_range("a").unwrap()], b"xyz");
        assert!(parsed.data_range("b").unwrap().is_empty() && parsed.data_range("c").is_none());
        assert_eq!(parsed.undefined_symbols().count(), 0);
    }
}
