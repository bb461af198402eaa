//! Versions of StableHLO.

use std::fmt;
use std::str::FromStr;
use support::Error;

/// A version of StableHLO, as defined in `docs/compatibility.md` of openxla/stablehlo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Changes when compatibility ends.
    pub major: u32,
    /// Changes with new operations, attributes, and types.
    pub minor: u32,
    /// Changes with anything else.
    pub patch: u32,
}

impl Version {
    /// The first version with a compatibility guarantee.
    pub const OLDEST: Self = Self::new(0, 9, 0);
    /// The newest version whose operations are supported.
    pub const NEWEST: Self = Self::new(1, 20, 0);

    /// Creates a version.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }
}

impl Default for Version {
    /// The oldest version that supports every type and operation that the writer emits.
    fn default() -> Self {
        Self::new(1, 8, 0)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for Version {
    type Err = Error;

    /// Parses `MAJOR.MINOR.PATCH`, between the oldest and the newest version.
    fn from_str(text: &str) -> Result<Self, Error> {
        let numbers: Option<Vec<u32>> = text.split('.').map(|number| number.parse().ok()).collect();
        let version = match numbers.as_deref() {
            Some(&[major, minor, patch]) => Self::new(major, minor, patch),
            _ => {
                return Err(Error::invalid(format!(
                    "'{text}' is not a version of StableHLO: expected MAJOR.MINOR.PATCH, such as {}",
                    Self::default()
                )));
            }
        };
        if !(Self::OLDEST..=Self::NEWEST).contains(&version) {
            return Err(Error::unsupported(format!(
                "StableHLO {version} is not supported: expected a version from {} to {}",
                Self::OLDEST,
                Self::NEWEST
            )));
        }
        Ok(version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_three_numbers_in_range() {
        assert_eq!("1.4.0".parse::<Version>().expect("a version"), Version::new(1, 4, 0));
        for bad in ["", "1.4", "1.4.0.0", "1.x.0", "v1.4.0", "-1.4.0"] {
            assert!(bad.parse::<Version>().expect_err(bad).message().contains("MAJOR.MINOR.PATCH"));
        }
        for far in ["0.8.9", "1.21.0", "2.0.0"] {
            assert!(far.parse::<Version>().expect_err(far).message().contains("0.9.0 to 1.20.0"));
        }
    }
}
