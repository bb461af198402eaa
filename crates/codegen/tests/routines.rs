//! The routines for missing instructions, run on this machine and compared with its instructions:
//! all pairs of special numbers, and many random ones of all sizes.

use codegen::{LoadedFunctions, compile_routines, host_triple};
use half::f16;
use target::Target;

/// Number of random operands of each test.
const COUNT: usize = 300_000;

/// Loads routines and calls them by their symbols.
struct Routines(LoadedFunctions);

impl Routines {
    fn load(symbols: &[&str]) -> Self {
        let target = Target::new(&host_triple(), "", "").expect("the host's triple");
        let object = compile_routines(symbols, &target).expect("routines compile");
        Self(LoadedFunctions::load(&object).expect("the object loads"))
    }

    fn address(&self, symbol: &str) -> *const () {
        self.0.address(symbol).expect("the object exports the routine").as_ptr()
    }
}

/// A function of the object with the given C type.
macro_rules! function {
    ($routines:expr, $symbol:expr, $type:ty) => {{
        let address = $routines.address($symbol);
        // SAFETY: the routine has this type, and the object outlives the test.
        #[expect(unsafe_code, reason = "calls generated code")]
        let function = unsafe { std::mem::transmute::<*const (), $type>(address) };
        function
    }};
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
    /// Bits, of which the upper or the lower ones are often alike.
    fn bits(&mut self) -> u64 {
        let (bits, kind) = (self.next(), self.next());
        let shift = (kind >> 8) % 64;
        match kind % 4 {
            0 => bits,
            1 => bits >> shift,
            2 => bits << shift,
            _ => (bits >> shift).wrapping_neg(),
        }
    }
}

/// Bits of floats with a mantissa of `mantissa` bits and an exponent of `exponent` bits: all
/// exponents near the ends and the middle, with mantissas at the ends and in between.
fn edges(mantissa: u32, exponent: u32) -> Vec<u64> {
    let last = (1_u64 << exponent) - 1;
    let middle = last / 2;
    let near = |center: u64| (center.saturating_sub(2)..=center + 2).collect::<Vec<_>>();
    let mut exponents = [near(0), near(middle), near(middle + u64::from(mantissa)), near(last - 2)].concat();
    exponents.retain(|&e| e <= last);
    let most = (1_u64 << mantissa) - 1;
    let mantissas = [0, 1, 2, most / 2, most / 2 + 1, most / 2 + 2, most / 3, most - 1, most];
    let signs = [0, 1_u64 << (mantissa + exponent)];
    let mut all = Vec::new();
    for e in exponents {
        for m in mantissas {
            all.extend(signs.map(|sign| sign | e << mantissa | m));
        }
    }
    all
}

/// Pairs of operands: all pairs of the edges, random ones, and random ones of close size.
fn pairs(mantissa: u32, exponent: u32) -> impl Iterator<Item = (u64, u64)> {
    let edges = edges(mantissa, exponent);
    let width = mantissa + exponent + 1;
    let some = edges.clone();
    let of_edges = edges.into_iter().flat_map(move |a| some.clone().into_iter().map(move |b| (a, b)));
    let mut random = Random(u64::from(width));
    let of_random = (0..COUNT).map(move |k| {
        let all = u64::MAX >> (64 - width);
        let (a, b) = (random.next() & all, random.next() & all);
        match k % 4 {
            0 => (a, b),
            // Exponents that differ by little.
            1 => (
                a,
                (a & !((1 << mantissa) - 1)) ^ (b & ((1 << (mantissa + 2)) - 1)) ^ (b & (1 << (width - 1))),
            ),
            2 => (a, a ^ (b & 7) ^ (b & (1 << (width - 1)))),
            _ => (a & (1 << (width - 1)) | a & ((1 << mantissa) - 1), b),
        }
    });
    of_edges.chain(of_random)
}

/// Requires equal bits, or two NaNs.
macro_rules! same {
    ($float:ty, $actual:expr, $expected:expr, $($what:tt)*) => {{
        let (actual, expected): ($float, $float) = (<$float>::from_bits($actual), $expected);
        let same = actual.to_bits() == expected.to_bits() || actual.is_nan() && expected.is_nan();
        assert!(same, "{}: {:x}, expected {:x}", format!($($what)*), actual.to_bits(), expected.to_bits());
    }};
}

macro_rules! arithmetic {
    ($test:ident, $float:ty, $bits:ty, $mantissa:expr, $exponent:expr, $names:expr) => {
        #[test]
        fn $test() {
            let names: [[&str; 2]; 4] = $names;
            let routines = Routines::load(names.as_flattened());
            let operations: [fn($float, $float) -> $float; 4] =
                [|a, b| a + b, |a, b| a - b, |a, b| a * b, |a, b| a / b];
            for (names, operation) in names.iter().zip(operations) {
                for name in names {
                    let routine = function!(routines, name, extern "C" fn($bits, $bits) -> $bits);
                    for (a, b) in pairs($mantissa, $exponent) {
                        let expected =
                            operation(<$float>::from_bits(a as $bits), <$float>::from_bits(b as $bits));
                        same!($float, routine(a as $bits, b as $bits), expected, "{name} {a:x} {b:x}");
                    }
                }
            }
        }
    };
}

arithmetic!(
    arithmetic_of_single_floats,
    f32,
    u32,
    23,
    8,
    [
        ["__addsf3", "__aeabi_fadd"],
        ["__subsf3", "__aeabi_fsub"],
        ["__mulsf3", "__aeabi_fmul"],
        ["__divsf3", "__aeabi_fdiv"]
    ]
);
arithmetic!(
    arithmetic_of_double_floats,
    f64,
    u64,
    52,
    11,
    [
        ["__adddf3", "__aeabi_dadd"],
        ["__subdf3", "__aeabi_dsub"],
        ["__muldf3", "__aeabi_dmul"],
        ["__divdf3", "__aeabi_ddiv"]
    ]
);

#[test]
fn square_roots() {
    let routines = Routines::load(&["sqrtf", "sqrt"]);
    let single = function!(routines, "sqrtf", extern "C" fn(f32) -> f32);
    for (a, _) in pairs(23, 8) {
        let x = f32::from_bits(a as u32);
        same!(f32, single(x).to_bits(), x.sqrt(), "sqrtf {a:x}");
    }
    let double = function!(routines, "sqrt", extern "C" fn(f64) -> f64);
    for (a, _) in pairs(52, 11) {
        let x = f64::from_bits(a);
        same!(f64, double(x).to_bits(), x.sqrt(), "sqrt {a:x}");
    }
}

macro_rules! comparisons {
    ($test:ident, $float:ty, $bits:ty, $mantissa:expr, $exponent:expr, $arm:expr, $gnu:expr) => {
        #[test]
        fn $test() {
            let arm: [&str; 6] = $arm;
            let gnu: [&str; 7] = $gnu;
            let routines = Routines::load(&[&arm[..], &gnu[..]].concat());
            let call = |name: &str, a: u64, b: u64| {
                function!(routines, name, extern "C" fn($bits, $bits) -> i32)(a as $bits, b as $bits)
            };
            for (a, b) in pairs($mantissa, $exponent).step_by(3) {
                let (x, y) = (<$float>::from_bits(a as $bits), <$float>::from_bits(b as $bits));
                let none = x.is_nan() || y.is_nan();
                let expected = [x == y, x < y, x <= y, x > y, x >= y, none];
                for (name, expected) in arm.iter().zip(expected) {
                    assert_eq!(call(name, a, b), i32::from(expected), "{name} {a:x} {b:x}");
                }
                // What a compiler tests: a result's relation to 0.
                let actual = [
                    call(gnu[0], a, b) == 0,
                    call(gnu[1], a, b) != 0,
                    call(gnu[2], a, b) < 0,
                    call(gnu[3], a, b) <= 0,
                    call(gnu[4], a, b) > 0,
                    call(gnu[5], a, b) >= 0,
                    call(gnu[6], a, b) != 0,
                ];
                assert_eq!(actual, [x == y, x != y, x < y, x <= y, x > y, x >= y, none], "{a:x} {b:x}");
            }
        }
    };
}

comparisons!(
    comparisons_of_single_floats,
    f32,
    u32,
    23,
    8,
    [
        "__aeabi_fcmpeq",
        "__aeabi_fcmplt",
        "__aeabi_fcmple",
        "__aeabi_fcmpgt",
        "__aeabi_fcmpge",
        "__aeabi_fcmpun"
    ],
    ["__eqsf2", "__nesf2", "__ltsf2", "__lesf2", "__gtsf2", "__gesf2", "__unordsf2"]
);
comparisons!(
    comparisons_of_double_floats,
    f64,
    u64,
    52,
    11,
    [
        "__aeabi_dcmpeq",
        "__aeabi_dcmplt",
        "__aeabi_dcmple",
        "__aeabi_dcmpgt",
        "__aeabi_dcmpge",
        "__aeabi_dcmpun"
    ],
    ["__eqdf2", "__nedf2", "__ltdf2", "__ledf2", "__gtdf2", "__gedf2", "__unorddf2"]
);

/// The `f16` nearest to a number, found by comparing distances. The conversion of the crate rounds
/// twice on some machines.
fn nearest_half(x: f64) -> f16 {
    let close = f16::from_f64(x);
    if x.is_nan() || x == 0.0 || x.abs() >= 65520.0 {
        return close;
    }
    // The successor of the largest number counts as 65536.
    let value = |h: f16| if h.is_infinite() { 65536.0 } else { h.to_f64().abs() };
    let bits = close.to_bits();
    let magnitude = bits & 0x7fff;
    let candidates = [magnitude.saturating_sub(1), magnitude, (magnitude + 1).min(0x7c00)];
    let key = |&bits: &u16| ((value(f16::from_bits(bits)) - x.abs()).abs(), bits & 1);
    let best = candidates.into_iter().min_by(|a, b| key(a).partial_cmp(&key(b)).expect("no NaN"));
    f16::from_bits(bits & 0x8000 | best.expect("three candidates"))
}

#[test]
fn conversions_among_floats() {
    let names = ["__extendsfdf2", "__truncdfsf2", "__extendhfsf2", "__truncsfhf2", "__truncdfhf2"];
    let routines = Routines::load(&names);
    let half_to_single = function!(routines, "__extendhfsf2", extern "C" fn(u32) -> u32);
    for bits in 0..=u16::MAX {
        let expected = f16::from_bits(bits).to_f32();
        // The upper half of the register may contain anything.
        same!(f32, half_to_single(u32::from(bits) | 0xabcd_0000), expected, "f16 {bits:x}");
    }
    let widen = function!(routines, "__extendsfdf2", extern "C" fn(u32) -> u64);
    let to_half = function!(routines, "__truncsfhf2", extern "C" fn(u32) -> u32);
    // Numbers halfway between two f16, and their neighbors.
    let halfway = (0..0x7c00_u16).flat_map(|bits| {
        let (low, high) = (f16::from_bits(bits).to_f32(), f16::from_bits(bits + 1).to_f32());
        let middle = if high.is_finite() { (low + high) / 2.0 } else { 65520.0 };
        [-1, 0, 1].map(|step: i64| (i64::from(middle.to_bits()) + step) as u64)
    });
    for a in pairs(23, 8).map(|pair| pair.0).chain(halfway) {
        let x = f32::from_bits(a as u32);
        same!(f64, widen(a as u32), f64::from(x), "f64 of {a:x}");
        same!(f16, to_half(a as u32) as u16, f16::from_f32(x), "f16 of {a:x}");
    }
    let narrow = function!(routines, "__truncdfsf2", extern "C" fn(u64) -> u32);
    let double_to_half = function!(routines, "__truncdfhf2", extern "C" fn(u64) -> u32);
    let close = pairs(23, 8).flat_map(|(a, b)| {
        let x = f64::from(f32::from_bits(a as u32)).to_bits();
        // The bits that are rounded away: half of a unit, and about.
        [x, x ^ 1 << 28, (x ^ 1 << 28).wrapping_add(1), (x ^ 1 << 28).wrapping_sub(1), x ^ (b & 0x3fff_ffff)]
    });
    for a in pairs(52, 11).map(|pair| pair.0).chain(close) {
        let x = f64::from_bits(a);
        same!(f32, narrow(a), x as f32, "f32 of {a:x}");
        same!(f16, double_to_half(a) as u16, nearest_half(x), "f16 of {a:x}");
    }
}

macro_rules! integer_conversions {
    ($routines:expr, $float:ty, $bits:ty, $mantissa:expr, $exponent:expr, $($integer:ty, $from:expr, $to:expr;)*) => {
        $({
            let from = function!($routines, $from, extern "C" fn($integer) -> $bits);
            let mut random = Random(7);
            let ends = [<$integer>::MIN, <$integer>::MAX, 0, 1, <$integer>::MIN + 1, <$integer>::MAX - 1];
            for x in ends.into_iter().chain((0..COUNT).map(|_| random.bits() as $integer)) {
                same!($float, from(x), x as $float, "{} {x}", $from);
            }
            let to = function!($routines, $to, extern "C" fn($bits) -> $integer);
            for a in pairs($mantissa, $exponent).map(|pair| pair.0) {
                // Random numbers, and those that integers have.
                let near = (<$float>::from_bits(a as $bits) as $integer) as $float;
                let sized = ((random.bits() as $integer) as $float).to_bits();
                for bits in [a as $bits, near.to_bits(), sized, sized.wrapping_add(1), sized.wrapping_sub(1)] {
                    assert_eq!(to(bits), <$float>::from_bits(bits) as $integer, "{} {bits:x}", $to);
                }
            }
        })*
    };
}

#[test]
fn conversions_to_and_from_integers() {
    let routines = Routines::load(&[
        "__floatsisf",
        "__floatunsisf",
        "__floatdisf",
        "__floatundisf",
        "__floatsidf",
        "__floatunsidf",
        "__floatdidf",
        "__floatundidf",
        "__fixsfsi",
        "__fixunssfsi",
        "__fixsfdi",
        "__fixunssfdi",
        "__fixdfsi",
        "__fixunsdfsi",
        "__fixdfdi",
        "__fixunsdfdi",
    ]);
    integer_conversions!(routines, f32, u32, 23, 8,
        i32, "__floatsisf", "__fixsfsi";
        u32, "__floatunsisf", "__fixunssfsi";
        i64, "__floatdisf", "__fixsfdi";
        u64, "__floatundisf", "__fixunssfdi";
    );
    integer_conversions!(routines, f64, u64, 52, 11,
        i32, "__floatsidf", "__fixdfsi";
        u32, "__floatunsidf", "__fixunsdfsi";
        i64, "__floatdidf", "__fixdfdi";
        u64, "__floatundidf", "__fixunsdfdi";
    );
}

#[test]
fn integer_operations() {
    let routines = Routines::load(&[
        "__mulsi3",
        "__muldi3",
        "__ashldi3",
        "__lshrdi3",
        "__ashrdi3",
        "__divsi3",
        "__udivsi3",
        "__modsi3",
        "__umodsi3",
        "__divdi3",
        "__udivdi3",
        "__moddi3",
        "__umoddi3",
        "__aeabi_idivmod",
        "__aeabi_uidivmod",
        "__clzsi2",
        "__clzdi2",
    ]);
    let word = |name: &str| function!(routines, name, extern "C" fn(u32, u32) -> u32);
    let long = |name: &str| function!(routines, name, extern "C" fn(u64, u64) -> u64);
    let both = |name: &str| function!(routines, name, extern "C" fn(u32, u32) -> u64);
    let shift = |name: &str| function!(routines, name, extern "C" fn(u64, u32) -> u64);
    let count = function!(routines, "__clzsi2", extern "C" fn(u32) -> u32);
    let count_long = function!(routines, "__clzdi2", extern "C" fn(u64) -> u32);
    let mut random = Random(3);
    let ends = [0, 1, 2, u64::MAX, 1 << 63, i64::MAX as u64, 1 << 31, u64::from(u32::MAX), 1 << 32];
    let all = ends.into_iter().flat_map(|a| ends.map(|b| (a, b)));
    for (a, b) in all.chain((0..COUNT).map(|_| (random.bits(), random.bits()))) {
        let (x, y) = (a as u32, b as u32);
        let context = format!("{a:x} {b:x}");
        assert_eq!(word("__mulsi3")(x, y), x.wrapping_mul(y), "{context}");
        assert_eq!(long("__muldi3")(a, b), a.wrapping_mul(b), "{context}");
        assert_eq!(count(x), x.leading_zeros(), "{context}");
        assert_eq!(count_long(a), a.leading_zeros(), "{context}");
        let bits = y % 64;
        assert_eq!(shift("__ashldi3")(a, bits), a << bits, "{context}");
        assert_eq!(shift("__lshrdi3")(a, bits), a >> bits, "{context}");
        assert_eq!(shift("__ashrdi3")(a, bits), ((a as i64) >> bits) as u64, "{context}");
        if y != 0 {
            assert_eq!(word("__udivsi3")(x, y), x / y, "{context}");
            assert_eq!(word("__umodsi3")(x, y), x % y, "{context}");
            let (quotient, rest) = ((x as i32).wrapping_div(y as i32), (x as i32).wrapping_rem(y as i32));
            assert_eq!(word("__divsi3")(x, y) as i32, quotient, "{context}");
            assert_eq!(word("__modsi3")(x, y) as i32, rest, "{context}");
            let pair = |quotient: u32, rest: u32| u64::from(rest) << 32 | u64::from(quotient);
            assert_eq!(both("__aeabi_uidivmod")(x, y), pair(x / y, x % y), "{context}");
            assert_eq!(both("__aeabi_idivmod")(x, y), pair(quotient as u32, rest as u32), "{context}");
        }
        if b != 0 {
            assert_eq!(long("__udivdi3")(a, b), a / b, "{context}");
            assert_eq!(long("__umoddi3")(a, b), a % b, "{context}");
            assert_eq!(long("__divdi3")(a, b) as i64, (a as i64).wrapping_div(b as i64), "{context}");
            assert_eq!(long("__moddi3")(a, b) as i64, (a as i64).wrapping_rem(b as i64), "{context}");
        }
    }
}
