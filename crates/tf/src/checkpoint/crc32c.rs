//! CRC-32C (Castagnoli), in the masked form that LevelDB stores.

/// The polynomial, bit-reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[k][b]` is the contribution of byte `b` to the checksum `k` bytes later.
const TABLES: [[u32; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut later = 1;
    while later < 8 {
        let mut byte = 0;
        while byte < 256 {
            let crc = tables[later - 1][byte];
            tables[later][byte] = tables[0][(crc & 0xff) as usize] ^ (crc >> 8);
            byte += 1;
        }
        later += 1;
    }
    tables
};

/// Masked checksum of some bytes. The rotation and offset keep the checksum strong for data that
/// itself contains checksums.
pub(super) fn masked(bytes: &[u8]) -> u32 {
    mask(extend(0, bytes))
}

/// Extends the checksum `crc` by more bytes.
pub(super) fn extend(crc: u32, bytes: &[u8]) -> u32 {
    let mut chunks = bytes.chunks_exact(8);
    let mut crc = !crc;
    for chunk in &mut chunks {
        let byte = |i: usize| chunk[i] ^ if i < 4 { (crc >> (8 * i)) as u8 } else { 0 };
        crc = (0..8).fold(0, |sum, i| sum ^ TABLES[7 - i][usize::from(byte(i))]);
    }
    let rest = chunks.remainder().iter();
    !rest.fold(crc, |crc, &byte| TABLES[0][usize::from(crc as u8 ^ byte)] ^ (crc >> 8))
}

/// Masks a checksum for storage.
pub(super) fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// True if a stored checksum is the computed one. Under the fuzzer every checksum is right, because
/// it would find no other errors otherwise.
pub(super) fn fits(stored: u32, computed: u32) -> bool {
    cfg!(fuzzing) || stored == computed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_rfc_3720() {
        assert_eq!(extend(0, b"123456789"), 0xe306_9283);
        assert_eq!(extend(0, &[0; 32]), 0x8a91_36aa);
        assert_eq!(extend(0, &[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn a_checksum_can_be_taken_in_parts() {
        let bytes: Vec<u8> = (0..100u8).map(|i| i.wrapping_mul(37)).collect();
        for cut in 0..bytes.len() {
            assert_eq!(extend(extend(0, &bytes[..cut]), &bytes[cut..]), extend(0, &bytes), "{cut}");
        }
    }
}
