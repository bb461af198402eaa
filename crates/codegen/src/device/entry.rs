//! The host's object of a device program: an entry that passes the program to the caller's runtime,
//! the program itself, and the constants.

use inkwell::context::Context;
use inkwell::module::Linkage;
use inkwell::passes::PassBuilderOptions;
use inkwell::values::BasicValueEnum;
use inkwell::{AddressSpace, GlobalVisibility, IntPredicate};
use nest::FrameLayout;
use support::{Error, Result};
use target::{ObjectFormat, Target};

use crate::llvm::{self, Built as _};
use crate::module::ModuleTranslator;
use crate::placement::Placement;
use crate::{CodegenOptions, CompiledModule, check_entry_point, emit, machine, object_file, passes};

/// The error of an entry that is called without a device.
const NO_DEVICE: &[u8] =
    b"this program runs on a device, and the caller has opened none: the class of the generated \
header does so, and C callers call tfcompile_device_instance_create (tfcompile/device.h)\0";

/// Compiles the host's object of a device program. Its entry has the usual type: it calls the `run`
/// of the frame's `device`, or fails if there is none. The program has the symbol
/// `<entry_point>_device`.
///
/// Errors: as for [`compile`](crate::compile); `unsupported` for programs of 2 GiB or more.
pub fn compile_device_entry<B: AsRef<[u8]>>(
    program: &[u8],
    target: &Target,
    options: &CodegenOptions,
    constants_size: u64,
    chunks: impl IntoIterator<Item = (u64, B)>,
) -> Result<CompiledModule> {
    check_entry_point(&options.entry_point)?;
    if program.len() > i32::MAX as usize {
        return Err(Error::unsupported("a device program of 2 GiB or more"));
    }
    let placement = Placement::of(constants_size, target, options)?;
    let machine = machine::target_machine(target, options.optimize)?;
    let context = Context::create();
    let diagnostics = llvm::Diagnostics::listen(&context);
    let module = ModuleTranslator::new(&context, &machine, target, options);
    module.declare_constants(options, placement);
    declare_program(&module, &options.entry_point, program);
    entry(&module, &options.entry_point)?;
    let module = module.module;
    module
        .run_passes(&passes(target, None), &machine, PassBuilderOptions::create())
        .map_err(|e| Error::internal(format!("LLVM's passes: {e}")))?;
    let mut object = emit(&machine, &module, inkwell::targets::FileType::Object)?;
    let functions = object_file::function_sizes(&object, target)?;
    let block = object_file::Block { entry_point: &options.entry_point, size: constants_size, placement };
    object_file::write_constants(&mut object, target, &block, chunks)?;
    Ok(CompiledModule {
        symbols: Vec::new(),
        object,
        stack_bytes: 64 + diagnostics.frames().values().sum::<u64>(),
        large_constants: placement == Placement::Large,
        functions,
        llvm_ir: None,
        assembly: None,
        units: 1,
        cached_units: 0,
    })
}

/// Declares the program as read-only bytes. Its symbol is visible: callers load the program.
fn declare_program(module: &ModuleTranslator<'_>, entry_point: &str, program: &[u8]) {
    let content = module.context.const_string(program, false);
    let global = module.module.add_global(content.get_type(), None, &format!("{entry_point}_device"));
    global.set_initializer(&content);
    global.set_constant(true);
    global.set_alignment(64);
    global.set_visibility(GlobalVisibility::Default);
    let section = match module.target.triple.object_format {
        ObjectFormat::Elf => ".rodata.tfcompile_device",
        ObjectFormat::Coff => ".rdata$tfd",
        ObjectFormat::MachO => "__TEXT,__const",
        ObjectFormat::Wasm => return,
    };
    global.set_section(Some(section));
}

fn entry(module: &ModuleTranslator<'_>, entry_point: &str) -> Result<()> {
    let context = module.context;
    let (ptr, i32, i64) = (context.ptr_type(AddressSpace::default()), context.i32_type(), context.i64_type());
    let function =
        module.module.add_function(entry_point, i32.fn_type(&[ptr.into()], false), Some(Linkage::External));
    module.extend_status(function);
    module.mark("nounwind", function);
    module.add_machine_attributes(function);
    let builder = context.create_builder();
    let [start, covered, run, fail] = [0; 4].map(|_| context.append_basic_block(function, ""));
    let Some(BasicValueEnum::PointerValue(frame)) = function.get_first_param() else {
        return Err(Error::internal("expected the frame as the entry's parameter"));
    };
    let layout = FrameLayout::new(module.target.pointer_bytes);
    let place = |field: i64| module.constant_offset(&builder, frame, field as u64);
    builder.position_at_end(start);
    let size = builder.build_load(i64, frame, "").built()?.into_int_value();
    let needed = i64.const_int((layout.device() + layout.pointer_bytes()) as u64, false);
    let is_covered = builder.build_int_compare(IntPredicate::UGE, size, needed, "").built()?;
    builder.build_conditional_branch(is_covered, covered, fail).built()?;
    builder.position_at_end(covered);
    let device = builder.build_load(ptr, place(layout.device())?, "").built()?.into_pointer_value();
    let is_null = builder.build_is_null(device, "").built()?;
    builder.build_conditional_branch(is_null, fail, run).built()?;
    builder.position_at_end(run);
    let callee = builder.build_load(ptr, device, "").built()?.into_pointer_value();
    let program = module
        .module
        .get_global(&format!("{entry_point}_device"))
        .ok_or_else(|| Error::internal("the device program is not declared"))?;
    let ty = i32.fn_type(&[ptr.into(), ptr.into(), ptr.into()], false);
    let operands = [device.into(), program.as_pointer_value().into(), frame.into()];
    let call = builder.build_indirect_call(ty, callee, &operands, "").built()?;
    let status = call.try_as_basic_value().basic();
    let status = status.ok_or_else(|| Error::internal("the runtime returns no status"))?;
    builder.build_return(Some(&status)).built()?;
    builder.position_at_end(fail);
    builder.build_store(place(layout.error())?, module.constant_bytes(NO_DEVICE)).built()?;
    builder.build_return(Some(&i32.const_int(1, false))).built()?;
    Ok(())
}
