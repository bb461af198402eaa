//! The MNIST set of handwritten digits: four IDX files in a directory.
//!
//! Names and contents after Y. LeCun, C. Cortes and C. Burges, "The MNIST database of handwritten digits".

use bytes::Bytes;
use shape::{Literal, PrimitiveType};
use std::path::Path;
use support::{Error, Result};

/// The most bytes of a file when it is unpacked; MNIST's largest has 47 million.
const MAX_BYTES: u64 = 1 << 30;

/// Digits to train on, and others to test with.
pub(crate) struct Mnist {
    pub(crate) train: Digits,
    pub(crate) test: Digits,
}

/// Images with their labels.
pub(crate) struct Digits {
    /// Grey values, row by row, image by image.
    pub(crate) images: Bytes,
    /// How many of them make an image.
    pub(crate) row: usize,
    pub(crate) labels: Bytes,
}

impl Mnist {
    /// Reads the four files. An error names the file that is missing, malformed, or does not fit the others.
    pub(crate) fn read(directory: &Path) -> Result<Self> {
        let (train, test) = (Digits::read(directory, "train")?, Digits::read(directory, "t10k")?);
        if train.row != test.row {
            return Err(Error::invalid(format!(
                "images to train on have {} pixels, those to test with {}",
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
        let (of_labels, labels) = array(directory, &format!("{part}-labels"), 1)?;
        let count = labels.array_shape().size(0);
        if sizes[0] != count {
            return Err(Error::invalid(format!(
                "'{name}' has {} images, '{of_labels}' {count} labels",
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

/// The array of bytes in a file that is called so, under one of the spellings that are about, and the file's name.
fn array(directory: &Path, stem: &str, rank: usize) -> Result<(String, Literal)> {
    let spellings = ["-", "."]
        .into_iter()
        .flat_map(|mark| ["", ".gz"].map(|end| format!("{stem}{mark}idx{rank}-ubyte{end}")));
    let spellings: Vec<String> = spellings.collect();
    let found = spellings.iter().find(|name| directory.join(name).is_file());
    let name = found.ok_or_else(|| {
        Error::invalid(format!("there is no file '{}', nor one of that name with .gz", spellings[0]))
    })?;
    let array = npz::parse_idx(&tf::source::read_bytes(&directory.join(name))?, MAX_BYTES)
        .map_err(|error| error.context(format!("'{name}'")))?;
    let shape = array.array_shape();
    if shape.element_type != PrimitiveType::U8 || shape.rank() != rank {
        return Err(Error::invalid(format!("'{name}' is {shape}; bytes of {rank} dimensions are wanted")));
    }
    Ok((name.clone(), array))
}
