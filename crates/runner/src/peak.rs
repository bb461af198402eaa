//! Measures the machine's peak rates with code from the same code generator: multiply-adds that
//! depend only on registers, and a sum over more memory than the caches hold.

use codegen::{CodegenOptions, Constants};
use hlo::Interface;
use jit::{AlignedBytes, Executable, Memory};
use nest::{
    FunctionBuilder, GroupKind, Linkage, PointerFacts, Program, RegionBuilder as _, ScalarType, Type, ValueId,
};
use shape::{ArrayShape, PrimitiveType};
use std::sync::{Barrier, RwLock};
use std::thread::Builder;
use std::time::{Duration, Instant};
use support::{Code, Error, Result};
use target::Target;

/// Peak rates for one thread count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// Number of concurrent threads.
    pub threads: usize,
    /// `f32` additions and multiplications per second, two per multiply-add.
    pub flops: f64,
    /// Bytes read from memory per second.
    pub bytes: f64,
}

/// Iterations of the multiply-add loop per call.
const ITERATIONS: i64 = 1 << 14;
/// Number of summed elements: 128 MiB per thread.
const ELEMENTS: i64 = 32 << 20;
/// Maximum number of bytes that a probe reads.
const MAX_STREAM_BYTES: u64 = 1 << 30;
/// Number of vectors accumulated side by side.
const CHAINS: u32 = 8;
/// Offsets of the frame's fields with the addresses of arguments and results.
const FRAME_ARGS: i64 = 16;
const FRAME_RESULTS: i64 = 24;
/// The peak is the best of many short parts, because other work on the machine disturbs some of
/// them. A part is much shorter than the time slice of a busy system, and so are the runs that are
/// compared with the peak.
const PART: Duration = Duration::from_micros(300);
/// Number of parts for the arithmetic, and for the sum, where one call takes longer than a part.
const ARITHMETIC_PARTS: usize = 600;
const STREAM_PARTS: usize = 24;

/// Measures the peak of `threads` threads.
pub fn measure_peak(target: &Target, threads: usize) -> Result<Peak> {
    let threads = threads.clamp(1, 1024);
    let arithmetic = Probe::arithmetic(target)?;
    let stream = Probe::stream(target, (4 * ELEMENTS) as u64)?;
    Ok(Peak {
        threads,
        flops: arithmetic.best(threads, ARITHMETIC_PARTS)?,
        bytes: stream.best(threads, STREAM_PARTS)?,
    })
}

/// Code that stresses one resource of the machine, measured side by side with the code under test.
#[derive(Debug)]
pub struct Probe {
    code: Executable,
    /// Operations or bytes per call.
    units_per_call: f64,
}

impl Probe {
    /// Creates a probe of `f32` multiply-adds in registers. Its rate is in operations per second,
    /// two per multiply-add.
    pub fn arithmetic(target: &Target) -> Result<Self> {
        let lanes = target.lanes(4);
        // Enough chains to hide the latency of one, few enough to stay in registers.
        let chains = (target.vector_registers.saturating_sub(4)).clamp(8, 24);
        let code = load(&multiply_adds(target, lanes, chains)?, target, lanes.into())?;
        Ok(Self { code, units_per_call: (ITERATIONS * i64::from(lanes) * i64::from(chains) * 2) as f64 })
    }

    /// Creates a probe of products of bytes in registers, four in each 32-bit lane. Its rate is in
    /// operations per second, two per product.
    pub fn bytes(target: &Target) -> Result<Self> {
        let is_signed = target.byte_products.is_some_and(|products| products.takes(true));
        Self::groups(target, if is_signed { GroupKind::SignedBytes } else { GroupKind::UnsignedBytes }, 4)
    }

    /// Creates a probe of products of `bf16` in registers, two in each 32-bit lane. Its rate is in
    /// operations per second, two per product.
    pub fn bf16(target: &Target) -> Result<Self> {
        Self::groups(target, GroupKind::Bf16, 2)
    }

    /// Creates a probe of products of groups of `size` factors.
    fn groups(target: &Target, kind: GroupKind, size: i64) -> Result<Self> {
        let lanes = target.for_groups().lanes(4);
        let chains = (target.vector_registers.saturating_sub(6)).clamp(8, 24);
        let code = load(&group_products(kind, lanes, chains)?, target, lanes.into())?;
        let products = ITERATIONS * i64::from(lanes) * i64::from(chains) * size;
        Ok(Self { code, units_per_call: (products * 2) as f64 })
    }

    /// Creates a probe that reads `bytes` bytes (at least a few kilobytes) repeatedly in each
    /// thread. Its rate is in bytes per second.
    pub fn stream(target: &Target, bytes: u64) -> Result<Self> {
        let lanes = target.lanes(4);
        let together = i64::from(lanes * CHAINS);
        let elements = (bytes.min(MAX_STREAM_BYTES) / 4) as i64;
        let elements = (elements / together).max(8) * together;
        let code = load(&sum(lanes, elements)?, target, elements)?;
        Ok(Self { code, units_per_call: (elements * 4) as f64 })
    }

    /// Returns the best rate of `parts` parts of 300 us each, or of one call if that takes longer,
    /// on `threads` threads.
    pub fn best(&self, threads: usize, parts: usize) -> Result<f64> {
        Ok(rate(&self.code, threads, parts)? * self.units_per_call)
    }
}

/// Builds a function that repeatedly multiplies and adds to `chains` vectors.
fn multiply_adds(target: &Target, lanes: u32, chains: u32) -> Result<Program> {
    let ty = Type::vector(ScalarType::F32, lanes);
    entry(|b, argument, result| {
        let (begin, end) = (b.index(0), b.index(ITERATIONS));
        let x = b.load(ty, argument, 4);
        let factor = b.float(ty, 0.75);
        let initial = vec![x; chains as usize];
        let sums = b.for_carrying(begin, end, 1, &initial, |b, _, sums| {
            let step = |b: &mut FunctionBuilder, sum| {
                if target.has_fma {
                    return b.multiply_add(sum, factor, x);
                }
                let product = b.mul(sum, factor);
                b.add(product, x)
            };
            Ok(sums.iter().map(|&sum| step(b, sum)).collect())
        })?;
        store_sum(b, &sums, result);
        Ok(())
    })
}

/// Builds a function that repeatedly adds products of groups to `chains` vectors.
fn group_products(kind: GroupKind, lanes: u32, chains: u32) -> Result<Program> {
    let ty = Type::vector(kind.sum(), lanes);
    entry(|b, argument, result| {
        let (begin, end) = (b.index(0), b.index(ITERATIONS));
        let x = b.load(ty, argument, 4);
        let initial = vec![x; chains as usize];
        let x = b.bitcast(x, ty.with_scalar(ScalarType::I32));
        let sums = b.for_carrying(begin, end, 1, &initial, |b, _, sums| {
            Ok(sums.iter().map(|&sum| b.group_multiply_add(kind, x, x, sum)).collect())
        })?;
        store_sum(b, &sums, result);
        Ok(())
    })
}

/// Builds a function that sums an array.
fn sum(lanes: u32, elements: i64) -> Result<Program> {
    let ty = Type::vector(ScalarType::F32, lanes);
    entry(|b, argument, result| {
        let (begin, end) = (b.index(0), b.index(elements));
        let zero = b.float(ty, 0.0);
        let initial = vec![zero; CHAINS as usize];
        let sums = b.for_carrying(begin, end, i64::from(lanes * CHAINS), &initial, |b, index, sums| {
            let add = |b: &mut FunctionBuilder, (chain, &sum): (usize, &ValueId)| {
                let index = b.add_constant(index, chain as i64 * i64::from(lanes));
                let pointer = b.offset(argument, index, 4);
                let value = b.load(ty, pointer, 4);
                b.add(sum, value)
            };
            Ok(sums.iter().enumerate().map(|sum| add(b, sum)).collect())
        })?;
        store_sum(b, &sums, result);
        Ok(())
    })
}

/// Builds an entry whose body receives the addresses of argument 0 and result 0.
fn entry(body: impl FnOnce(&mut FunctionBuilder, ValueId, ValueId) -> Result<()>) -> Result<Program> {
    let mut b = FunctionBuilder::new(ENTRY_POINT, Linkage::Entry);
    let frame = b.parameter("frame", Type::PTR, PointerFacts { alignment: 8, ..PointerFacts::default() });
    let mut pointer = |offset: i64| {
        let field = b.offset_bytes(frame, offset);
        let table = b.load(Type::PTR, field, 8);
        b.load(Type::PTR, table, 8)
    };
    let (argument, result) = (pointer(FRAME_ARGS), pointer(FRAME_RESULTS));
    body(&mut b, argument, result)?;
    let mut program = Program::default();
    program.functions.push(b.finish());
    Ok(program)
}

const ENTRY_POINT: &str = "peak";

fn store_sum(b: &mut FunctionBuilder, sums: &[ValueId], result: ValueId) {
    let mut total = sums[0];
    for &sum in &sums[1..] {
        total = b.add(total, sum);
    }
    b.store(total, result, 4);
}

fn load(program: &Program, target: &Target, argument_elements: i64) -> Result<Executable> {
    let options = CodegenOptions::new(ENTRY_POINT);
    let code = codegen::compile(program, target, &options, &Constants::default())?;
    let array = |elements| [ArrayShape::new(PrimitiveType::F32, &[elements])];
    let interface = Interface::of_arrays(array(argument_elements), array(target.lanes(4).into()));
    Executable::load(&code.object, ENTRY_POINT, interface, Memory::default(), None)
}

/// Returns the calls per second of all threads in total: the best of the measurement's parts.
fn rate(code: &Executable, threads: usize, parts: usize) -> Result<f64> {
    let barrier = Barrier::new(threads);
    // A thread that never starts would leave the others at the barrier, so all wait until all have
    // started. False if one did not.
    let started = RwLock::new(false);
    let prepare = || -> Result<_> {
        let mut argument = AlignedBytes::zeroed(code.interface().arguments()[0].shape.byte_size() as usize)?;
        // Pages that were never written may share one physical page.
        argument.fill(0x3c);
        let mut instance = code.instance()?;
        instance.run(&mut [&mut argument[..]])?;
        Ok((argument, instance))
    };
    let measure = || -> Result<Vec<f64>> {
        if !started.read().is_ok_and(|started| *started) {
            return Ok(vec![0.0; parts]);
        }
        let mut prepared = prepare();
        let mut rates = Vec::new();
        for _ in 0..parts {
            barrier.wait();
            let Ok((argument, instance)) = &mut prepared else { continue };
            let start = Instant::now();
            let mut calls = 0u32;
            while calls == 0 || start.elapsed() < PART {
                instance.run(&mut [&mut argument[..]])?;
                calls += 1;
            }
            rates.push(f64::from(calls) / start.elapsed().as_secs_f64());
        }
        prepared.map(|_| rates)
    };
    let all = std::thread::scope(|scope| {
        let mut gate = started.write().map_err(|_| Error::internal("a measuring thread panicked"))?;
        let spawn = |_| Builder::new().spawn_scoped(scope, measure);
        let workers = (1..threads).map(spawn).collect::<std::io::Result<Vec<_>>>().map_err(|e| {
            let message = format!("cannot start {threads} threads to measure this machine ({e}); use fewer");
            Error::invalid(message).coded(Code::Resources)
        })?;
        *gate = true;
        drop(gate);
        let here = std::iter::once(Ok(measure()));
        let joined = here.chain(workers.into_iter().map(|w| w.join()));
        joined
            .map(|rates| rates.unwrap_or_else(|_| Err(Error::internal("a measuring thread panicked"))))
            .collect::<Result<Vec<Vec<f64>>>>()
    })?;
    let part = |part: usize| all.iter().map(|rates| rates[part]).sum::<f64>();
    Ok((0..parts).map(part).fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_code_computes_what_it_says() {
        let target = compiler::host("native").unwrap();
        let lanes = target.lanes(4);
        let arithmetic = load(&multiply_adds(&target, lanes, 8).unwrap(), &target, lanes.into()).unwrap();
        let ones: Vec<u8> = (0..lanes).flat_map(|_| 1f32.to_le_bytes()).collect();
        let mut argument = AlignedBytes::from_bytes(&ones).unwrap();
        let mut instance = arithmetic.instance().unwrap();
        instance.run(&mut [&mut argument[..]]).unwrap();
        // s = 0.75 s + 1 tends to 4, in each of 8 chains.
        let result: Vec<f32> =
            instance.result(0).chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        assert_eq!(result.len(), lanes as usize);
        assert!(result.iter().all(|r| (r - 32.0).abs() < 1e-4), "{result:?}");
    }
}
