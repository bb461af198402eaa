//! Feeds generated from a key instead of stored. The key's 64-bit FNV-1a hash seeds SplitMix64,
//! whose top 24 bits are mapped to values by a rule. Only integer arithmetic is used, so the values
//! are reproducible everywhere.

use crate::select::fnv1a64;
use serde_json::Value;
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};

/// Upper bound for the number of elements of a feed.
const MAX_ELEMENTS: i64 = 1 << 28;

/// Generates an array of this shape by `rule`, in the notation of `spec.json`.
pub(super) fn fill(rule: &Value, key: &str, sizes: &[i64]) -> Result<Literal, String> {
    let bad = || format!("cannot generate a value by rule {rule}");
    let count = shape::index::element_count(sizes).filter(|&n| n <= MAX_ELEMENTS).ok_or_else(bad)?;
    let named = rule["dtype"].as_str();
    let integer = |name: &str| rule[name].as_i64().ok_or_else(bad);
    let real = |name: &str| rule[name].as_f64().ok_or_else(bad);
    let bits = (0..count as u64).map(|i| bits24(key, i));
    let floats = |values: Vec<f32>| Literal::from_elements(sizes, &values);
    Ok(match rule["kind"].as_str().ok_or_else(bad)? {
        "uniform" => {
            let (lo, hi) = (real("lo")?, real("hi")?);
            floats(bits.map(|k| (lo + (hi - lo) * (k as f64 / 16_777_216.0)) as f32).collect())
        }
        "pixels" => floats(bits.map(|k| (k >> 16) as f32 / 256.0).collect()),
        "const" => {
            let value = real("value")?;
            with_type(named.unwrap_or("float32"), sizes, (0..count).map(|_| value)).ok_or_else(bad)?
        }
        "ints" => {
            let (lo, hi) = (integer("lo")?, integer("hi")?);
            let span =
                hi.checked_sub(lo).and_then(|s| u64::try_from(s).ok()).filter(|&s| s > 0).ok_or_else(bad)?;
            let values = bits.map(|k| (lo + (k % span) as i64) as f64);
            with_type(named.unwrap_or("int32"), sizes, values).ok_or_else(bad)?
        }
        "onehot" => {
            let columns = *sizes.last().filter(|&&c| c > 0).ok_or_else(bad)?;
            let mut values = vec![0f32; count as usize];
            for row in 0..count / columns {
                let hot = bits24(key, row as u64) % columns as u64;
                values[(row * columns) as usize + hot as usize] = 1.0;
            }
            floats(values)
        }
        _ => return Err(bad()),
    })
}

/// Returns the 24 bits of element `index`.
fn bits24(key: &str, index: u64) -> u64 {
    let seed = fnv1a64(key.as_bytes());
    let z = seed.wrapping_add((index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) >> 40
}

/// Converts values to one of the types that rules name.
fn with_type(name: &str, sizes: &[i64], values: impl Iterator<Item = f64>) -> Option<Literal> {
    let (element_type, integer) = match name {
        "float32" => (PrimitiveType::F32, false),
        "float64" => (PrimitiveType::F64, false),
        "int32" => (PrimitiveType::S32, true),
        "int64" => (PrimitiveType::S64, true),
        _ => return None,
    };
    let scalar = |value: f64| if integer { Scalar::Signed(value as i64) } else { Scalar::Float(value) };
    Some(Literal::from_scalars(ArrayShape::new(element_type, sizes), values.map(scalar)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_recipe_gives_the_published_values() {
        // The check values are in the oracle's README.
        let pixels = fill(&json!({"kind": "pixels"}), "cerebras14/fc/x/0", &[4]).unwrap();
        assert_eq!(pixels.to_vec::<f32>().unwrap(), [0.5546875, 0.29296875, 0.35546875, 0.98046875]);
        let rule = json!({"kind": "uniform", "lo": -0.0625, "hi": 0.0625});
        let kernel = fill(&rule, "cerebras14/init/fc/hidden0/kernel", &[3]).unwrap();
        assert_eq!(kernel.to_vec::<f32>().unwrap(), [-0.036389872, -0.013877161, -0.013625607]);
    }

    #[test]
    fn each_row_of_onehot_has_one_one() {
        let rows = fill(&json!({"kind": "onehot"}), "any", &[5, 3]).unwrap().to_vec::<f32>().unwrap();
        assert!(rows.chunks(3).all(|row| row.iter().sum::<f32>() == 1.0 && row.contains(&1.0)));
    }

    #[test]
    fn wrong_rules_are_refused() {
        assert!(fill(&json!({"kind": "ints", "lo": 3, "hi": 3}), "", &[1]).is_err());
        assert!(fill(&json!({"kind": "normal"}), "", &[1]).is_err());
        assert!(fill(&json!({"kind": "pixels"}), "", &[1 << 40]).is_err());
        assert!(fill(&json!({"kind": "const", "value": 1, "dtype": "string"}), "", &[1]).is_err());
    }
}
