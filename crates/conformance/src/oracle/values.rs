//! Recorded arrays, and comparing bytes that came out of a program with them.

use crate::compare::matches;
use crate::tolerance::Tolerance;
use npz::Archive;
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use std::path::Path;

/// The largest array of the oracle's files.
const MEMBER_LIMIT: u64 = 1 << 30;

/// Opens an archive of recorded arrays.
pub(super) fn open(path: &Path) -> Result<Archive, String> {
    let data = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Archive::open(data.into(), MEMBER_LIMIT).map_err(|e| format!("{}: {e}", path.display()))
}

/// A member that has to be there.
pub(super) fn require(archive: &mut Archive, name: &str) -> Result<Literal, String> {
    archive.require(name).map_err(|e| e.to_string())
}

/// Compares an output with its recorded values; where `positions` are given, only the elements there were recorded. The
/// answer is the largest error as a share of what is tolerated.
pub(super) fn check(
    what: &str,
    got: &[u8],
    want: &Literal,
    positions: Option<&Literal>,
    tolerance: Tolerance,
) -> Result<f64, String> {
    let element_type = want.array_shape().element_type;
    let got =
        flat(got, element_type).ok_or_else(|| format!("{what}: not a whole number of {element_type}"))?;
    let count = got.array_shape().element_count();
    let positions = match positions {
        Some(positions) => positions.to_i64s().ok_or_else(|| format!("{what}: positions are no integers"))?,
        None => (0..want.array_shape().element_count()).collect(),
    };
    if positions.len() as i64 != want.array_shape().element_count()
        || positions.iter().any(|&at| !(0..count).contains(&at))
    {
        return Err(format!("{what}: {count} elements do not fit the recorded {}", want.array_shape()));
    }
    let mut largest = 0f64;
    for (k, &at) in positions.iter().enumerate() {
        let (value, wanted) = (got.scalar_at(at as usize), want.scalar_at(k));
        if !matches(value, wanted, tolerance) {
            return Err(format!("{what}: element {at} is {value:?}, want {wanted:?} within {tolerance:?}"));
        }
        largest = largest.max(share(value, wanted, tolerance));
    }
    Ok(largest)
}

/// The error of a number that is near enough, as a share of what is tolerated; 0 of what is equal or no finite number.
fn share(got: Scalar, want: Scalar, tolerance: Tolerance) -> f64 {
    match (got, want) {
        (Scalar::Float(got), Scalar::Float(want)) if got != want && (got - want).is_finite() => {
            (got - want).abs() / (tolerance.absolute + tolerance.relative * want.abs())
        }
        _ => 0.0,
    }
}

/// Compares an output that was recorded whole, like [`check`].
pub(super) fn check_whole(
    what: &str,
    got: &[u8],
    want: &Literal,
    tolerance: Tolerance,
) -> Result<f64, String> {
    if got.len() != want.bytes().len() {
        return Err(format!(
            "{what}: {} bytes, want {} for {}",
            got.len(),
            want.bytes().len(),
            want.array_shape()
        ));
    }
    check(what, got, want, None, tolerance)
}

/// Bytes as a vector of elements.
pub(super) fn flat(bytes: &[u8], element_type: PrimitiveType) -> Option<Literal> {
    let count = bytes.len() / element_type.byte_size();
    Literal::from_bytes(ArrayShape::new(element_type, &[count as i64]), bytes.to_vec().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_samples_are_compared_at_their_positions() {
        let got: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let want = Literal::from_elements(&[2], &[2.0f32, 4.0]);
        let at = |positions: &[i32]| {
            check("y", &got, &want, Some(&Literal::from_elements(&[2], positions)), Tolerance::EXACT)
        };
        assert_eq!(at(&[1, 3]), Ok(0.0));
        assert!(at(&[1, 2]).unwrap_err().contains("element 2"));
        assert!(at(&[1, 4]).is_err(), "outside of the result");
        assert!(check_whole("y", &got, &want, Tolerance::EXACT).unwrap_err().contains("16 bytes, want 8"));
        assert!(check_whole("y", &got[..8], &want, Tolerance::EXACT).is_err());
        assert!(check_whole("y", &got[..7], &want, Tolerance::EXACT).is_err());
        let near = Tolerance { absolute: 2.0, relative: 0.5 };
        assert_eq!(check_whole("y", &got[..8], &want, near), Ok(0.5), "2 beside 4, of 4 that are tolerated");
    }
}
