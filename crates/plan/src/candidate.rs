//! Candidates: the alternative ways to compute one contraction, each with a stable name.
//!
//! The planner chooses one of them, by rules or by a cost model; a table of measured
//! [`Choices`](crate::Choices) may override it. The list is a pure function of the kernel, the
//! target, and the options. It is short enough to measure every entry.

use crate::packing::Packing;
use std::fmt;

/// Upper bound of the number of candidates for one contraction.
pub const MAX_CANDIDATES: usize = 12;

/// One way to compute a contraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// A dot in register tiles.
    Dot {
        /// Rows per tile.
        rows: u32,
        /// Vectors of columns per tile.
        vectors: u32,
        /// Memory from which the right operand is read.
        right: Packing,
        /// True if panels are the outer loop and rows the inner one.
        panels_outside: bool,
        /// Summands per pass.
        k_block: i64,
    },
    /// A convolution in tiles of pixels by vectors of output features.
    Dense {
        /// Upper bound of the pixels per tile.
        pixels: u32,
        /// Vectors of output features per tile.
        vectors: u32,
        /// True if panels are the outer loop and pixels the inner one.
        panels_outside: bool,
    },
    /// A depthwise convolution.
    Depthwise {
        /// Upper bound of the pixels per tile.
        pixels: u32,
        /// Vectors of features per tile.
        vectors: u32,
        /// True if blocks of features are the outer loop and pixels the inner one.
        blocks_outside: bool,
    },
    /// A Winograd convolution.
    Winograd {
        /// Outputs per patch along each dimension.
        outputs: u32,
    },
    /// The gradient of a convolution with respect to its kernel.
    Gradient {
        /// Upper bound of the rows per tile.
        rows: u32,
        /// Vectors of output features per tile.
        vectors: u32,
        /// Adjacent taps per tile.
        taps: u32,
    },
}

impl Candidate {
    /// Parses a candidate's name.
    pub fn parse(name: &str) -> Option<Self> {
        let mut words = name.split(',');
        let mut next = |key: &str| words.next()?.strip_prefix(key)?.strip_prefix('=');
        let kind = name.split('=').next()?;
        let candidate = match kind {
            "tile" => {
                let (rows, vectors) = sizes(next("tile")?)?;
                let right = match next("right")? {
                    "in-place" => Packing::None,
                    "constant" => Packing::Constant,
                    "packed" => Packing::Scratch,
                    _ => return None,
                };
                let panels_outside = outer(next("outer")?, "rows")?;
                let k_block = next("k-block")?.parse().ok()?;
                Self::Dot { rows, vectors, right, panels_outside, k_block }
            }
            "pixels" => {
                let (pixels, vectors) = sizes(next("pixels")?)?;
                Self::Dense { pixels, vectors, panels_outside: outer(next("outer")?, "pixels")? }
            }
            "depthwise" => {
                let (pixels, vectors) = sizes(next("depthwise")?)?;
                Self::Depthwise { pixels, vectors, blocks_outside: outer(next("outer")?, "pixels")? }
            }
            "winograd" => {
                let (outputs, across) = sizes(next("winograd")?)?;
                Some(outputs).filter(|&outputs| outputs == across)?;
                Self::Winograd { outputs }
            }
            "gradient" => {
                let (rows, vectors) = sizes(next("gradient")?)?;
                Self::Gradient { rows, vectors, taps: next("taps")?.parse().ok()? }
            }
            _ => return None,
        };
        // Each candidate has exactly one name: no leading zeros, no trailing text.
        (candidate.to_string() == name).then_some(candidate)
    }
}

/// Parses two sizes, such as `6x4`.
fn sizes(text: &str) -> Option<(u32, u32)> {
    let (a, b) = text.split_once('x')?;
    Some((a.parse().ok()?, b.parse().ok()?))
}

/// True if the outer loop runs over panels, false if it runs over `inner`.
fn outer(text: &str, inner: &str) -> Option<bool> {
    match text {
        "panels" => Some(true),
        other => (other == inner).then_some(false),
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outer = |panels: bool, inner: &'static str| if panels { "panels" } else { inner };
        match *self {
            Self::Dot { rows, vectors, right, panels_outside, k_block } => {
                let right = match right {
                    Packing::None => "in-place",
                    Packing::Constant => "constant",
                    Packing::Scratch => "packed",
                };
                let outer = outer(panels_outside, "rows");
                write!(f, "tile={rows}x{vectors},right={right},outer={outer},k-block={k_block}")
            }
            Self::Dense { pixels, vectors, panels_outside } => {
                write!(f, "pixels={pixels}x{vectors},outer={}", outer(panels_outside, "pixels"))
            }
            Self::Depthwise { pixels, vectors, blocks_outside } => {
                write!(f, "depthwise={pixels}x{vectors},outer={}", outer(blocks_outside, "pixels"))
            }
            Self::Winograd { outputs } => write!(f, "winograd={outputs}x{outputs}"),
            Self::Gradient { rows, vectors, taps } => write!(f, "gradient={rows}x{vectors},taps={taps}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        let all = [
            (
                "tile=6x4,right=packed,outer=panels,k-block=256",
                Candidate::Dot {
                    rows: 6,
                    vectors: 4,
                    right: Packing::Scratch,
                    panels_outside: true,
                    k_block: 256,
                },
            ),
            ("pixels=14x2,outer=pixels", Candidate::Dense { pixels: 14, vectors: 2, panels_outside: false }),
            (
                "depthwise=8x2,outer=panels",
                Candidate::Depthwise { pixels: 8, vectors: 2, blocks_outside: true },
            ),
            ("winograd=2x2", Candidate::Winograd { outputs: 2 }),
            ("gradient=8x3,taps=1", Candidate::Gradient { rows: 8, vectors: 3, taps: 1 }),
        ];
        for (name, candidate) in all {
            assert_eq!(candidate.to_string(), name);
            assert_eq!(Candidate::parse(name), Some(candidate));
        }
    }

    #[test]
    fn unknown_names_are_rejected() {
        let names = [
            "",
            "tile",
            "tile=6x4",
            "tile=6x4,right=packed,outer=panels,k-block=256,more=1",
            "tile=06x4,right=packed,outer=panels,k-block=256",
            "tile=6x4,right=there,outer=panels,k-block=256",
            "pixels=14x2,outer=rows",
            "pixels=99999999999x2,outer=pixels",
            "winograd=2x4",
            "winograd=-2x-2",
            " winograd=2x2",
        ];
        for name in names {
            assert_eq!(Candidate::parse(name), None, "{name}");
        }
    }
}
