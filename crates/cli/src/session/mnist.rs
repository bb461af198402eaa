//! The MNIST set of handwritten digits: four IDX files in a directory.
//!
//! Source of names and contents: Y. LeCun, C. Cortes, and C. Burges, "The MNIST database of
//! handwritten digits".

use bytes::Bytes;
use shape::{Literal, PrimitiveType};
use std::path::Path;
use support::{Error, Result};

/// Maximum size in bytes of an unpacked file. MNIST's largest has 47 million bytes.
const MAX_BYTES: u64 = 1 << 30;

/// Training set and test set.
pub(crate) struct Mnist {
    pub(crate) train: Digits,
    pub(crate) test: Digits,
}

/// Images with their labels.
pub(crate) struct Digits {
    /// Gray values, row by row, image by image.
    pub(crate) images: Bytes,
    /// Number of gray values per image.
    pub(crate) row: usize,
    pub(crate) labels: Bytes,
}

impl Mnist {
    /// Reads the four files. The error names a file that is missing, malformed, or inconsistent
    /// with the others.
    pub(crate) fn read(directory: &Path) -> Result<Self> {
        let (train, test) = (Digits::read(directory, "train")?, Digits::read(directory, "t10k")?);
        if train.row != test.row {
            return Err(Error::invalid(format!(
                "training images have {} pixels, but test images have {}",
                train.row, test.row
            )));
        }
        Ok(Self { train, test })
    }
}

impl Digits {
    fn read(directory: &Path, part: &str) -> Result<Self> {
        let (name, images) = array(directory, &format!("{part}-images"), 3)?;
        let sizes = images.array_shape().sizes();
        let (labels_name, labels) = array(directory, &format!("{part}-labels"), 1)?;
        let count = labels.array_shape().size(0);
        if sizes[0] != count {
            return Err(Error::invalid(format!(
                "'{name}' has {} images, but '{labels_name}' has {count} labels",
                sizes[0]
            )));
        }
        if sizes.contains(&0) {
            return Err(Error::invalid(format!("'{name}' has no pixels: its sizes are {sizes:?}")));
        }
        let row = images.bytes().len() / sizes[0] as usize;
        Ok(Self { images: images.bytes().clone(), row, labels: labels.bytes().clone() })
    }
}

/// Reads the array of bytes from a file with one of the names in common use for `stem`. Returns it
/// with the file's name.
fn array(directory: &Path, stem: &str, rank: usize) -> Result<(String, Literal)> {
    let spellings = ["-", "."]
        .into_iter()
        .flat_map(|mark| ["", ".gz"].map(|end| format!("{stem}{mark}idx{rank}-ubyte{end}")));
    let spellings: Vec<String> = spellings.collect();
    let file = spellings.iter().find(|name| directory.join(name).is_file());
    let name = file
        .ok_or_else(|| Error::invalid(format!("cannot find '{}' or the same name with .gz", spellings[0])))?;
    let array = npz::parse_idx(&tf::source::read_bytes(&directory.join(name))?, MAX_BYTES)
        .map_err(|error| error.context(format!("'{name}'")))?;
    let shape = array.array_shape();
    if shape.element_type != PrimitiveType::U8 || shape.rank() != rank {
        return Err(Error::invalid(format!(
            "'{name}' is {shape}, expected an array of bytes with {rank} dimensions"
        )));
    }
    Ok((name.clone(), array))
}
