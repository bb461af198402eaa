//! Sizes as polynomials, so that sizes that are computed in different ways are known to be equal:
//! `2 * (b + t)` and `t + b + b + t`, or `4 * b / 2` and `b + b`.
//!
//! Only arithmetic that cannot wrap becomes a polynomial. Nothing here depends on instructions: an
//! atom is the number of a named dimension, or an element that the builder cannot look into.

use hlo::InstructionId;
use hlo::analysis::Range;
use std::collections::BTreeMap;

/// Maximum number of terms of a polynomial. More complex sizes are treated as unknown.
const MAX_TERMS: usize = 24;

/// Maximum number of factors of a term.
const MAX_FACTORS: usize = 8;

/// Maximum nesting depth of quotients, remainders, maxima, and minima.
const MAX_DEPTH: usize = 6;

/// A factor of a term.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Atom {
    /// The size of a named dimension.
    Named(usize),
    /// An integer known at run time: an instruction of the scope of this level, and a position.
    Element { level: usize, id: InstructionId, position: usize },
    /// A quotient of a number that is not negative and a positive one, rounded down.
    Quotient(Polynomial, Polynomial),
    /// The remainder of such a division.
    Remainder(Polynomial, Polynomial),
    /// The larger one of two numbers.
    Maximum(Polynomial, Polynomial),
    /// The smaller one of two numbers.
    Minimum(Polynomial, Polynomial),
}

/// A sum of products of atoms, each with a coefficient that is not 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Polynomial {
    terms: BTreeMap<Vec<Atom>, i64>,
}

/// Returns the range of a named dimension or of an element.
pub(crate) type Leaf<'a> = &'a dyn Fn(&Atom) -> Range;

impl Polynomial {
    pub(crate) fn constant(value: i64) -> Self {
        let terms = if value == 0 { BTreeMap::new() } else { BTreeMap::from([(Vec::new(), value)]) };
        Self { terms }
    }

    pub(crate) fn atom(atom: Atom) -> Self {
        Self { terms: BTreeMap::from([(vec![atom], 1)]) }
    }

    /// Returns the value if there are no atoms.
    pub(crate) fn as_constant(&self) -> Option<i64> {
        match self.terms.first_key_value() {
            None => Some(0),
            Some((factors, &value)) => (self.terms.len() == 1 && factors.is_empty()).then_some(value),
        }
    }

    /// Returns the products and their coefficients.
    pub(crate) fn terms(&self) -> impl Iterator<Item = (&[Atom], i64)> {
        self.terms.iter().map(|(factors, &coefficient)| (factors.as_slice(), coefficient))
    }

    /// Adds a multiple of another polynomial. `None` if the result is too complex or overflows.
    pub(crate) fn plus(&self, other: &Self, multiple: i64) -> Option<Self> {
        let mut sum = self.clone();
        for (factors, &coefficient) in &other.terms {
            sum.add_term(factors.clone(), coefficient.checked_mul(multiple)?)?;
        }
        let sum = sum.with_multiples();
        (sum.terms.len() <= MAX_TERMS).then_some(sum)
    }

    /// Replaces sums of a number and a remainder of it by multiples of the divisor: `x - x % m` is
    /// `x / m * m`, and `x + (m - x % m) % m`, a length that is padded, is `(x + m - 1) / m * m`.
    fn with_multiples(self) -> Self {
        let mut sum = self;
        while let Some(shorter) = sum.terms.iter().find_map(|(factors, &coefficient)| match &factors[..] {
            [atom @ Atom::Remainder(..)] => sum.without_remainder(atom, coefficient),
            _ => None,
        }) {
            sum = shorter;
        }
        sum
    }

    /// Replaces a multiple of a remainder and of its dividend, if that leaves a simpler sum.
    fn without_remainder(&self, atom: &Atom, coefficient: i64) -> Option<Self> {
        let Atom::Remainder(dividend, divisor) = atom else { return None };
        let by = divisor.as_constant()?;
        let complement = dividend.terms.iter().find_map(|(factors, &sign)| match &factors[..] {
            [Atom::Remainder(x, same)] if sign == -1 && same == divisor => Some(x),
            _ => None,
        });
        // Of x % m, the multiple of the sum, or of (m - x % m) % m.
        let is_complement = dividend.terms.len() == 2 && dividend.terms.get(&Vec::new()) == Some(&by);
        let (x, multiple, more) = match complement.filter(|_| is_complement) {
            Some(x) => (x, coefficient, by - 1),
            None => (dividend, coefficient.checked_neg()?, 0),
        };
        let rounded = x.plus(&Self::constant(more), 1)?;
        let quotient = Self::nested(Atom::Quotient(rounded, divisor.clone()))?;
        let mut left = self.clone();
        left.add_term(vec![atom.clone()], coefficient.checked_neg()?)?;
        for (factors, &of_x) in &x.terms {
            left.add_term(factors.clone(), of_x.checked_mul(multiple)?.checked_neg()?)?;
        }
        for (factors, &of_quotient) in &quotient.terms {
            left.add_term(factors.clone(), of_quotient.checked_mul(multiple.checked_mul(by)?)?)?;
        }
        (left.complexity() < self.complexity()).then_some(left)
    }

    /// Returns the numbers of terms with quotients or the like, and of all terms.
    fn complexity(&self) -> (usize, usize) {
        let is_nested = |factors: &&Vec<Atom>| factors.iter().any(|atom| atom.depth() > 0);
        (self.terms.keys().filter(is_nested).count(), self.terms.len())
    }

    pub(crate) fn times(&self, other: &Self) -> Option<Self> {
        let mut product = Self::default();
        for (a, &x) in &self.terms {
            for (b, &y) in &other.terms {
                let mut factors = [a.as_slice(), b.as_slice()].concat();
                factors.sort();
                if factors.len() > MAX_FACTORS {
                    return None;
                }
                product.add_term(factors, x.checked_mul(y)?)?;
            }
        }
        (product.terms.len() <= MAX_TERMS).then_some(product)
    }

    fn add_term(&mut self, factors: Vec<Atom>, coefficient: i64) -> Option<()> {
        let sum = self.terms.get(&factors).copied().unwrap_or(0).checked_add(coefficient)?;
        if sum == 0 {
            self.terms.remove(&factors);
        } else {
            self.terms.insert(factors, sum);
        }
        Some(())
    }

    /// Returns the quotient, rounded toward 0. `None` unless the division is exact, or the dividend
    /// is known not to be negative, or not to be positive, and the divisor is positive.
    pub(crate) fn quotient(&self, divisor: &Self, leaf: Leaf<'_>) -> Option<Self> {
        if divisor.range(leaf).low.is_none_or(|low| low < 1) {
            return None;
        }
        let (whole, rest) = self.divided(divisor);
        if rest.terms.is_empty() {
            return Some(whole);
        }
        if self.range(leaf).low.is_none_or(|low| low < 0) {
            return self.opposite(leaf)?.quotient(divisor, leaf)?.negated();
        }
        let may_split = rest.range(leaf).low.is_some_and(|low| low >= 0);
        let (whole, rest) = if may_split { (whole, rest) } else { (Self::default(), self.clone()) };
        let part = match (rest.as_constant(), divisor.as_constant()) {
            (Some(rest), Some(divisor)) => Self::constant(rest / divisor),
            _ => {
                let below = rest.plus(divisor, -1)?.range(leaf).high.is_some_and(|high| high < 0);
                if below { Self::default() } else { Self::nested(Atom::Quotient(rest, divisor.clone()))? }
            }
        };
        whole.plus(&part, 1)
    }

    /// Returns the remainder of such a division, which has the sign of the dividend.
    pub(crate) fn remainder(&self, divisor: &Self, leaf: Leaf<'_>) -> Option<Self> {
        if divisor.range(leaf).low.is_none_or(|low| low < 1) {
            return None;
        }
        if self.range(leaf).low.is_none_or(|low| low < 0) {
            return self.opposite(leaf)?.remainder(divisor, leaf)?.negated();
        }
        let (_, rest) = self.divided(divisor);
        let may_split = rest.range(leaf).low.is_some_and(|low| low >= 0);
        let rest = if may_split { rest } else { self.clone() };
        match (rest.as_constant(), divisor.as_constant()) {
            (Some(rest), Some(divisor)) => Some(Self::constant(rest % divisor)),
            _ if rest.plus(divisor, -1)?.range(leaf).high.is_some_and(|high| high < 0) => Some(rest),
            _ => Self::nested(Atom::Remainder(rest, divisor.clone())),
        }
    }

    fn negated(&self) -> Option<Self> {
        Self::default().plus(self, -1)
    }

    /// Returns the negative of a number that is known not to be positive, and may be negative.
    fn opposite(&self, leaf: Leaf<'_>) -> Option<Self> {
        self.negated().filter(|_| self.range(leaf).high.is_some_and(|high| high <= 0))
    }

    /// Returns 1 if the value is not 0, and 0 otherwise. `None` if it may be negative as well as
    /// positive.
    pub(crate) fn is_not_zero(&self, leaf: Leaf<'_>) -> Option<Self> {
        let is_positive = self.range(leaf).low.is_some_and(|low| low >= 0);
        let size = if is_positive { self.clone() } else { self.opposite(leaf)? };
        size.minimum(&Self::constant(1), leaf)
    }

    /// Returns the number `a` if a condition is 1, and `b` if it is 0, where `b` is a quotient or a
    /// remainder rounded toward 0, and `a` the same rounded down: `-x / m` becomes
    /// `-((x + m - 1) / m)`, and `-x % m` becomes `(m - x % m) % m`.
    pub(crate) fn rounded_down(condition: &Self, a: &Self, b: &Self, leaf: Leaf<'_>) -> Option<Self> {
        let change = a.plus(b, -1)?.as_constant()?;
        b.terms.iter().find_map(|(factors, &coefficient)| {
            let [atom @ (Atom::Quotient(x, m) | Atom::Remainder(x, m))] = &factors[..] else { return None };
            let by = m.as_constant()?;
            let rest = x.remainder(m, leaf)?;
            if coefficient != -1 || rest.is_not_zero(leaf)? != *condition {
                return None;
            }
            let down = match atom {
                Atom::Quotient(..) if change == -1 => {
                    x.plus(&Self::constant(by - 1), 1)?.quotient(m, leaf)?.negated()?
                }
                Atom::Remainder(..) if change == by => m.plus(&rest, -1)?.remainder(m, leaf)?,
                _ => return None,
            };
            b.plus(&Self::atom(atom.clone()), 1)?.plus(&down, 1)
        })
    }

    /// Splits off the terms that are multiples of a divisor of one term: returns their quotient,
    /// and the sum of the others. What is left of a constant is from 0 to the divisor less 1:
    /// `h - 1` by 2 is -1 and `h + 1`. A divisor of several terms divides all or nothing.
    fn divided(&self, divisor: &Self) -> (Self, Self) {
        let (mut whole, mut rest) = (Self::default(), self.clone());
        if let (Some((of_divisor, &by)), 1) = (divisor.terms.first_key_value(), divisor.terms.len()) {
            for (factors, &coefficient) in &self.terms {
                let mut left = factors.clone();
                let is_multiple = of_divisor.iter().all(|factor| {
                    let place = left.iter().position(|other| other == factor);
                    place.map(|place| left.remove(place)).is_some()
                });
                if is_multiple && coefficient % by == 0 {
                    whole.terms.insert(left, coefficient / by);
                    rest.terms.remove(factors);
                } else if factors.is_empty() && of_divisor.is_empty() && by > 0 {
                    if coefficient.div_euclid(by) != 0 {
                        whole.terms.insert(Vec::new(), coefficient.div_euclid(by));
                    }
                    rest.terms.insert(Vec::new(), coefficient.rem_euclid(by));
                }
            }
        } else if let Some(exact) = self.exact_quotient(divisor) {
            return (exact, Self::default());
        }
        (whole, rest)
    }

    /// Returns the polynomial whose product with a divisor this is, if long division finds it.
    fn exact_quotient(&self, divisor: &Self) -> Option<Self> {
        let (of_divisor, by) = divisor.leading_term()?;
        let (mut quotient, mut rest) = (Self::default(), self.clone());
        for _ in 0..MAX_TERMS {
            let Some((factors, coefficient)) = rest.leading_term() else { return Some(quotient) };
            let mut left = factors.to_vec();
            for factor in of_divisor {
                left.remove(left.iter().position(|other| other == factor)?);
            }
            if coefficient % by != 0 {
                return None;
            }
            let term = Self { terms: BTreeMap::from([(left, coefficient / by)]) };
            quotient = quotient.plus(&term, 1)?;
            rest = rest.plus(&term.times(divisor)?, -1)?;
        }
        None
    }

    /// Returns the last one of the terms with the most factors. That of a product is the product of
    /// its factors' leading terms.
    fn leading_term(&self) -> Option<(&[Atom], i64)> {
        self.terms().max_by_key(|&(factors, _)| (factors.len(), factors))
    }

    pub(crate) fn maximum(&self, other: &Self, leaf: Leaf<'_>) -> Option<Self> {
        if self.is_at_least(other, leaf) {
            Some(self.clone())
        } else if other.is_at_least(self, leaf) {
            Some(other.clone())
        } else {
            Self::nested(Atom::Maximum(self.min(other).clone(), self.max(other).clone()))
        }
    }

    pub(crate) fn minimum(&self, other: &Self, leaf: Leaf<'_>) -> Option<Self> {
        if self.is_at_least(other, leaf) {
            Some(other.clone())
        } else if other.is_at_least(self, leaf) {
            Some(self.clone())
        } else {
            Self::nested(Atom::Minimum(self.min(other).clone(), self.max(other).clone()))
        }
    }

    /// True if the values are known to be no less than those of another polynomial. Their
    /// difference may overflow.
    fn is_at_least(&self, other: &Self, leaf: Leaf<'_>) -> bool {
        let difference = self.plus(other, -1).and_then(|difference| difference.range(leaf).low);
        let ends = self.range(leaf).low.zip(other.range(leaf).high);
        difference.is_some_and(|low| low >= 0) || ends.is_some_and(|(low, high)| low >= high)
    }

    /// True if all numbers from which the value is computed are known to fit `s32`. The elements of
    /// arrays for which `is_narrow` holds do.
    pub(crate) fn fits_s32(&self, leaf: Leaf<'_>, is_narrow: &dyn Fn(&Atom) -> bool) -> bool {
        let fits = |value: i64| i32::try_from(value).is_ok();
        let Range { low, high } = self.range(leaf);
        let is_atom = self.terms.len() == 1
            && self.terms.iter().all(|(factors, &coefficient)| factors.len() == 1 && coefficient == 1);
        let is_in_range = low.is_some_and(fits) && high.is_some_and(fits);
        (is_atom || is_in_range)
            && self.terms.keys().flatten().all(|atom| match atom {
                Atom::Named(_) => true,
                Atom::Element { .. } => {
                    let Range { low, high } = leaf(atom);
                    is_narrow(atom) || low.is_some_and(fits) && high.is_some_and(fits)
                }
                Atom::Quotient(a, b) | Atom::Remainder(a, b) | Atom::Maximum(a, b) | Atom::Minimum(a, b) => {
                    a.fits_s32(leaf, is_narrow) && b.fits_s32(leaf, is_narrow)
                }
            })
    }

    fn nested(atom: Atom) -> Option<Self> {
        (atom.depth() <= MAX_DEPTH).then(|| Self::atom(atom))
    }

    fn depth(&self) -> usize {
        self.terms.keys().flatten().map(Atom::depth).max().unwrap_or(0)
    }

    /// True if it contains an atom.
    pub(crate) fn depends_on(&self, is_one: &dyn Fn(&Atom) -> bool) -> bool {
        self.terms.keys().flatten().any(|atom| match atom {
            Atom::Named(_) | Atom::Element { .. } => is_one(atom),
            Atom::Quotient(a, b) | Atom::Remainder(a, b) | Atom::Maximum(a, b) | Atom::Minimum(a, b) => {
                a.depends_on(is_one) || b.depends_on(is_one)
            }
        })
    }

    /// Returns the range of the values.
    pub(crate) fn range(&self, leaf: Leaf<'_>) -> Range {
        let own = self.range_of_terms(leaf);
        let Some((multiple, by, rest)) = self.without_quotient() else { return own };
        let of_multiple = multiple.range(leaf);
        // `by` times the values are those of the multiple less a rest, which may also be 0.
        let low = of_multiple.low.zip(Some(rest.max(0))).and_then(|(a, b)| a.checked_sub(b));
        let high = of_multiple.high.zip(Some(rest.min(0))).and_then(|(a, b)| a.checked_sub(b));
        let (low, high) = (low.map(|low| -(-low).div_euclid(by)), high.map(|high| high.div_euclid(by)));
        Range { low: own.low.max(low), high: own.high.into_iter().chain(high).min() }
    }

    /// Returns the range of the sum if its terms were independent.
    fn range_of_terms(&self, leaf: Leaf<'_>) -> Range {
        let mut sum = Range::exactly(0);
        for (factors, &coefficient) in &self.terms {
            let product = factors
                .iter()
                .fold(Range::exactly(coefficient), |product, atom| product_of(product, atom.range(leaf)));
            sum = Range {
                low: sum.low.zip(product.low).and_then(|(a, b)| a.checked_add(b)),
                high: sum.high.zip(product.high).and_then(|(a, b)| a.checked_add(b)),
            };
        }
        sum
    }

    /// Multiplies the sum by the divisor of one of its quotients, whose place the dividend takes,
    /// less a remainder: twice `h / 2 - h` is `-h - h % 2`. Returns that sum without the remainder,
    /// the divisor, and the term of the largest remainder, which is to be subtracted.
    fn without_quotient(&self) -> Option<(Self, i64, i64)> {
        if self.terms.len() < 2 {
            return None;
        }
        let quotients = self.terms.iter().filter_map(|(factors, &coefficient)| match &factors[..] {
            [atom @ Atom::Quotient(dividend, divisor)] => Some((atom, dividend, divisor, coefficient)),
            _ => None,
        });
        // The dividend of a nested one may have the others.
        let (atom, dividend, divisor, coefficient) = quotients.max_by_key(|(atom, ..)| atom.depth())?;
        let by = divisor.as_constant().filter(|&by| by > 0)?;
        let multiple = self.plus(&Self::atom(atom.clone()), coefficient.checked_neg()?)?;
        let multiple = multiple.times(&Self::constant(by))?.plus(dividend, coefficient)?;
        let rest = coefficient.checked_mul(by - 1)?;
        (multiple.complexity() < self.complexity()).then_some((multiple, by, rest))
    }
}

impl Atom {
    fn depth(&self) -> usize {
        match self {
            Self::Named(_) | Self::Element { .. } => 0,
            Self::Quotient(a, b) | Self::Remainder(a, b) | Self::Maximum(a, b) | Self::Minimum(a, b) => {
                1 + a.depth().max(b.depth())
            }
        }
    }

    fn range(&self, leaf: Leaf<'_>) -> Range {
        let both = |a: Option<i64>, b: Option<i64>, of: fn(i64, i64) -> i64| a.zip(b).map(|(a, b)| of(a, b));
        match self {
            Self::Named(_) | Self::Element { .. } => leaf(self),
            Self::Quotient(a, b) => {
                let (a, b) = (a.range(leaf), b.range(leaf));
                Range {
                    low: both(a.low, b.high, |a, b| a / b).or(Some(0)),
                    high: both(a.high, b.low, |a, b| a / b),
                }
            }
            Self::Remainder(a, b) => {
                let (a, b) = (a.range(leaf), b.range(leaf));
                let most = b.high.map(|high| high - 1);
                Range { low: Some(0), high: both(a.high, most, i64::min).or(a.high).or(most) }
            }
            Self::Maximum(a, b) => {
                let (a, b) = (a.range(leaf), b.range(leaf));
                Range {
                    low: both(a.low, b.low, i64::max).or(a.low).or(b.low),
                    high: both(a.high, b.high, i64::max),
                }
            }
            Self::Minimum(a, b) => {
                let (a, b) = (a.range(leaf), b.range(leaf));
                Range {
                    low: both(a.low, b.low, i64::min),
                    high: both(a.high, b.high, i64::min).or(a.high).or(b.high),
                }
            }
        }
    }
}

/// Returns the range of the products of two numbers in ranges.
fn product_of(a: Range, b: Range) -> Range {
    let is = |range: Range, value: i64| range.low == Some(value) && range.high == Some(value);
    if is(a, 0) || is(b, 0) {
        return Range::exactly(0);
    }
    let limits = |range: Range| Some([i128::from(range.low?), i128::from(range.high?)]);
    if let (Some(a), Some(b)) = (limits(a), limits(b)) {
        let products = a.iter().flat_map(|x| b.iter().map(move |y| x * y));
        let (low, high) = products.fold((i128::MAX, i128::MIN), |(l, h), p| (l.min(p), h.max(p)));
        return Range { low: i64::try_from(low).ok(), high: i64::try_from(high).ok() };
    }
    let positive = |range: Range| range.low.filter(|&low| low >= 0);
    match (positive(a), positive(b)) {
        (Some(a), Some(b)) => Range { low: a.checked_mul(b), high: None },
        _ => Range::UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes `b` from 1 to 64 and `t` from 0 to 10.
    fn leaf(atom: &Atom) -> Range {
        match atom {
            Atom::Named(0) => Range { low: Some(1), high: Some(64) },
            Atom::Named(_) => Range { low: Some(0), high: Some(10) },
            _ => Range::UNKNOWN,
        }
    }

    fn named(number: usize) -> Polynomial {
        Polynomial::atom(Atom::Named(number))
    }

    fn linear(b: i64, t: i64, c: i64) -> Polynomial {
        let sum = Polynomial::constant(c).plus(&named(0), b).and_then(|sum| sum.plus(&named(1), t));
        sum.expect("few terms")
    }

    /// The value of a polynomial for sizes.
    fn value(p: &Polynomial, sizes: [i64; 2]) -> i64 {
        let of_atom = |atom: &Atom| match atom {
            Atom::Named(number) => sizes[*number],
            Atom::Element { .. } => panic!("no elements"),
            Atom::Quotient(a, b) => value(a, sizes) / value(b, sizes),
            Atom::Remainder(a, b) => value(a, sizes) % value(b, sizes),
            Atom::Maximum(a, b) => value(a, sizes).max(value(b, sizes)),
            Atom::Minimum(a, b) => value(a, sizes).min(value(b, sizes)),
        };
        p.terms().map(|(factors, c)| c * factors.iter().map(of_atom).product::<i64>()).sum()
    }

    #[test]
    fn equal_sizes_are_equal_polynomials() {
        let twice = linear(1, 1, 0).times(&Polynomial::constant(2));
        assert_eq!(twice, Some(linear(2, 2, 0)));
        assert_eq!(linear(4, 0, 2).quotient(&Polynomial::constant(2), &leaf), Some(linear(2, 0, 1)));
        let area = named(0).times(&named(1)).expect("one term");
        assert_eq!(area.quotient(&named(0), &leaf), Some(named(1)));
        assert_eq!(linear(8, 0, 3).remainder(&Polynomial::constant(8), &leaf), Some(Polynomial::constant(3)));
        assert_eq!(linear(1, 0, 0).maximum(&Polynomial::constant(1), &leaf), Some(named(0)));
        assert_eq!(linear(1, 0, 0).minimum(&Polynomial::constant(64), &leaf), Some(named(0)));
    }

    /// `b` and the padding up to the next multiple of 8, as programs compute it.
    fn padded(b: &Polynomial) -> (Polynomial, Polynomial) {
        let by = Polynomial::constant(8);
        let rest = by.plus(&b.remainder(&by, &leaf).expect("a remainder"), -1).expect("few terms");
        (b.clone(), rest.remainder(&by, &leaf).expect("a remainder"))
    }

    #[test]
    fn lengths_that_are_padded_are_multiples() {
        for size in [named(0), linear(1, 1, 3), linear(3, 2, 0)] {
            let (size, padding) = padded(&size);
            let whole = size.plus(&padding, 1).expect("few terms");
            let eighth = whole.quotient(&Polynomial::constant(8), &leaf).expect("a multiple");
            assert_eq!(eighth.times(&Polynomial::constant(8)), Some(whole.clone()));
            assert_eq!(whole.remainder(&Polynomial::constant(8), &leaf), Some(Polynomial::default()));
            assert_eq!(whole.plus(&padding, -1), Some(size.clone()));
            for sizes in [[1, 0], [8, 10], [9, 3], [64, 10]] {
                let b = value(&size, sizes);
                assert_eq!(value(&whole, sizes), (b + 7) / 8 * 8, "{size:?}");
            }
        }
        // And lengths that are cut.
        let rest = named(0).remainder(&Polynomial::constant(4), &leaf).expect("a remainder");
        let cut = named(0).plus(&rest, -1).expect("few terms");
        assert_eq!(cut.range(&leaf), Range { low: Some(0), high: Some(64) });
        assert_eq!(cut.plus(&rest, 1), Some(named(0)));
    }

    #[test]
    fn quotients_of_negative_sizes_are_rounded_down() {
        for (size, m) in [(named(0), 2), (linear(3, 0, 1), 4), (linear(4, 8, 1), 4), (linear(2, 1, 3), 3)] {
            let (by, negative) = (Polynomial::constant(m), size.negated().expect("few terms"));
            let quotient = negative.quotient(&by, &leaf).expect("a quotient");
            let rest = negative.remainder(&by, &leaf).expect("a remainder");
            // As programs write `-size // m` and `-size % m`.
            let is_inexact = rest.is_not_zero(&leaf).expect("a condition");
            let down = |a: &Polynomial, step: i64| {
                let below = a.plus(&Polynomial::constant(step), 1).expect("few terms");
                let of_condition = is_inexact.as_constant().map(|one| if one == 0 { a } else { &below });
                let found = Polynomial::rounded_down(&is_inexact, &below, a, &leaf);
                found.or(of_condition.cloned()).expect("a number rounded down")
            };
            let (quotient, rest) = (down(&quotient, -1), down(&rest, m));
            for sizes in [[1, 0], [2, 3], [7, 1], [64, 10], [33, 0]] {
                let size = value(&size, sizes);
                assert_eq!(value(&quotient, sizes), (-size).div_euclid(m), "{quotient:?}");
                assert_eq!(value(&rest, sizes), (-size).rem_euclid(m), "{rest:?}");
            }
            let most = size.plus(&Polynomial::constant(m - 1), 1).expect("few terms");
            assert_eq!(quotient.negated(), most.quotient(&by, &leaf), "as a quotient rounded up");
        }
    }

    #[test]
    fn ranges_know_that_quotients_depend_on_their_dividends() {
        // Padding SAME of a window of 3 with stride 2, along `b` and along half of it.
        let half = |size: &Polynomial| {
            let more = size.plus(&Polynomial::constant(1), 1).expect("few terms");
            more.quotient(&Polynomial::constant(2), &leaf).expect("a quotient")
        };
        for size in [named(0), half(&named(0))] {
            let padding = half(&size).plus(&half(&size), 1).and_then(|sum| sum.plus(&size, -1));
            let padding = padding.and_then(|sum| sum.plus(&Polynomial::constant(1), 1)).expect("few terms");
            assert_eq!(padding.range(&leaf), Range { low: Some(1), high: Some(2) });
        }
        let left = named(0).plus(&half(&named(0)), -1).expect("few terms");
        assert_eq!(left.range(&leaf), Range { low: Some(0), high: Some(32) });
    }

    #[test]
    fn sums_divide_exactly() {
        let by = linear(2, 0, -1);
        let product = by.times(&linear(64, 3, 1)).expect("few terms");
        assert_eq!(product.quotient(&by, &leaf), Some(linear(64, 3, 1)));
        assert_eq!(linear(128, 0, -64).quotient(&by, &leaf), Some(Polynomial::constant(64)));
        let inexact = linear(128, 0, -63).quotient(&by, &leaf).expect("a quotient");
        assert_eq!(value(&inexact, [7, 0]), (128 * 7 - 63) / 13);
    }

    #[test]
    fn divisions_that_may_round_otherwise_are_unknown() {
        assert_eq!(linear(1, 0, -2).quotient(&Polynomial::constant(2), &leaf), None);
        assert_eq!(linear(1, 0, 0).quotient(&named(1), &leaf), None);
        assert_eq!(linear(1, 0, -2).remainder(&Polynomial::constant(2), &leaf), None);
    }

    #[test]
    fn every_operation_has_the_value_of_integers() {
        let operands: Vec<Polynomial> = (-2..4)
            .flat_map(|b| (-1..3).map(move |t| (b, t)))
            .flat_map(|(b, t)| (-3..4).map(move |c| linear(b, t, c)))
            .collect();
        let samples = [[1, 0], [2, 3], [7, 1], [64, 10], [33, 0]];
        let mut known = 0;
        for a in &operands {
            for b in &operands {
                let results = [
                    (a.plus(b, -1), (|x, y| x - y) as fn(i64, i64) -> i64),
                    (a.times(b), |x, y| x * y),
                    (a.quotient(b, &leaf), |x, y| x / y),
                    (a.remainder(b, &leaf), |x, y| x % y),
                    (a.maximum(b, &leaf), i64::max),
                    (a.minimum(b, &leaf), i64::min),
                ];
                for (result, of) in results {
                    let Some(result) = result else { continue };
                    known += 1;
                    let range = result.range(&leaf);
                    for sizes in samples {
                        let expected = of(value(a, sizes), value(b, sizes));
                        assert_eq!(value(&result, sizes), expected, "{a:?} {b:?}");
                        assert!(range.low.is_none_or(|low| low <= expected), "{result:?} {range:?}");
                        assert!(range.high.is_none_or(|high| expected <= high), "{result:?} {range:?}");
                    }
                }
            }
        }
        assert!(known > 100_000, "{known}");
    }
}
