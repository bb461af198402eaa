//! Compiles small programs for this machine and runs them on arrays.
#![allow(dead_code, reason = "each test file uses a part")]

use codegen::{CodegenOptions, Constants};
use hlo::Interface;
use jit::{AlignedBytes, Executable, Memory};
use nest::{FunctionBuilder, Linkage, PointerFacts, Program, RegionBuilder as _, ScalarType, Type, ValueId};
use shape::{ArrayShape, PrimitiveType};
use support::Result;
use target::Target;

/// Offsets of the frame's fields.
pub const ARGS: i64 = 16;
pub const RESULTS: i64 = 24;
pub const TEMPS: i64 = 32;
pub const CONSTANTS: i64 = 40;

/// Numbers of lanes that every operation is tested with.
pub const LANES: [u32; 5] = [1, 2, 4, 8, 16];

/// This machine with its baseline features and with all features.
pub fn targets() -> Vec<Target> {
    let triple = codegen::host_triple();
    let (cpu, features) = codegen::host_target();
    let mut targets = vec![Target::new(&triple, "", "").expect("the host's triple")];
    targets.push(Target::new(&triple, &cpu, &features).expect("the host's triple"));
    targets
}

/// Loads an address from a field of the frame.
pub fn field(b: &mut FunctionBuilder, frame: ValueId, offset: i64) -> ValueId {
    let address = b.offset_bytes(frame, offset);
    b.load(Type::PTR, address, 8)
}

/// Loads element `k` of a table of addresses.
pub fn element(b: &mut FunctionBuilder, table: ValueId, k: i64) -> ValueId {
    let address = b.offset_bytes(table, 8 * k);
    b.load(Type::PTR, address, 8)
}

/// A program whose entry is built by a closure from the addresses of arguments and results.
pub fn entry_program(
    arguments: usize,
    results: usize,
    build: impl FnOnce(&mut FunctionBuilder, &[ValueId], &[ValueId]) -> Result<()>,
) -> Program {
    let mut b = FunctionBuilder::new("entry", Linkage::Entry);
    let frame = b.parameter("frame", Type::PTR, PointerFacts { alignment: 8, ..Default::default() });
    let args = field(&mut b, frame, ARGS);
    let outs = field(&mut b, frame, RESULTS);
    let args: Vec<_> = (0..arguments as i64).map(|k| element(&mut b, args, k)).collect();
    let outs: Vec<_> = (0..results as i64).map(|k| element(&mut b, outs, k)).collect();
    build(&mut b, &args, &outs).expect("the test builds its code");
    let mut program = Program::default();
    program.functions.push(b.finish());
    program
}

/// Compiles, loads, and runs a program once. Returns the results' bytes.
pub fn run(program: &Program, target: &Target, arguments: &[&[u8]], results: &[usize]) -> Vec<Vec<u8>> {
    nest::verify(program).unwrap_or_else(|e| panic!("{e}\n{program}"));
    let compiled =
        codegen::compile(program, target, &CodegenOptions::new("test_entry"), &Constants::default())
            .unwrap_or_else(|e| panic!("{e}\n{program}"));
    let shapes =
        |sizes: Vec<usize>| sizes.into_iter().map(|n| ArrayShape::new(PrimitiveType::U8, &[n as i64]));
    let interface =
        Interface::of_arrays(shapes(arguments.iter().map(|a| a.len()).collect()), shapes(results.to_vec()));
    let executable = Executable::load(&compiled.object, "test_entry", interface, Memory::default(), None)
        .expect("the object loads");
    let mut instance = executable.instance().expect("small buffers");
    let mut owned: Vec<AlignedBytes> =
        arguments.iter().map(|a| AlignedBytes::from_bytes(a).expect("a small buffer")).collect();
    let mut views: Vec<&mut [u8]> = owned.iter_mut().map(|a| &mut **a).collect();
    instance.run(&mut views).expect("the code runs");
    (0..results.len()).map(|k| instance.result(k).to_vec()).collect()
}

/// An array element.
pub trait Element: Copy + PartialEq + std::fmt::Debug {
    /// Type of the element in the loop-nest language.
    const SCALAR: ScalarType;
    /// Bytes of the element.
    fn bytes(self) -> Vec<u8>;
    /// Creates the element from its bytes.
    fn from_bytes(bytes: &[u8]) -> Self;
    /// True if the values are equal. All NaNs are equal.
    fn same(self, other: Self) -> bool {
        self == other
    }
}

macro_rules! element {
    ($ty:ty, $scalar:ident $(, $same:expr)?) => {
        impl Element for $ty {
            const SCALAR: ScalarType = ScalarType::$scalar;
            fn bytes(self) -> Vec<u8> {
                self.to_ne_bytes().to_vec()
            }
            fn from_bytes(bytes: &[u8]) -> Self {
                Self::from_ne_bytes(bytes.try_into().expect("an element's bytes"))
            }
            $(fn same(self, other: Self) -> bool {
                let same: fn(Self, Self) -> bool = $same;
                same(self, other)
            })?
        }
    };
}
element!(i8, I8);
element!(u8, I8);
element!(i16, I16);
element!(u16, I16);
element!(i32, I32);
element!(u32, I32);
element!(i64, I64);
element!(u64, I64);
element!(f32, F32, |a, b| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()));
element!(f64, F64, |a, b| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()));

/// Bytes of an array.
pub fn bytes_of<T: Element>(values: &[T]) -> Vec<u8> {
    values.iter().flat_map(|v| v.bytes()).collect()
}

/// Array with these bytes.
pub fn values_of<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(T::from_bytes).collect()
}

/// Repeats an array to a multiple of 16 elements.
fn padded<T: Element>(values: &[T]) -> Vec<T> {
    let len = values.len().next_multiple_of(16);
    values.iter().copied().cycle().take(len).collect()
}

/// Builds `out[i] = op(a[i], b[i], ..)` for every number of lanes and target, and compares the
/// results.
fn check(
    is_supported: impl Fn(&Target) -> bool,
    what: &str,
    inputs: &[(ScalarType, Vec<u8>)],
    output: ScalarType,
    count: usize,
    op: impl Fn(&mut FunctionBuilder, &[ValueId]) -> ValueId,
    compare: impl Fn(&[u8], &str),
) {
    for target in targets().into_iter().filter(|target| is_supported(target)) {
        for lanes in LANES {
            let program = entry_program(inputs.len(), 1, |b, args, outs| {
                let (zero, end) = (b.index(0), b.index(count as i64));
                b.for_each(zero, end, i64::from(lanes), |b, i| {
                    let operands: Vec<_> = inputs
                        .iter()
                        .zip(args)
                        .map(|((scalar, _), &array)| {
                            let size = scalar.byte_size();
                            let address = b.offset(array, i, size as i64);
                            b.load(Type::vector(*scalar, lanes), address, size as u32)
                        })
                        .collect();
                    let value = op(b, &operands);
                    let size = output.byte_size();
                    let address = b.offset(outs[0], i, size as i64);
                    b.store(value, address, size as u32);
                    Ok(())
                })
            });
            let arrays: Vec<&[u8]> = inputs.iter().map(|(_, bytes)| &bytes[..]).collect();
            let results = run(&program, &target, &arrays, &[count * output.byte_size()]);
            compare(&results[0], &format!("{what}, {lanes} lanes, cpu '{}'", target.cpu));
        }
    }
}

fn compare_all<T: Element>(got: &[u8], expected: &[T], context: &str, operands: impl Fn(usize) -> String) {
    let got = values_of::<T>(got);
    assert_eq!(got.len(), expected.len());
    for (i, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        assert!(got.same(expected), "{context}: {} gives {got:?}, expected {expected:?}", operands(i));
    }
}

/// Tests an operation with one operand.
pub fn unary<A: Element, R: Element>(
    what: &str,
    a: &[A],
    op: impl Fn(&mut FunctionBuilder, ValueId) -> ValueId,
    expected: impl Fn(A) -> R,
) {
    unary_where(|_| true, what, a, op, expected);
}

/// Tests an operation with one operand on the targets that support it.
pub fn unary_where<A: Element, R: Element>(
    is_supported: impl Fn(&Target) -> bool,
    what: &str,
    a: &[A],
    op: impl Fn(&mut FunctionBuilder, ValueId) -> ValueId,
    expected: impl Fn(A) -> R,
) {
    let a = padded(a);
    let expected: Vec<R> = a.iter().map(|&x| expected(x)).collect();
    check(
        is_supported,
        what,
        &[(A::SCALAR, bytes_of(&a))],
        R::SCALAR,
        a.len(),
        |b, v| op(b, v[0]),
        |got, context| compare_all(got, &expected, context, |i| format!("{:?}", a[i])),
    );
}

/// Tests an operation with two operands on every pair of the values for which `defined` returns
/// true.
pub fn binary<A: Element, R: Element>(
    what: &str,
    values: &[A],
    defined: impl Fn(A, A) -> bool,
    op: impl Fn(&mut FunctionBuilder, ValueId, ValueId) -> ValueId,
    expected: impl Fn(A, A) -> R,
) {
    let pairs: Vec<(A, A)> = values
        .iter()
        .flat_map(|&x| values.iter().map(move |&y| (x, y)))
        .filter(|&(x, y)| defined(x, y))
        .collect();
    let (x, y): (Vec<A>, Vec<A>) = pairs.into_iter().unzip();
    let (x, y) = (padded(&x), padded(&y));
    let expected: Vec<R> = x.iter().zip(&y).map(|(&x, &y)| expected(x, y)).collect();
    check(
        |_| true,
        what,
        &[(A::SCALAR, bytes_of(&x)), (A::SCALAR, bytes_of(&y))],
        R::SCALAR,
        x.len(),
        |b, v| op(b, v[0], v[1]),
        |got, context| compare_all(got, &expected, context, |i| format!("({:?}, {:?})", x[i], y[i])),
    );
}
