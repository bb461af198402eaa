//! Entry of an object with several versions: it detects the processor's features once and calls the
//! best version.
//!
//! If the processor does not support even the first version, the entry returns an error and runs
//! nothing.
//!
//! Linux lets a process use tile registers after the process has asked, which the entry does if the
//! processor has them and a version uses them. An object for one processor whose code uses tile
//! registers has such an entry, too.
//!
//! The selection is stored in a variable of the object, where 0 means unknown. Concurrent threads
//! write the same value with unordered atomic stores, so there are no torn values and no waiting.
//! There are no constructors and no library calls: the code uses the instructions `cpuid` and,
//! where `cpuid` reports it, `xgetbv`, and for tile registers one system call.

use inkwell::builder::Builder;
use inkwell::module::Linkage;
use inkwell::types::StructType;
use inkwell::values::{
    BasicMetadataValueEnum, BasicValue, BasicValueEnum, FunctionValue, IntValue, PointerValue,
};
use inkwell::{AddressSpace, AtomicOrdering, GlobalVisibility, IntPredicate};
use nest::FrameLayout;
use support::{Error, Result};
use target::Level;

use super::ModuleTranslator;
use crate::llvm::Built;
use crate::symbols::choice_symbol;
use crate::version::Requirement;

/// Bits of `ecx` of leaf 1 that level 2 requires: SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT.
const LEAF_1_V2: u32 = 1 | 1 << 9 | 1 << 13 | 1 << 19 | 1 << 20 | 1 << 23;
/// Additional bits of level 3: FMA, MOVBE, XGETBV enabled by the system, AVX, F16C.
const LEAF_1_V3: u32 = 1 << 12 | 1 << 22 | 1 << 27 | 1 << 28 | 1 << 29;
/// The bit for the presence of `xgetbv`.
const OSXSAVE: u32 = 1 << 27;
/// Bits of `ebx` of leaf 7: BMI1, AVX2, BMI2.
const LEAF_7_V3: u32 = 1 << 3 | 1 << 5 | 1 << 8;
/// Additional bits of level 4: AVX-512 F, DQ, CD, BW, VL.
const LEAF_7_V4: u32 = 1 << 16 | 1 << 17 | 1 << 28 | 1 << 30 | 1 << 31;
/// Bits of `ecx` of leaf 7 of processors with products of bytes: AVX-512 VNNI.
const LEAF_7_VNNI: u32 = 1 << 11;
/// The same with `bf16`: also AVX-512 VBMI.
const LEAF_7_BF16: u32 = LEAF_7_VNNI | 1 << 1;
/// Bits of `edx` of leaf 7: AMX-BF16, AMX-TILE, AMX-INT8.
const LEAF_7_AMX: u32 = 1 << 22 | 1 << 24 | 1 << 25;
/// Bits of `eax` of subleaf 1 of leaf 7: AVX-VNNI, and AVX-512 BF16.
const SUBLEAF_AVX_VNNI: u32 = 1 << 4;
const SUBLEAF_BF16: u32 = 1 << 5;
/// Bits of `ecx` of leaf 0x80000001: LAHF.
const EXTENDED_V2: u32 = 1;
/// Additional bit of level 3: LZCNT.
const EXTENDED_V3: u32 = 1 << 5;
/// State that the system saves: XMM and YMM.
const STATE_V3: u32 = 0b110;
/// Additional bits of level 4: masks and ZMM.
const STATE_V4: u32 = 0b1110_0000;
/// Additional bits of AMX: the shapes and the contents of tile registers.
const STATE_AMX: u32 = 1 << 17 | 1 << 18;

/// Linux's system call `arch_prctl`, its request to use a part of the processor's state, and the
/// number of the part with the contents of tile registers (Linux's documentation, "Using XSTATE
/// features in user space applications").
const ARCH_PRCTL: u64 = 158;
const ARCH_REQ_XCOMP_PERM: u64 = 0x1023;
const TILE_DATA: u64 = 18;

impl<'c> ModuleTranslator<'c> {
    /// Emits the exported entry.
    pub(crate) fn dispatch(
        &self,
        entry_point: &str,
        versions: &[Requirement],
        entries: &[FunctionValue<'c>],
    ) -> Result<()> {
        let i32 = self.context.i32_type();
        let chosen = self.module.add_global(i32, None, &format!("{entry_point}.version"));
        chosen.set_linkage(Linkage::Internal);
        chosen.set_initializer(&i32.const_zero());
        chosen.set_alignment(4);
        let chosen = chosen.as_pointer_value();
        let choose = self.choose(entry_point, versions)?;

        let ptr = self.context.ptr_type(AddressSpace::default());
        let entry =
            self.module.add_function(entry_point, i32.fn_type(&[ptr.into()], false), Some(Linkage::External));
        entry.as_global_value().set_visibility(GlobalVisibility::Default);
        self.mark("nounwind", entry);
        self.add_machine_attributes(entry);
        self.extend_status(entry);
        let frame =
            entry.get_nth_param(0).ok_or_else(|| Error::internal("the entry has no frame parameter"))?;
        let block = |name: &str| self.context.append_basic_block(entry, name);
        let (start, ask, run) = (block(""), block("ask"), block("run"));
        let builder = self.context.create_builder();
        builder.position_at_end(start);
        let known = self.load_unordered(&builder, chosen)?;
        let is_known = builder.build_int_compare(IntPredicate::NE, known, i32.const_zero(), "").built()?;
        builder.build_conditional_branch(is_known, run, ask).built()?;
        builder.position_at_end(ask);
        let call = builder.build_call(choose, &[], "").built()?;
        let asked = call
            .try_as_basic_value()
            .basic()
            .ok_or_else(|| Error::internal("the version selector returns no number"))?;
        let store = builder.build_store(chosen, asked).built()?;
        set_unordered(store)?;
        builder.build_unconditional_branch(run).built()?;
        builder.position_at_end(run);
        let version = builder.build_phi(i32, "").built()?;
        version.add_incoming(&[(&known, start), (&asked, ask)]);
        let blocks: Vec<_> = entries.iter().map(|_| block("")).collect();
        let cases = blocks.iter().enumerate().map(|(k, b)| (i32.const_int(k as u64 + 1, false), *b));
        let (cases, none) = (cases.collect::<Vec<_>>(), block("none"));
        builder.build_switch(version.as_basic_value().into_int_value(), none, &cases).built()?;
        builder.position_at_end(none);
        self.refuse(&builder, frame.into_pointer_value(), versions[0])?;
        for (version, block) in entries.iter().zip(&blocks) {
            builder.position_at_end(*block);
            let call = builder.build_call(*version, &[frame.into()], "").built()?;
            call.set_tail_call(true);
            let status = call.try_as_basic_value().basic();
            let status = status.ok_or_else(|| Error::internal("an entry returns no status"))?;
            builder.build_return(Some(&status)).built()?;
        }
        Ok(())
    }

    /// Stores an error message in the frame and returns a status.
    fn refuse(&self, builder: &Builder<'c>, frame: PointerValue<'c>, least: Requirement) -> Result<()> {
        let text = match least {
            Requirement::Level(least) => {
                let with = least.features().replace('+', " ");
                let with = if with.is_empty() { with } else { format!(" with{with}") };
                format!("the code is for processors of the level {}{with} and above", least.cpu())
            }
            Requirement::Tiles => "the system does not let this process use the tile registers (AMX) \
                                   that the code uses; build it without them, such as with \
                                   --target-features=-amx-tile"
                .to_owned(),
        };
        let text = self.context.const_string(text.as_bytes(), true);
        let message = self.module.add_global(text.get_type(), None, "");
        message.set_linkage(Linkage::Private);
        message.set_initializer(&text);
        message.set_constant(true);
        let layout = FrameLayout::new(self.target.pointer_bytes);
        let place = self.constant_offset(builder, frame, layout.error() as u64)?;
        builder.build_store(place, message.as_pointer_value()).built()?;
        builder.build_return(Some(&self.context.i32_type().const_int(1, false))).built()?;
        Ok(())
    }

    /// Emits a function that returns the one-based number of the best version, or the number of
    /// versions plus one if none is supported.
    fn choose(&self, entry_point: &str, versions: &[Requirement]) -> Result<FunctionValue<'c>> {
        let i32 = self.context.i32_type();
        let ty = i32.fn_type(&[], false);
        let function = self.module.add_function(&choice_symbol(entry_point), ty, Some(Linkage::Internal));
        self.mark("nounwind", function);
        self.mark("noinline", function);
        self.add_machine_attributes(function);
        let builder = self.context.create_builder();
        builder.position_at_end(self.context.append_basic_block(function, ""));
        let questions = Questions { module: self, builder: &builder, function };
        let levels: Vec<Level> = versions.iter().filter_map(|version| version.level()).collect();
        let facts = questions.ask(&levels)?;
        let mut best = i32.const_int(versions.len() as u64 + 1, false);
        for (k, version) in versions.iter().enumerate() {
            // Levels ascend: the last one that the processor has is the best.
            let has = match *version {
                Requirement::Level(level) => questions.has(&facts, level)?,
                Requirement::Tiles => questions.may_use_tiles(self.context.bool_type().const_all_ones())?,
            };
            let this = i32.const_int(k as u64 + 1, false);
            best = builder.build_select(has, this, best, "").built()?.into_int_value();
        }
        builder.build_return(Some(&best)).built()?;
        Ok(function)
    }

    fn load_unordered(&self, builder: &Builder<'c>, pointer: PointerValue<'c>) -> Result<IntValue<'c>> {
        let load = builder.build_load(self.context.i32_type(), pointer, "").built()?;
        let instruction = load
            .as_instruction_value()
            .ok_or_else(|| Error::internal("LLVM returned a load that is not an instruction"))?;
        set_unordered(instruction)?;
        Ok(load.into_int_value())
    }
}

/// Makes a load or store atomic and unordered.
fn set_unordered(access: inkwell::values::InstructionValue<'_>) -> Result<()> {
    access
        .set_atomic_ordering(AtomicOrdering::Monotonic)
        .map_err(|e| Error::internal(format!("cannot make an access atomic: {e}")))?;
    access.set_alignment(4).map_err(|e| Error::internal(format!("cannot align an atomic access: {e}")))
}

/// Feature bits of the processor. All bits are 0 for unsupported queries.
struct Facts<'c> {
    leaf_1_ecx: IntValue<'c>,
    leaf_7_ebx: IntValue<'c>,
    leaf_7_ecx: IntValue<'c>,
    leaf_7_edx: IntValue<'c>,
    subleaf_eax: IntValue<'c>,
    extended_ecx: IntValue<'c>,
    saved_state: IntValue<'c>,
}

/// Code that queries the processor.
struct Questions<'a, 'c> {
    module: &'a ModuleTranslator<'c>,
    builder: &'a Builder<'c>,
    function: FunctionValue<'c>,
}

impl<'c> Questions<'_, 'c> {
    /// Asks for what tells these levels apart.
    fn ask(&self, levels: &[Level]) -> Result<Facts<'c>> {
        let last = self.cpuid([0, 0], 0)?;
        let leaf_1_ecx = self.where_at_least(last, 1, |q| q.cpuid([1, 0], 2))?;
        let leaf_7_ebx = self.where_at_least(last, 7, |q| q.cpuid([7, 0], 1))?;
        let none = self.module.context.i32_type().const_zero();
        let (mut leaf_7_ecx, mut leaf_7_edx, mut subleaf_eax) = (none, none, none);
        if levels.iter().any(|level| !level.features().is_empty()) {
            leaf_7_ecx = self.where_at_least(last, 7, |q| q.cpuid([7, 0], 2))?;
            leaf_7_edx = self.where_at_least(last, 7, |q| q.cpuid([7, 0], 3))?;
            let last_subleaf = self.where_at_least(last, 7, |q| q.cpuid([7, 0], 0))?;
            subleaf_eax = self.where_at_least(last_subleaf, 1, |q| q.cpuid([7, 1], 0))?;
        }
        let last_extended = self.cpuid([0x8000_0000, 0], 0)?;
        let extended_ecx =
            self.where_at_least(last_extended, 0x8000_0001, |q| q.cpuid([0x8000_0001, 0], 2))?;
        let saves = self.all_bits(leaf_1_ecx, OSXSAVE)?;
        let saved_state = self.where_true(saves, Self::xgetbv)?;
        Ok(Facts { leaf_1_ecx, leaf_7_ebx, leaf_7_ecx, leaf_7_edx, subleaf_eax, extended_ecx, saved_state })
    }

    /// Emits a test for the features that a level requires.
    fn has(&self, facts: &Facts<'c>, level: Level) -> Result<IntValue<'c>> {
        let v2 = [(facts.leaf_1_ecx, LEAF_1_V2), (facts.extended_ecx, EXTENDED_V2)];
        let v3 = [
            (facts.leaf_1_ecx, LEAF_1_V3),
            (facts.leaf_7_ebx, LEAF_7_V3),
            (facts.extended_ecx, EXTENDED_V3),
            (facts.saved_state, STATE_V3),
        ];
        let v4 = [(facts.leaf_7_ebx, LEAF_7_V4), (facts.saved_state, STATE_V4)];
        let avx_vnni = [(facts.subleaf_eax, SUBLEAF_AVX_VNNI)];
        let vnni = [(facts.leaf_7_ecx, LEAF_7_VNNI)];
        let bf16 = [(facts.leaf_7_ecx, LEAF_7_BF16), (facts.subleaf_eax, SUBLEAF_BF16)];
        let amx = [(facts.leaf_7_edx, LEAF_7_AMX), (facts.saved_state, STATE_AMX)];
        let required: &[&[(IntValue<'c>, u32)]] = match level {
            Level::V1 | Level::Avx => &[],
            Level::V2 => &[&v2],
            Level::V3 => &[&v2, &v3],
            Level::AvxVnni => &[&v2, &v3, &avx_vnni],
            Level::V4 => &[&v2, &v3, &v4],
            Level::Avx512Vnni => &[&v2, &v3, &v4, &vnni],
            Level::Avx512Bf16 => &[&v2, &v3, &v4, &bf16],
            Level::Amx => &[&v2, &v3, &v4, &bf16, &amx],
        };
        let mut has = self.module.context.bool_type().const_int(1, false);
        for &(fact, bits) in required.iter().copied().flatten() {
            has = self.builder.build_and(has, self.all_bits(fact, bits)?, "").built()?;
        }
        if level == Level::Amx { self.may_use_tiles(has) } else { Ok(has) }
    }

    /// Emits a request to use tile registers, if the processor has them. Returns whether the system
    /// grants it.
    fn may_use_tiles(&self, has: IntValue<'c>) -> Result<IntValue<'c>> {
        let (i32, i64) = (self.module.context.i32_type(), self.module.context.i64_type());
        let answer = self.where_true(has, |q| {
            let ty = i64.fn_type(&[i64.into(); 3], false);
            let constraints = "={ax},{ax},{di},{si},~{rcx},~{r11},~{memory},~{dirflag},~{fpsr},~{flags}";
            let assembly = q.module.context.create_inline_asm(
                ty,
                "syscall".to_owned(),
                constraints.to_owned(),
                true,
                false,
                None,
                false,
            );
            let operands = [ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, TILE_DATA]
                .map(|number| i64.const_int(number, false).into());
            let call = q.builder.build_indirect_call(ty, assembly, &operands, "").built()?;
            let Some(BasicValueEnum::IntValue(status)) = call.try_as_basic_value().basic() else {
                return Err(Error::internal("expected a number from a system call"));
            };
            let is_granted =
                q.builder.build_int_compare(IntPredicate::EQ, status, i64.const_zero(), "").built()?;
            q.builder.build_int_z_extend(is_granted, i32, "").built()
        })?;
        self.builder.build_int_truncate(answer, self.module.context.bool_type(), "").built()
    }

    fn all_bits(&self, value: IntValue<'c>, bits: u32) -> Result<IntValue<'c>> {
        let bits = self.module.context.i32_type().const_int(u64::from(bits), false);
        let masked = self.builder.build_and(value, bits, "").built()?;
        self.builder.build_int_compare(IntPredicate::EQ, masked, bits, "").built()
    }

    fn where_at_least(
        &self,
        value: IntValue<'c>,
        least: u32,
        ask: impl FnOnce(&Self) -> Result<IntValue<'c>>,
    ) -> Result<IntValue<'c>> {
        let least = self.module.context.i32_type().const_int(u64::from(least), false);
        let condition = self.builder.build_int_compare(IntPredicate::UGE, value, least, "").built()?;
        self.where_true(condition, ask)
    }

    /// Evaluates a query only if a condition holds. Otherwise the result is 0.
    fn where_true(
        &self,
        condition: IntValue<'c>,
        ask: impl FnOnce(&Self) -> Result<IntValue<'c>>,
    ) -> Result<IntValue<'c>> {
        let context = self.module.context;
        let before = self
            .builder
            .get_insert_block()
            .ok_or_else(|| Error::internal("the builder has no current block"))?;
        let (yes, next) =
            (context.append_basic_block(self.function, ""), context.append_basic_block(self.function, ""));
        self.builder.build_conditional_branch(condition, yes, next).built()?;
        self.builder.position_at_end(yes);
        let answer = ask(self)?;
        self.builder.build_unconditional_branch(next).built()?;
        self.builder.position_at_end(next);
        let phi = self.builder.build_phi(context.i32_type(), "").built()?;
        phi.add_incoming(&[(&answer, yes), (&context.i32_type().const_zero(), before)]);
        Ok(phi.as_basic_value().into_int_value())
    }

    /// Returns `eax`, `ebx`, `ecx`, or `edx` (0 to 3) of a leaf and its subleaf.
    fn cpuid(&self, leaves: [u32; 2], register: u32) -> Result<IntValue<'c>> {
        let i32 = self.module.context.i32_type();
        let registers = self.module.context.struct_type(&[i32.into(); 4], false);
        let operands = leaves.map(|leaf| i32.const_int(u64::from(leaf), false).into());
        self.assembly(registers, "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx}", &operands, register)
    }

    /// Returns the low bits of the state that the system saves.
    fn xgetbv(&self) -> Result<IntValue<'c>> {
        let i32 = self.module.context.i32_type();
        let registers = self.module.context.struct_type(&[i32.into(); 2], false);
        // Encoded as bytes, so that the assembler does not require the feature.
        self.assembly(registers, ".byte 0x0f, 0x01, 0xd0", "={ax},={dx},{cx}", &[i32.const_zero().into()], 0)
    }

    fn assembly(
        &self,
        registers: StructType<'c>,
        text: &str,
        constraints: &str,
        operands: &[BasicMetadataValueEnum<'c>],
        register: u32,
    ) -> Result<IntValue<'c>> {
        let parameters = vec![self.module.context.i32_type().into(); operands.len()];
        let ty = registers.fn_type(&parameters, false);
        let context = self.module.context;
        let assembly =
            context.create_inline_asm(ty, text.to_owned(), constraints.to_owned(), true, false, None, false);
        let call = self.builder.build_indirect_call(ty, assembly, operands, "").built()?;
        match call.try_as_basic_value().basic() {
            Some(BasicValueEnum::StructValue(all)) => {
                Ok(self.builder.build_extract_value(all, register, "").built()?.into_int_value())
            }
            _ => Err(Error::internal("expected a struct from an inline assembly instruction")),
        }
    }
}
