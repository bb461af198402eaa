//! Symbolic sizes as `jax.export` spells them: `2*b + 1`, `floordiv(b, 2)`, `max(0, t - 3)`.

use bounded::Builder;
use hlo::{InstructionId, Op};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use support::{Error, Result};

/// Maximum length of the text of a size, and maximum exponent of a power.
const MAX_LENGTH: usize = 1000;
const MAX_EXPONENT: i64 = 8;

/// A size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Symbolic {
    Number(i64),
    Name(String),
    Sum(Box<Symbolic>, Box<Symbolic>),
    Product(Box<Symbolic>, Box<Symbolic>),
    /// The quotient, rounded down.
    Quotient(Box<Symbolic>, Box<Symbolic>),
    Remainder(Box<Symbolic>, Box<Symbolic>),
    Maximum(Box<Symbolic>, Box<Symbolic>),
    Minimum(Box<Symbolic>, Box<Symbolic>),
}

impl Symbolic {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let wrong = || Error::unsupported(format!("the symbolic size '{text}' is not supported"));
        if text.len() > MAX_LENGTH {
            return Err(Error::unsupported("a symbolic size is too long"));
        }
        let mut parser = Parser { rest: text };
        let size = parser.sum().ok_or_else(wrong)?;
        if parser.rest.trim().is_empty() { Ok(size) } else { Err(wrong()) }
    }

    /// Returns the name if the size is nothing else.
    pub(crate) fn name(&self) -> Option<&str> {
        if let Self::Name(name) = self { Some(name) } else { None }
    }

    pub(crate) fn names(&self, names: &mut BTreeSet<String>) {
        match self {
            Self::Number(_) => {}
            Self::Name(name) => drop(names.insert(name.clone())),
            Self::Sum(a, b)
            | Self::Product(a, b)
            | Self::Quotient(a, b)
            | Self::Remainder(a, b)
            | Self::Maximum(a, b)
            | Self::Minimum(a, b) => {
                a.names(names);
                b.names(names);
            }
        }
    }

    /// Returns the factor of a name and the sum of all other terms, if the size is linear in it.
    pub(crate) fn linear_in(&self, name: &str) -> Option<(i64, Self)> {
        let mut names = BTreeSet::new();
        self.names(&mut names);
        match self {
            _ if !names.contains(name) => Some((0, self.clone())),
            Self::Name(_) => Some((1, Self::Number(0))),
            Self::Sum(a, b) => {
                let ((x, a), (y, b)) = (a.linear_in(name)?, b.linear_in(name)?);
                Some((x.checked_add(y)?, Self::Sum(Box::new(a), Box::new(b))))
            }
            Self::Product(a, b) => match (a.as_ref(), b.as_ref()) {
                (Self::Number(factor), other) | (other, Self::Number(factor)) => {
                    let (x, rest) = other.linear_in(name)?;
                    let rest = Self::Product(Box::new(Self::Number(*factor)), Box::new(rest));
                    Some((x.checked_mul(*factor)?, rest))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the value if there are no names.
    pub(crate) fn constant(&self) -> Option<i64> {
        Some(match self {
            Self::Number(value) => *value,
            Self::Name(_) => return None,
            Self::Sum(a, b) => a.constant()?.checked_add(b.constant()?)?,
            Self::Product(a, b) => a.constant()?.checked_mul(b.constant()?)?,
            Self::Quotient(a, b) => a.constant()?.checked_div_euclid(b.constant().filter(|&b| b > 0)?)?,
            Self::Remainder(a, b) => a.constant()?.checked_rem_euclid(b.constant().filter(|&b| b > 0)?)?,
            Self::Maximum(a, b) => a.constant()?.max(b.constant()?),
            Self::Minimum(a, b) => a.constant()?.min(b.constant()?),
        })
    }

    /// Adds instructions that compute the size, an `s32` scalar, from those of the names.
    pub(crate) fn build(
        &self,
        b: &mut Builder,
        names: &BTreeMap<String, InstructionId>,
    ) -> Result<InstructionId> {
        let (op, x, y) = match self {
            Self::Number(value) => return b.s32(*value),
            Self::Name(name) => {
                let id = names.get(name).copied();
                return id.ok_or_else(|| {
                    Error::unsupported(format!(
                        "the size '{name}' does not follow from the shapes of the arguments"
                    ))
                });
            }
            Self::Sum(x, y) => (Op::Add {}, x, y),
            Self::Product(x, y) => (Op::Multiply {}, x, y),
            Self::Quotient(x, y) => (Op::Divide {}, x, y),
            Self::Remainder(x, y) => (Op::Remainder {}, x, y),
            Self::Maximum(x, y) => (Op::Maximum {}, x, y),
            Self::Minimum(x, y) => (Op::Minimum {}, x, y),
        };
        let (x, y) = (x.build(b, names)?, y.build(b, names)?);
        b.op(op, &[x, y])
    }
}

impl fmt::Display for Symbolic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let factor = |size: &Self| match size {
            Self::Sum(..) => format!("({size})"),
            _ => size.to_string(),
        };
        match self {
            Self::Number(value) => write!(f, "{value}"),
            Self::Name(name) => f.write_str(name),
            Self::Sum(a, b) => write!(f, "{a} + {b}"),
            Self::Product(a, b) => write!(f, "{}*{}", factor(a), factor(b)),
            Self::Quotient(a, b) => write!(f, "floordiv({a}, {b})"),
            Self::Remainder(a, b) => write!(f, "mod({a}, {b})"),
            Self::Maximum(a, b) => write!(f, "max({a}, {b})"),
            Self::Minimum(a, b) => write!(f, "min({a}, {b})"),
        }
    }
}

/// A parser by recursive descent. Nesting is limited by the length of the text.
struct Parser<'t> {
    rest: &'t str,
}

impl Parser<'_> {
    fn takes(&mut self, text: &str) -> bool {
        match self.rest.trim_start().strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn sum(&mut self) -> Option<Symbolic> {
        let negated = |size| Symbolic::Product(Box::new(Symbolic::Number(-1)), Box::new(size));
        let mut sum = if self.takes("-") { negated(self.product()?) } else { self.product()? };
        loop {
            let term = if self.takes("+") {
                self.product()?
            } else if self.takes("-") {
                negated(self.product()?)
            } else {
                return Some(sum);
            };
            sum = Symbolic::Sum(Box::new(sum), Box::new(term));
        }
    }

    fn product(&mut self) -> Option<Symbolic> {
        let mut product = self.power()?;
        while self.takes("*") {
            product = Symbolic::Product(Box::new(product), Box::new(self.power()?));
        }
        Some(product)
    }

    fn power(&mut self) -> Option<Symbolic> {
        let base = self.factor()?;
        if !self.takes("^") {
            return Some(base);
        }
        let Symbolic::Number(exponent) = self.factor()? else { return None };
        let mut power = Symbolic::Number(1);
        for _ in 0..(0..=MAX_EXPONENT).contains(&exponent).then_some(exponent)? {
            power = Symbolic::Product(Box::new(power), Box::new(base.clone()));
        }
        Some(power)
    }

    fn factor(&mut self) -> Option<Symbolic> {
        if self.takes("(") {
            let inner = self.sum()?;
            return self.takes(")").then_some(inner);
        }
        let text = self.rest.trim_start();
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return word.parse().ok().map(Symbolic::Number);
        }
        if word.is_empty() || !self.takes("(") {
            return (!word.is_empty()).then(|| Symbolic::Name(word.to_owned()));
        }
        let a = Box::new(self.sum()?);
        let b = self.takes(",").then(|| self.sum()).flatten().map(Box::new)?;
        if !self.takes(")") {
            return None;
        }
        Some(match word {
            "floordiv" => Symbolic::Quotient(a, b),
            "mod" => Symbolic::Remainder(a, b),
            "max" => Symbolic::Maximum(a, b),
            "min" => Symbolic::Minimum(a, b),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_jax_are_read() {
        let value = |text: &str| Symbolic::parse(text).ok().and_then(|size| size.constant());
        assert_eq!(value("2*(3 + 4) - 1"), Some(13));
        assert_eq!(value("- 5 + 16"), Some(11));
        assert_eq!(value("floordiv(7, 2)*mod(11, 4) + 2^3"), Some(17));
        assert_eq!(value("max(0, 3 - 5) + min(4, 9)"), Some(4));
        for wrong in ["", "2*", "b c", "f(b, 1)", "floordiv(b)", "b^t", "2^99", "(b", "b..c"] {
            assert!(Symbolic::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_spelled_as_they_are_read() {
        for text in ["2*b + 1", "floordiv(b, 2)*(t + 3)", "max(0, mod(b, 4))"] {
            assert_eq!(Symbolic::parse(text).expect("a size").to_string(), text);
        }
    }

    #[test]
    fn a_linear_size_can_be_solved() {
        let size = Symbolic::parse("3*b - t + 2*(b + 1)").expect("a size");
        let (factor, rest) = size.linear_in("b").expect("linear in b");
        assert_eq!((factor, rest.linear_in("t").map(|(factor, _)| factor)), (5, Some(-1)));
        assert_eq!(Symbolic::parse("b*t").expect("a size").linear_in("b"), None);
    }
}
