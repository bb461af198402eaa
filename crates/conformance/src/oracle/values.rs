//! Recorded arrays, and comparison with a program's output bytes.

use crate::compare::matches;
use crate::tolerance::Tolerance;
use npz::Archive;
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use std::path::Path;

/// Maximum size of an array in the oracle's files.
const MEMBER_LIMIT: u64 = 1 << 30;

/// Opens an archive of recorded arrays.
pub(super) fn open(path: &Path) -> Result<Archive, String> {
    let data = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Archive::open(data.into(), MEMBER_LIMIT).map_err(|e| format!("{}: {e}", path.display()))
}

/// Reads a required member.
pub(super) fn require(archive: &mut Archive, name: &str) -> Result<Literal, String> {
    archive.require(name).map_err(|e| e.to_string())
}

/// Compares an output with its recorded values. With `positions`, only the elements there were
/// recorded. Returns the largest error relative to the tolerance.
pub(super) fn check(
    what: &str,
    got: &[u8],
    want: &Literal,
    positions: Option<&Literal>,
    tolerance: Tolerance,
) -> Result<f64, String> {
    let element_type = want.array_shape().element_type;
    let got = flat(got, element_type)
        .ok_or_else(|| format!("{what}: the size is not a multiple of {element_type}"))?;
    let count = got.array_shape().element_count();
    let positions = match positions {
        Some(positions) => {
            positions.to_i64s().ok_or_else(|| format!("{what}: expected integer positions"))?
        }
        None => (0..want.array_shape().element_count()).collect(),
    };
    if positions.len() as i64 != want.array_shape().element_count()
        || positions.iter().any(|&at| !(0..count).contains(&at))
    {
        return Err(format!("{what}: {count} elements do not match the recorded {}", want.array_shape()));
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

/// Returns the error of an accepted number relative to the tolerance; 0 for equal or nonfinite
/// numbers.
fn share(got: Scalar, want: Scalar, tolerance: Tolerance) -> f64 {
    match (got, want) {
        (Scalar::Float(got), Scalar::Float(want)) if got != want && (got - want).is_finite() => {
            (got - want).abs() / (tolerance.absolute + tolerance.relative * want.abs())
        }
        _ => 0.0,
    }
}

/// Compares an output that was recorded completely, like [`check`].
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

/// Converts bytes to a vector of elements.
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
        assert!(at(&[1, 4]).is_err(), "outside the result");
        assert!(check_whole("y", &got, &want, Tolerance::EXACT).unwrap_err().contains("16 bytes, want 8"));
        assert!(check_whole("y", &got[..8], &want, Tolerance::EXACT).is_err());
        assert!(check_whole("y", &got[..7], &want, Tolerance::EXACT).is_err());
        let near = Tolerance { absolute: 2.0, relative: 0.5 };
        assert_eq!(
            check_whole("y", &got[..8], &want, near),
            Ok(0.5),
            "2 relative to 4 has half of the tolerance of 4"
        );
    }
}
