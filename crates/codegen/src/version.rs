//! Versions of a program in one object, each for one processor.

use nest::Program;
use support::{Error, Result};
use target::{Level, Target};

/// A program compiled for one processor.
#[derive(Clone, Copy, Debug)]
pub struct Version<'a> {
    /// The code.
    pub program: &'a Program,
    /// The processor.
    pub target: &'a Target,
}

/// A condition on which the object's entry runs a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requirement {
    /// The processor has the level.
    Level(Level),
    /// The system lets the process use tile registers: in an object for one processor.
    Tiles,
}

impl Requirement {
    /// Name of the version.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Level(level) => level.name(),
            Self::Tiles => "tiles",
        }
    }

    /// The level, if it is one.
    pub(crate) const fn level(self) -> Option<Level> {
        match self {
            Self::Level(level) => Some(level),
            Self::Tiles => None,
        }
    }
}

/// Returns the requirements of the versions: ascending levels, or nothing for a single version
/// without tile registers. Fails if a processor is not exactly a level.
pub(crate) fn requirements(versions: &[Version<'_>]) -> Result<Vec<Requirement>> {
    if let [only] = versions {
        return Ok(only.program.uses_tiles().then_some(Requirement::Tiles).into_iter().collect());
    }
    Ok(levels(versions)?.into_iter().map(Requirement::Level).collect())
}

/// Returns the levels of several versions in ascending order.
fn levels(versions: &[Version<'_>]) -> Result<Vec<Level>> {
    let levels: Vec<Level> = versions.iter().map(|version| level(version.target)).collect::<Result<_>>()?;
    let first = &versions[0].target.triple;
    if !levels.is_sorted_by(|a, b| a < b) || versions.iter().any(|v| v.target.triple != *first) {
        return Err(Error::invalid(
            "the versions of an object must have one triple and ascending x86-64 levels, such as v2,v3,v4",
        ));
    }
    Ok(levels)
}

/// Returns the level that equals a target.
fn level(target: &Target) -> Result<Level> {
    Level::of(target).ok_or_else(|| {
        Error::invalid(format!(
            "triple '{}', cpu '{}', features '{}': several versions in one object are for x86-64, each for one of its \
             levels",
            target.triple.as_str(),
            target.cpu,
            target.features
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rising_levels_of_one_triple_are_versions() {
        let program = Program::default();
        let target = |triple: &str, cpu: &str| Target::new(triple, cpu, "").expect("a triple");
        let of = |targets: &[Target]| {
            let versions: Vec<_> =
                targets.iter().map(|target| Version { program: &program, target }).collect();
            levels(&versions)
        };
        let linux = |cpu: &str| target("x86_64-pc-linux", cpu);
        assert_eq!(of(&[linux(""), linux("x86-64-v3")]).expect("two"), [Level::V1, Level::V3]);
        for wrong in [
            [linux("x86-64-v3"), linux("x86-64-v2")],
            [linux("x86-64-v3"), linux("x86-64-v3")],
            [linux(""), linux("haswell")],
            [linux(""), target("x86_64-pc-windows-msvc", "x86-64-v3")],
            [target("aarch64-unknown-linux-gnu", ""), target("aarch64-unknown-linux-gnu", "x86-64-v3")],
        ] {
            assert!(of(&wrong).is_err(), "{wrong:?}");
        }
    }
}
