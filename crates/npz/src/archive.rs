//! `.npz`: a zip archive whose members are `.npy` files. Members are inflated individually, on
//! request.

use crate::npy::{parse_npy, write_npy};
use bytes::Bytes;
use shape::Literal;
use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};
use support::{Error, Result};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

/// Limit for the number of members.
const MAX_MEMBERS: usize = 100_000;

/// An open archive. Members are identified by array name, without `.npy`.
pub struct Archive {
    zip: ZipArchive<Cursor<Bytes>>,
    members: BTreeMap<String, usize>,
    limit: u64,
}

impl Archive {
    /// Opens an archive. `limit` is the maximum inflated size of each member in bytes.
    pub fn open(data: Bytes, limit: u64) -> Result<Self> {
        let zip = ZipArchive::new(Cursor::new(data)).map_err(|e| bad("archive", e))?;
        if zip.len() > MAX_MEMBERS {
            return Err(Error::invalid(format!(
                ".npz archive has {} members, more than the limit of {MAX_MEMBERS}",
                zip.len()
            )));
        }
        let mut members = BTreeMap::new();
        for index in 0..zip.len() {
            let name = zip.name_for_index(index).ok_or_else(|| bad("archive", "a member without a name"))?;
            let name = name.map_err(|e| bad("archive", e))?;
            members.insert(name.strip_suffix(".npy").unwrap_or(&name).to_owned(), index);
        }
        Ok(Self { zip, members, limit })
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// True if the archive has a member of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// Reads the array of this name, if there is one.
    pub fn get(&mut self, name: &str) -> Result<Option<Literal>> {
        let Some(&index) = self.members.get(name) else { return Ok(None) };
        let mut member = self.zip.by_index(index).map_err(|e| bad(name, e))?;
        let size = member.size();
        if size > self.limit {
            return Err(bad(name, format!("{size} bytes are more than the limit of {}", self.limit)));
        }
        // The size is the archive's claim. Reserve at most the size that deflate can produce from
        // the compressed bytes.
        let plausible = size.min(member.compressed_size().saturating_mul(1032).saturating_add(64));
        let mut data = Vec::new();
        support::attempt(|| data.try_reserve_exact(plausible as usize))
            .map_err(|_| bad(name, format!("cannot allocate {size} bytes; provide more memory")))?;
        (&mut member).take(self.limit + 1).read_to_end(&mut data).map_err(|e| bad(name, e))?;
        if data.len() as u64 != size {
            return Err(bad(
                name,
                format!("expected {size} bytes according to the directory, got {}", data.len()),
            ));
        }
        parse_npy(&data.into()).map(Some).map_err(|e| e.context(format!("member '{name}'")))
    }

    /// Reads the array of this name, or returns an error if there is none.
    pub fn require(&mut self, name: &str) -> Result<Literal> {
        self.get(name)?.ok_or_else(|| Error::invalid(format!("missing member '{name}' in the archive")))
    }

    /// Reads the bytes of a `u8` array that holds a file.
    pub fn require_bytes(&mut self, name: &str) -> Result<Bytes> {
        let literal = self.require(name)?;
        match literal.to_vec::<u8>() {
            Some(_) => Ok(literal.bytes().clone()),
            None => Err(Error::invalid(format!("member '{name}': expected an array of u8"))),
        }
    }
}

/// Creates a deflated archive of these arrays, sorted by name. The output is deterministic.
pub fn write(arrays: &BTreeMap<String, Literal>) -> Result<Vec<u8>> {
    write_with(arrays, CompressionMethod::Deflated)
}

/// Creates an archive with uncompressed members, for simple readers such as `tfcompile/state.h`.
pub fn write_stored(arrays: &BTreeMap<String, Literal>) -> Result<Vec<u8>> {
    write_with(arrays, CompressionMethod::Stored)
}

fn write_with(arrays: &BTreeMap<String, Literal>, method: CompressionMethod) -> Result<Vec<u8>> {
    let options =
        SimpleFileOptions::default().compression_method(method).last_modified_time(DateTime::default());
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, literal) in arrays {
        let member = write_npy(literal);
        let options = options.large_file(member.len() >= u32::MAX as usize);
        zip.start_file(format!("{name}.npy"), options).map_err(|e| bad(name, e))?;
        zip.write_all(&member).map_err(|e| bad(name, e))?;
    }
    Ok(zip.finish().map_err(|e| bad("archive", e))?.into_inner())
}

/// Creates an error about a member or the whole archive.
fn bad(what: &str, why: impl std::fmt::Display) -> Error {
    Error::invalid(format!("malformed .npz, {what}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrays() -> BTreeMap<String, Literal> {
        BTreeMap::from([
            ("feed/0".to_owned(), Literal::from_elements(&[2, 2], &[1.5f32, -0.0, f32::NAN, 4.0])),
            ("meta.json".to_owned(), Literal::from_elements(&[2], b"{}")),
            ("zeros".to_owned(), Literal::from_elements(&[1000], &[0i64; 1000])),
        ])
    }

    #[test]
    fn what_is_written_is_read_again_and_is_deflated() {
        let written = write(&arrays()).unwrap();
        assert!(written.len() < 2000, "8000 zero bytes deflate to a few: {}", written.len());
        assert_eq!(written, write(&arrays()).unwrap());
        let mut archive = Archive::open(written.into(), 1 << 20).unwrap();
        assert_eq!(archive.names().collect::<Vec<_>>(), ["feed/0", "meta.json", "zeros"]);
        for (name, literal) in arrays() {
            assert_eq!(archive.require(&name).unwrap(), literal);
        }
        assert_eq!(archive.get("feed/1").unwrap(), None);
        assert_eq!(&archive.require_bytes("meta.json").unwrap()[..], b"{}");
        assert!(archive.require_bytes("zeros").is_err());
        assert!(archive.require("feed/1").unwrap_err().to_string().contains("'feed/1'"));
    }

    #[test]
    fn stored_members_stand_as_they_are() {
        let written = write_stored(&arrays()).unwrap();
        let member = write_npy(&arrays()["zeros"]);
        assert!(written.windows(member.len()).any(|window| window == member));
        let mut archive = Archive::open(written.into(), 1 << 20).unwrap();
        for (name, literal) in arrays() {
            assert_eq!(archive.require(&name).unwrap(), literal);
        }
    }

    #[test]
    fn a_member_beyond_the_limit_is_refused() {
        let mut archive = Archive::open(write(&arrays()).unwrap().into(), 4096).unwrap();
        assert!(archive.get("zeros").unwrap_err().to_string().contains("limit of 4096"));
        assert!(archive.get("feed/0").unwrap().is_some());
    }

    #[test]
    fn damage_is_an_error() {
        let written = write(&arrays()).unwrap();
        assert!(Archive::open(Bytes::from_static(b"no zip"), 1).is_err());
        assert!(Archive::open(written[..written.len() / 2].to_vec().into(), 1).is_err());
        // Every single-byte change is either detected or does not affect the arrays.
        for at in 0..written.len() {
            let mut damaged = written.clone();
            damaged[at] ^= 0x55;
            let Ok(mut archive) = Archive::open(damaged.into(), 1 << 16) else { continue };
            for name in ["feed/0", "meta.json", "zeros"] {
                if let Ok(Some(literal)) = archive.get(name) {
                    assert_eq!(literal, arrays()[name], "byte {at}");
                }
            }
        }
    }
}
