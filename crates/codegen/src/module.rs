//! Translation to an LLVM module: symbols, signatures, and attributes. `function` translates
//! bodies.

pub(crate) mod device;
mod dispatch;
mod freestanding;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::{Linkage, Module};
use inkwell::targets::TargetMachine;
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum, FunctionType, IntType};
use inkwell::values::{FunctionValue, IntValue, PointerValue, UnnamedAddress};
use inkwell::{AddressSpace, GlobalVisibility};
use support::{Error, Id, Result};
use target::{Architecture, ObjectFormat, Target};

use crate::llvm::Built;
use crate::placement::Placement;
use crate::{CodegenOptions, Sanitizer};

/// An LLVM module under construction.
pub(crate) struct ModuleTranslator<'c> {
    pub(crate) context: &'c Context,
    pub(crate) module: Module<'c>,
    /// Functions of the current program, by number. Only those that the unit contains or references
    /// are present.
    functions: Vec<Option<FunctionValue<'c>>>,
    /// Target of the current program.
    pub(crate) target: &'c Target,
    pub(crate) sanitize: Option<Sanitizer>,
    /// Forbids calls of the C library.
    pub(crate) freestanding: bool,
    /// Integer type with the width of an address.
    size_type: IntType<'c>,
}

impl<'c> ModuleTranslator<'c> {
    /// Creates an empty module.
    pub(crate) fn new(
        context: &'c Context,
        machine: &TargetMachine,
        target: &'c Target,
        options: &CodegenOptions,
    ) -> Self {
        let module = context.create_module(&options.entry_point);
        module.set_triple(&machine.get_triple());
        module.set_data_layout(&machine.get_target_data().get_data_layout());
        Self {
            context,
            module,
            functions: Vec::new(),
            target,
            sanitize: options.sanitize,
            freestanding: options.freestanding,
            size_type: context.ptr_sized_int_type(&machine.get_target_data(), None),
        }
    }

    /// Begins a program with `functions` functions for a target.
    pub(crate) fn begin_program(&mut self, target: &'c Target, functions: usize) {
        self.target = target;
        self.functions = vec![None; functions];
    }

    /// Returns the last function of the current program, if it is declared.
    pub(crate) fn last_function(&self) -> Option<FunctionValue<'c>> {
        self.functions.last().copied().flatten()
    }

    /// Returns a function of the current program.
    pub(crate) fn callee(&self, id: nest::FunctionId) -> Result<FunctionValue<'c>> {
        let known = self.functions.get(id.index()).copied().flatten();
        known.ok_or_else(|| Error::internal("a called function of another unit is not declared"))
    }

    /// Declares the read-only block of constants, which is patched in the finished object; LLVM
    /// sees only zeros. The block has at least one cache line, so that the symbol always exists.
    pub(crate) fn declare_constants(&self, options: &CodegenOptions, placement: Placement) {
        let entry_point = &options.entry_point;
        let bytes = match placement {
            Placement::None | Placement::Appended | Placement::Large => 64,
            Placement::InPlace(bytes) => bytes.max(64),
        };
        let ty = self.context.i8_type().array_type(bytes);
        let global = self.module.add_global(ty, None, &format!("{entry_point}_constants"));
        global.set_initializer(&ty.const_zero());
        global.set_constant(true);
        global.set_alignment(64);
        let section = match self.target.triple.object_format {
            ObjectFormat::Elf if options.constants_section.is_some() => {
                options.constants_section.as_deref().unwrap_or_default()
            }
            ObjectFormat::Elf if placement == Placement::Large => ".lrodata.tfcompile",
            ObjectFormat::Elf => ".rodata.tfcompile",
            ObjectFormat::Coff => ".rdata$tfc",
            ObjectFormat::MachO => "__TEXT,__const",
            ObjectFormat::Wasm => return,
        };
        global.set_section(Some(section));
        if placement == Placement::Large {
            let ptr = self.context.ptr_type(AddressSpace::default());
            let pointer = self.module.add_global(ptr, None, &format!("{entry_point}_constants_pointer"));
            pointer.set_initializer(&global.as_pointer_value());
            pointer.set_constant(true);
            pointer.set_visibility(GlobalVisibility::Default);
        }
    }

    /// Declares a function. A function that only one unit uses is internal; functions that units
    /// share are hidden outside of the object.
    pub(crate) fn declare(
        &mut self,
        id: nest::FunctionId,
        function: &nest::Function,
        symbol: &str,
        is_whole: bool,
    ) -> Result<()> {
        let is_kernel = matches!(function.linkage, nest::Linkage::Kernel { .. });
        let parameter_type = |p: &nest::Parameter| match function.values[p.value] {
            nest::Type::PTR if is_kernel => self.context.ptr_type(device::global_space()).into(),
            ty => self.ty(ty).into(),
        };
        let parameters: Vec<BasicMetadataTypeEnum<'c>> =
            function.parameters.iter().map(parameter_type).collect();
        let entry = function.linkage == nest::Linkage::Entry;
        let results: Vec<BasicTypeEnum<'c>> =
            function.body.yields.iter().map(|&id| self.ty(function.values[id])).collect();
        let ty = match &results[..] {
            [] if entry => self.context.i32_type().fn_type(&parameters, false),
            [] => self.context.void_type().fn_type(&parameters, false),
            [result] => result.fn_type(&parameters, false),
            results => self.context.struct_type(results, false).fn_type(&parameters, false),
        };
        let exported = is_kernel || entry && symbol.as_bytes() == self.module.get_name().to_bytes();
        let is_shared = !is_kernel && !is_whole && function.linkage != nest::Linkage::Inline;
        let linkage = if exported || is_shared { Linkage::External } else { Linkage::Internal };
        let value = self.module.add_function(symbol, ty, Some(linkage));
        let global = value.as_global_value();
        match (exported, is_shared) {
            (true, _) => global.set_visibility(GlobalVisibility::Default),
            (false, true) => global.set_visibility(GlobalVisibility::Hidden),
            (false, false) => global.set_unnamed_address(UnnamedAddress::Global),
        }
        if self.target.gpu.is_some() {
            self.add_device_attributes(function, value);
        } else {
            self.add_attributes(function, value);
        }
        for (i, parameter) in function.parameters.iter().enumerate() {
            if function.values[parameter.value] == nest::Type::PTR {
                self.add_pointer_facts(value, i, &parameter.pointer)?;
            }
        }
        self.functions[id.index()] = Some(value);
        Ok(())
    }

    fn add_attributes(&self, function: &nest::Function, value: FunctionValue<'c>) {
        match function.linkage {
            nest::Linkage::Entry => self.extend_status(value),
            nest::Linkage::Internal | nest::Linkage::Routine => self.mark("noinline", value),
            nest::Linkage::Inline => self.mark("alwaysinline", value),
            // `add_device_attributes` handles kernels.
            nest::Linkage::Kernel { .. } => {}
        }
        self.mark("nounwind", value);
        self.add_machine_attributes(value);
    }

    /// Sign-extends a returned status if the machine's calling convention requires it for 32-bit
    /// results.
    pub(crate) fn extend_status(&self, function: FunctionValue<'c>) {
        let signext = Attribute::get_named_enum_kind_id("signext");
        function.add_attribute(AttributeLoc::Return, self.context.create_enum_attribute(signext, 0));
    }

    pub(crate) fn constant_offset(
        &self,
        builder: &Builder<'c>,
        pointer: PointerValue<'c>,
        bytes: u64,
    ) -> Result<PointerValue<'c>> {
        let index = self.context.i64_type().const_int(bytes, false);
        // SAFETY: a single index into bytes fits the element type for any pointer.
        #[expect(unsafe_code, reason = "inkwell cannot check indices against the element type")]
        let address = unsafe { builder.build_in_bounds_gep(self.context.i8_type(), pointer, &[index], "") };
        address.built()
    }

    /// Adds an attribute without a value.
    pub(crate) fn mark(&self, name: &str, function: FunctionValue<'c>) {
        let kind = Attribute::get_named_enum_kind_id(name);
        function.add_attribute(AttributeLoc::Function, self.context.create_enum_attribute(kind, 0));
    }

    /// Adds the attributes of every function: the target's instructions, and no library calls.
    pub(crate) fn add_machine_attributes(&self, value: FunctionValue<'c>) {
        let text = |name: &str, text: &str| {
            value.add_attribute(AttributeLoc::Function, self.context.create_string_attribute(name, text));
        };
        // Keeps copy loops as loops. No library function is assumed to exist.
        text("no-builtins", "");
        // Reports every frame; see `llvm::Diagnostics`.
        text("warn-stack-size", "0");
        if let Some(sanitizer) = self.sanitize {
            self.mark(sanitizer.attribute(), value);
        }
        if !self.target.cpu.is_empty() {
            text("target-cpu", &self.target.cpu);
        }
        if !self.target.features.is_empty() {
            text("target-features", &self.target.features);
        }
        if self.target.triple.architecture == Architecture::Aarch64 && self.target.vector_bytes > 16 {
            // The minimum and maximum number of 16-byte units in an SVE vector, which are equal
            // here.
            let times = u64::from(self.target.vector_bytes / 16);
            let kind = Attribute::get_named_enum_kind_id("vscale_range");
            let range = self.context.create_enum_attribute(kind, times << 32 | times);
            value.add_attribute(AttributeLoc::Function, range);
        }
        text("prefer-vector-width", &(self.target.vector_bytes * 8).to_string());
        if self.target.triple.object_format == ObjectFormat::Coff {
            // Large frames would call `__chkstk`, a library function.
            text("no-stack-arg-probe", "");
        }
    }

    /// Disables optimization of a function, since LLVM's time for it grows superlinearly.
    pub(crate) fn leave_unoptimized(&self, function: FunctionValue<'c>) {
        self.mark("noinline", function);
        self.mark("optnone", function);
    }

    fn add_pointer_facts(
        &self,
        value: FunctionValue<'c>,
        index: usize,
        facts: &nest::PointerFacts,
    ) -> Result<()> {
        let index = u32::try_from(index).map_err(|_| Error::internal("too many parameters"))?;
        let add = |name: &str, argument: u64| {
            let kind = Attribute::get_named_enum_kind_id(name);
            value.add_attribute(
                AttributeLoc::Param(index),
                self.context.create_enum_attribute(kind, argument),
            );
        };
        if facts.no_alias {
            add("noalias", 0);
        }
        if facts.read_only {
            add("readonly", 0);
        }
        if facts.alignment > 1 {
            add("align", u64::from(facts.alignment));
        }
        Ok(())
    }

    /// Returns the LLVM type of a type.
    pub(crate) fn ty(&self, ty: nest::Type) -> BasicTypeEnum<'c> {
        let scalar = self.scalar(ty.scalar);
        if ty.lanes == 1 { scalar } else { vector_of(scalar, ty.lanes) }
    }

    fn scalar(&self, scalar: nest::ScalarType) -> BasicTypeEnum<'c> {
        match scalar {
            nest::ScalarType::Bool => self.context.bool_type().as_basic_type_enum(),
            nest::ScalarType::I8 => self.context.i8_type().as_basic_type_enum(),
            nest::ScalarType::I16 => self.context.i16_type().as_basic_type_enum(),
            nest::ScalarType::I32 => self.context.i32_type().as_basic_type_enum(),
            nest::ScalarType::I64 => self.context.i64_type().as_basic_type_enum(),
            nest::ScalarType::F32 => self.context.f32_type().as_basic_type_enum(),
            nest::ScalarType::F64 => self.context.f64_type().as_basic_type_enum(),
            nest::ScalarType::Ptr => self.context.ptr_type(self.generic_space()).as_basic_type_enum(),
        }
    }

    /// Returns the integer type of sizes in C.
    pub(crate) fn size_type(&self) -> IntType<'c> {
        self.size_type
    }

    /// True if copying or filling `bytes` bytes calls `memcpy` or `memset` by name. LLVM's
    /// intrinsics, which become instructions where profitable, call other functions on some
    /// platforms: `bzero`, `__aeabi_memcpy`. In freestanding objects, these functions are part of
    /// the object.
    pub(crate) fn calls_memory_functions_by_name(&self, bytes: IntValue<'c>) -> bool {
        // Not every ThreadSanitizer library has LLVM's name for the function, but all have
        // `memcpy`.
        if self.sanitize == Some(Sanitizer::Thread) {
            return true;
        }
        // WebAssembly has instructions for both.
        let is_wasm = self.target.triple.architecture == Architecture::Wasm32;
        if is_wasm && !self.target.features.split(',').any(|feature| feature.starts_with("-bulk-memory")) {
            return false;
        }
        // Some microcontrollers access addresses of any alignment only byte by byte.
        let few = if self.target.is_microcontroller { 4 } else { 16 };
        let small = bytes.get_zero_extended_constant().is_some_and(|bytes| bytes <= few);
        let other_names = self.target.triple.architecture == Architecture::Arm
            || self.target.triple.object_format == ObjectFormat::MachO;
        (other_names || self.freestanding) && !small
    }

    /// Declares a function of the C library.
    pub(crate) fn library_function(&self, name: &str, ty: FunctionType<'c>) -> FunctionValue<'c> {
        self.module.get_function(name).unwrap_or_else(|| {
            let function = self.module.add_function(name, ty, Some(Linkage::External));
            let nounwind = Attribute::get_named_enum_kind_id("nounwind");
            let nounwind = self.context.create_enum_attribute(nounwind, 0);
            function.add_attribute(AttributeLoc::Function, nounwind);
            function
        })
    }

    /// Returns the intrinsic that reads a clock. Programs can read this clock on every machine of
    /// the target.
    pub(crate) fn clock(&self) -> Result<&'static str> {
        match self.target.triple.architecture {
            Architecture::X86 | Architecture::X86_64 => Ok("llvm.readcyclecounter"),
            Architecture::Aarch64 | Architecture::Riscv64 => Ok("llvm.readsteadycounter"),
            Architecture::Arm
            | Architecture::Riscv32
            | Architecture::Wasm32
            | Architecture::Nvptx64
            | Architecture::Spirv64
            | Architecture::Other => Err(Error::unsupported(format!(
                "programs for {} cannot read a clock: compile without profile counters",
                self.target.triple.as_str()
            ))),
        }
    }

    /// Declares an intrinsic function of LLVM for the given types.
    pub(crate) fn intrinsic(&self, name: &str, types: &[BasicTypeEnum<'c>]) -> Result<FunctionValue<'c>> {
        Intrinsic::find(name)
            .and_then(|intrinsic| intrinsic.get_declaration(&self.module, types))
            .ok_or_else(|| Error::internal(format!("unknown LLVM intrinsic '{name}' for the given types")))
    }
}

/// Returns a vector type, also for one lane.
pub(crate) fn vector_of(scalar: BasicTypeEnum<'_>, lanes: u32) -> BasicTypeEnum<'_> {
    match scalar {
        BasicTypeEnum::FloatType(ty) => ty.vec_type(lanes).as_basic_type_enum(),
        BasicTypeEnum::IntType(ty) => ty.vec_type(lanes).as_basic_type_enum(),
        BasicTypeEnum::PointerType(ty) => ty.vec_type(lanes).as_basic_type_enum(),
        other => other,
    }
}
