//! Runs device programs without a device: all threads of a workgroup together, statement by
//! statement, and one workgroup after another. Finds races: two threads that touch the same bytes,
//! one of them writing, without a barrier between them or in different workgroups.

mod arithmetic;
mod matrix;
mod memory;

use arithmetic::{binary, compare, convert, masked, multiply_add, unary};
use memory::{Access, Memory};
use nest::launch::{DeviceProgram, Space, Step};
use nest::{Block, Constant, Expression, Function, Linkage, Statement, ThreadIndex, Type, ValueId};
use support::Id as _;

/// The blocks of memory of a program, in the order of their numbers.
pub struct Blocks {
    pub arguments: Vec<Vec<u8>>,
    pub results: Vec<Vec<u8>>,
    pub temps: Vec<u8>,
    pub constants: Vec<u8>,
}

/// Runs a program of launches and copies. Panics if a kernel has a race or accesses memory out of
/// bounds. Returns the results.
pub fn run(program: &DeviceProgram, blocks: Blocks) -> Vec<Vec<u8>> {
    let mut memory = Memory::default();
    let arguments: Vec<u64> = blocks.arguments.into_iter().map(|bytes| memory.add(bytes)).collect();
    let results: Vec<u64> = blocks.results.into_iter().map(|bytes| memory.add(bytes)).collect();
    let temps = memory.add(blocks.temps);
    let constants = memory.add(blocks.constants);
    let control = memory.add(vec![0; program.control_size as usize]);
    let scratch = memory.add(vec![0xA5; program.scratch_size as usize]);
    let address = |slot: nest::launch::SlotId| {
        let slot = program.slots[slot.index()];
        let block = match slot.space {
            Space::Argument(number) => arguments[number as usize],
            Space::Result(number) => results[number as usize],
            Space::Temps => temps,
            Space::Constants => constants,
            Space::Control => control,
            Space::Scratch => scratch,
            Space::Null => return 0,
            Space::Sizes => panic!("no sizes in tests"),
        };
        block + slot.offset
    };
    for step in &program.steps {
        match step {
            Step::Launch { kernel, groups, arguments } => {
                let function = &program.kernels.functions[*kernel];
                let arguments: Vec<u64> = arguments.iter().map(|&slot| address(slot)).collect();
                memory.launch();
                for group in 0..*groups {
                    Group::new(&mut memory, function, group).run(&arguments);
                }
            }
            Step::Copy { to, from, bytes } => {
                for at in 0..*bytes {
                    let byte = memory.bytes(address(*from) + at, 1)[0];
                    memory.set(address(*to) + at, &[byte]);
                }
            }
            other => panic!("no {other:?} in tests"),
        }
    }
    results.iter().map(|&block| memory.take(block)).collect()
}

/// A running workgroup.
struct Group<'p, 'm> {
    memory: &'m mut Memory,
    function: &'p Function,
    group: u64,
    threads: usize,
    /// The bits of each value: the lanes of thread 0, then those of thread 1, and so on.
    values: Vec<Vec<u64>>,
    /// Barriers so far.
    epoch: u32,
}

impl<'p, 'm> Group<'p, 'm> {
    fn new(memory: &'m mut Memory, function: &'p Function, group: u64) -> Self {
        let Linkage::Kernel { threads } = function.linkage else { panic!("expected a kernel") };
        let threads = threads as usize;
        let values = function.values.iter().map(|(_, ty)| vec![0; threads * ty.lanes as usize]).collect();
        Self { memory, function, group, threads, values, epoch: 0 }
    }

    fn run(mut self, arguments: &[u64]) {
        for (parameter, &argument) in self.function.parameters.iter().zip(arguments) {
            self.values[parameter.value.index()].fill(argument);
        }
        let all: Vec<usize> = (0..self.threads).collect();
        self.block(&self.function.body, &all);
        self.memory.leave_group();
    }

    fn ty(&self, id: ValueId) -> Type {
        self.function.values[id]
    }

    fn lanes(&self, id: ValueId, thread: usize) -> &[u64] {
        let lanes = self.ty(id).lanes as usize;
        &self.values[id.index()][thread * lanes..(thread + 1) * lanes]
    }

    fn scalar(&self, id: ValueId, thread: usize) -> u64 {
        self.lanes(id, thread)[0]
    }

    fn set(&mut self, id: ValueId, thread: usize, lanes: &[u64]) {
        let count = self.ty(id).lanes as usize;
        self.values[id.index()][thread * count..(thread + 1) * count].copy_from_slice(lanes);
    }

    fn copy(&mut self, to: ValueId, from: ValueId, active: &[usize]) {
        for &thread in active {
            let lanes = self.lanes(from, thread).to_vec();
            self.set(to, thread, &lanes);
        }
    }

    fn block(&mut self, block: &Block, active: &[usize]) {
        for statement in &block.statements {
            self.statement(statement, active);
        }
    }

    fn statement(&mut self, statement: &Statement, active: &[usize]) {
        match statement {
            Statement::Let(id, Expression::WorkgroupMemory { bytes, .. }) => {
                let address = self.memory.add_shared(*bytes as usize);
                self.values[id.index()].fill(address);
            }
            Statement::Let(id, Expression::MatrixMultiplyAdd { kind, a, b, c }) => {
                assert_eq!(active.len(), self.threads, "a product of matrices without some threads");
                for warp in active.chunks(32) {
                    let words = |id: ValueId| -> Vec<Vec<u64>> {
                        warp.iter().map(|&thread| self.lanes(id, thread).to_vec()).collect()
                    };
                    let sums = matrix::multiply_add(*kind, &words(*a), &words(*b), &words(*c));
                    for (&thread, sums) in warp.iter().zip(&sums) {
                        self.set(*id, thread, sums);
                    }
                }
            }
            Statement::Let(id, expression) => {
                for &thread in active {
                    let lanes = self.expression(*id, expression, thread);
                    self.set(*id, thread, &lanes);
                }
            }
            Statement::Store { value, pointer, alignment, mask } => {
                assert!(mask.is_none(), "no masks in tests");
                let scalar = self.ty(*value).scalar;
                for &thread in active {
                    let address = self.scalar(*pointer, thread);
                    self.check(address, *alignment);
                    let size = scalar.byte_size();
                    for (lane, bits) in self.lanes(*value, thread).to_vec().into_iter().enumerate() {
                        let at = address + (lane * size) as u64;
                        self.memory.touch(at, size, self.access(thread, true));
                        self.memory.set(at, &bits.to_le_bytes()[..size]);
                    }
                }
            }
            Statement::For { index, begin, end, step, carried, body } => {
                for c in carried {
                    self.copy(c.inner, c.initial, active);
                }
                self.copy(*index, *begin, active);
                loop {
                    let is_in = |&thread: &usize| {
                        (self.scalar(*index, thread) as i64) < self.scalar(*end, thread) as i64
                    };
                    let inside: Vec<usize> = active.iter().copied().filter(is_in).collect();
                    if inside.is_empty() {
                        break;
                    }
                    self.block(body, &inside);
                    self.next(carried, &body.yields, &inside);
                    for &thread in &inside {
                        let next = self.scalar(*index, thread).wrapping_add(*step as u64);
                        self.set(*index, thread, &[next]);
                    }
                }
                for c in carried {
                    self.copy(c.result, c.inner, active);
                }
            }
            Statement::If { condition, results, then, otherwise } => {
                let holds = |&thread: &usize| self.scalar(*condition, thread) != 0;
                let (yes, no): (Vec<usize>, Vec<usize>) = active.iter().partition(|thread| holds(thread));
                for (block, active) in [(then, yes), (otherwise, no)] {
                    if !active.is_empty() {
                        self.block(block, &active);
                        for (&result, &value) in results.iter().zip(&block.yields) {
                            self.copy(result, value, &active);
                        }
                    }
                }
            }
            Statement::Barrier => {
                assert_eq!(active.len(), self.threads, "a barrier that only some threads reach");
                self.epoch += 1;
            }
            Statement::Prefetch { .. } => {}
            other => panic!("no {other:?} in tests"),
        }
    }

    /// Sets the carried values of the next iteration, all at once.
    fn next(&mut self, carried: &[nest::Carried], yields: &[ValueId], active: &[usize]) {
        for &thread in active {
            let values: Vec<Vec<u64>> = yields.iter().map(|&id| self.lanes(id, thread).to_vec()).collect();
            for (c, lanes) in carried.iter().zip(values) {
                self.set(c.inner, thread, &lanes);
            }
        }
    }

    fn access(&self, thread: usize, writes: bool) -> Access {
        Access { group: self.group as u32, epoch: self.epoch, thread: thread as u32, writes }
    }

    fn check(&self, address: u64, alignment: u32) {
        let offset = address & memory::OFFSET;
        assert_eq!(offset % u64::from(alignment), 0, "{}: an address is not aligned", self.function.name);
    }

    fn expression(&mut self, id: ValueId, expression: &Expression, thread: usize) -> Vec<u64> {
        let ty = self.ty(id);
        let lanes = ty.lanes as usize;
        let of = |id: ValueId| self.lanes(id, thread);
        match expression {
            Expression::Constant(Constant::Integer(value)) => vec![masked(ty.scalar, *value as u64); lanes],
            Expression::Constant(Constant::FloatBits(bits)) => vec![*bits; lanes],
            Expression::Unary(op, a) => of(*a).iter().map(|&a| unary(*op, ty.scalar, a)).collect(),
            Expression::Binary(op, a, b) => {
                of(*a).iter().zip(of(*b)).map(|(&a, &b)| binary(*op, ty.scalar, a, b)).collect()
            }
            Expression::MultiplyAdd(a, b, c) => {
                let factors = of(*a).iter().zip(of(*b)).zip(of(*c));
                factors.map(|((&a, &b), &c)| multiply_add(ty.scalar, a, b, c)).collect()
            }
            Expression::Compare(predicate, a, b) => {
                let scalar = self.ty(*a).scalar;
                of(*a).iter().zip(of(*b)).map(|(&a, &b)| compare(*predicate, scalar, a, b)).collect()
            }
            Expression::Select(condition, a, b) => {
                let conditions = of(*condition);
                let pick = |lane: usize| {
                    let holds = conditions[lane.min(conditions.len() - 1)] != 0;
                    if holds { of(*a)[lane] } else { of(*b)[lane] }
                };
                (0..lanes).map(pick).collect()
            }
            Expression::Convert(op, a) => convert(*op, self.ty(*a), ty, of(*a)),
            Expression::Splat(a) => vec![of(*a)[0]; lanes],
            Expression::Extract(vector, lane) => vec![of(*vector)[*lane as usize]],
            Expression::Insert(vector, lane, scalar) => {
                let mut all = of(*vector).to_vec();
                all[*lane as usize] = of(*scalar)[0];
                all
            }
            Expression::Shuffle(a, b, picked) => {
                let both = [of(*a), of(*b)].concat();
                picked.iter().map(|&lane| both[lane as usize]).collect()
            }
            Expression::Iota => (0..lanes as u64).collect(),
            Expression::Offset { pointer, index, scale } => {
                let distance = of(*index)[0].wrapping_mul(*scale as u64);
                vec![of(*pointer)[0].wrapping_add(distance)]
            }
            Expression::Load { pointer, alignment, mask } => {
                assert!(mask.is_none(), "no masks in tests");
                let address = of(*pointer)[0];
                self.check(address, *alignment);
                let size = ty.scalar.byte_size();
                let mut all = Vec::with_capacity(lanes);
                for lane in 0..lanes {
                    let at = address + (lane * size) as u64;
                    self.memory.touch(at, size, self.access(thread, false));
                    let mut bits = [0; 8];
                    bits[..size].copy_from_slice(self.memory.bytes(at, size));
                    all.push(u64::from_le_bytes(bits));
                }
                all
            }
            Expression::Thread(ThreadIndex::Local) => vec![thread as u64],
            Expression::Thread(ThreadIndex::Workgroup) => vec![self.group],
            other => panic!("no {other:?} in tests"),
        }
    }
}
