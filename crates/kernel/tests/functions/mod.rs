//! The elementary functions under test, their values with more digits, and code that applies them
//! to arrays.

use codegen::{CodegenOptions, Constants};
use hlo::Interface;
use jit::{Executable, Memory};
use kernel::math;
use nest::{FunctionBuilder, Linkage, PointerFacts, Program, RegionBuilder as _, ScalarType, Type, ValueId};
use shape::{ArrayShape, PrimitiveType};
use support::Result;
use target::Target;

/// Builds a function of its operands.
pub type Build = fn(&mut FunctionBuilder, &Target, &[ValueId]) -> Result<ValueId>;

/// A function under test.
pub struct Case {
    pub name: &'static str,
    pub operands: usize,
    pub build: Build,
    /// Its value in `F64`.
    pub reference: fn(&[f64]) -> f64,
}

macro_rules! cases {
    ($($name:ident($($operand:literal),+) = $reference:expr;)*) => {
        pub const CASES: &[Case] = &[$(Case {
            name: stringify!($name),
            operands: [$($operand),+].len(),
            build: |b, target, v| math::$name(b, target, $(v[$operand]),+),
            reference: |v| $reference($(v[$operand]),+),
        }),*];
    };
}

cases! {
    exp(0) = libm::exp;
    expm1(0) = libm::expm1;
    log(0) = libm::log;
    log1p(0) = libm::log1p;
    sin(0) = libm::sin;
    cos(0) = libm::cos;
    tan(0) = libm::tan;
    tanh(0) = libm::tanh;
    sinh(0) = libm::sinh;
    cosh(0) = libm::cosh;
    asin(0) = libm::asin;
    acos(0) = libm::acos;
    atan(0) = libm::atan;
    asinh(0) = libm::asinh;
    // libm's acosh is a number for some operands below -1.
    acosh(0) = |x: f64| if x < 1.0 { f64::NAN } else { libm::acosh(x) };
    atanh(0) = libm::atanh;
    erf(0) = libm::erf;
    logistic(0) = logistic;
    cbrt(0) = libm::cbrt;
    rsqrt(0) = |x: f64| 1.0 / x.sqrt();
    pow(0, 1) = libm::pow;
    atan2(0, 1) = libm::atan2;
    fmod(0, 1) = libm::fmod;
}

/// Does not overflow, unlike `1 / (1 + e^-x)` where the result is subnormal in `F32`.
fn logistic(x: f64) -> f64 {
    let e = libm::exp(-x.abs());
    if x >= 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) }
}

/// Returns this machine at its baseline, at the common level x86-64-v3, and with all of its
/// features.
pub fn targets() -> Vec<Target> {
    let triple = codegen::host_triple();
    let (cpu, features) = codegen::host_target();
    let mut names = vec![("", "")];
    if triple.starts_with("x86_64") && ["+avx2", "+fma", "+bmi2"].iter().all(|f| features.contains(f)) {
        names.push(("x86-64-v3", ""));
    }
    names.push((&cpu, &features));
    names
        .iter()
        .map(|(cpu, features)| Target::new(&triple, cpu, features).expect("the host's triple"))
        .collect()
}

/// Returns a program for `result[i] = function(operands[i])` on `count` elements, a multiple of
/// `lanes`.
fn program(case: &Case, target: &Target, scalar: ScalarType, lanes: u32, count: usize) -> Program {
    let mut b = FunctionBuilder::new("entry", Linkage::Entry);
    let frame = b.parameter("frame", Type::PTR, PointerFacts { alignment: 8, ..Default::default() });
    let pointer = |b: &mut FunctionBuilder, table: ValueId, bytes: i64| {
        let address = b.offset_bytes(table, bytes);
        b.load(Type::PTR, address, 8)
    };
    let (arguments, results) = (pointer(&mut b, frame, 16), pointer(&mut b, frame, 24));
    let arrays: Vec<_> = (0..case.operands as i64).map(|k| pointer(&mut b, arguments, 8 * k)).collect();
    let output = pointer(&mut b, results, 0);
    let size = scalar.byte_size();
    let (begin, end) = (b.index(0), b.index(count as i64));
    b.for_each(begin, end, i64::from(lanes), |b, i| {
        let load = |b: &mut FunctionBuilder, array: ValueId| {
            let address = b.offset(array, i, size as i64);
            b.load(Type::vector(scalar, lanes), address, size as u32)
        };
        let operands: Vec<_> = arrays.iter().map(|&array| load(b, array)).collect();
        let value = (case.build)(b, target, &operands)?;
        let address = b.offset(output, i, size as i64);
        b.store(value, address, size as u32);
        Ok(())
    })
    .expect("every function is defined");
    let mut program = Program::default();
    program.functions.push(b.finish());
    program
}

pub fn compile(case: &Case, target: &Target, scalar: ScalarType, lanes: u32, count: usize) -> Vec<u8> {
    let program = program(case, target, scalar, lanes, count);
    nest::verify(&program).unwrap_or_else(|e| panic!("{}: {e}\n{program}", case.name));
    codegen::compile(&program, target, &CodegenOptions::new("test_entry"), &Constants::default())
        .unwrap_or_else(|e| panic!("{} for {}: {e}", case.name, target.triple.as_str()))
        .object
}

/// Returns a function of arrays of `bytes` bytes.
pub fn executable(case: &Case, target: &Target, scalar: ScalarType, lanes: u32, bytes: usize) -> Executable {
    let object = compile(case, target, scalar, lanes, bytes / scalar.byte_size());
    let array = ArrayShape::new(PrimitiveType::U8, &[bytes as i64]);
    let interface = Interface::of_arrays(vec![array.clone(); case.operands], [array]);
    Executable::load(&object, "test_entry", interface, Memory::default(), None).expect("the object loads")
}

/// Returns the error of an `F32` result in units of the value's last place. Special values must be
/// exact.
pub fn ulps(got: f32, value: f64) -> f64 {
    let rounded = value as f32;
    if value.is_nan() || got.is_nan() {
        return if value.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if value.is_infinite() || value == 0.0 {
        return if got.to_bits() == rounded.to_bits() { 0.0 } else { f64::INFINITY };
    }
    if got.is_sign_negative() != value.is_sign_negative() {
        return f64::INFINITY;
    }
    // Infinity counts as the number after the largest one.
    let got = if got.is_infinite() { 2f64.powi(128).copysign(value) } else { f64::from(got) };
    let exponent = ((value.abs().to_bits() >> 52) as i32 - 1023).clamp(-126, 127);
    let last_place = 2f64.powi(exponent - 23);
    let nearest = value.abs().min(2f64.powi(128)).copysign(value);
    (got - nearest).abs() / last_place
}

pub fn bytes_of<const N: usize>(column: impl Iterator<Item = [u8; N]>) -> Vec<u8> {
    column.flatten().collect()
}
