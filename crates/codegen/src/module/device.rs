//! Declarations for devices: address spaces, calling conventions, and attributes of kernels.

use inkwell::AddressSpace;
use inkwell::attributes::AttributeLoc;
use inkwell::module::Linkage;
use inkwell::types::BasicType;
use inkwell::values::{FunctionValue, GlobalValue};
use target::Architecture;

use super::ModuleTranslator;

/// Address space of workgroup memory.
const WORKGROUP: u16 = 3;

/// SPIR-V's address space of addresses in any memory. For NVIDIA's GPUs and for processors it is 0.
const SPIRV_GENERIC: u16 = 4;

/// LLVM's calling conventions of kernels, and of functions of SPIR-V.
const PTX_KERNEL: u32 = 71;
const SPIR_FUNCTION: u32 = 75;
const SPIR_KERNEL: u32 = 76;

/// Returns the address space of global memory.
pub(crate) fn global_space() -> AddressSpace {
    AddressSpace::from(1u16)
}

impl<'c> ModuleTranslator<'c> {
    /// True for SPIR-V, whose address spaces are not all convertible and whose functions have a
    /// calling convention.
    pub(crate) fn is_spirv(&self) -> bool {
        self.target.triple.architecture == Architecture::Spirv64
    }

    /// Returns the address space of the language's addresses.
    pub(crate) fn generic_space(&self) -> AddressSpace {
        if self.is_spirv() { AddressSpace::from(SPIRV_GENERIC) } else { AddressSpace::default() }
    }

    /// Returns the address space of constant bytes, from which addresses can be converted.
    pub(crate) fn bytes_space(&self) -> Option<AddressSpace> {
        self.target.gpu.map(|_| global_space())
    }

    /// Sets the calling convention and attributes of a function of a device.
    pub(crate) fn add_device_attributes(&self, function: &nest::Function, value: FunctionValue<'c>) {
        self.mark("nounwind", value);
        match (function.linkage, self.is_spirv()) {
            (nest::Linkage::Kernel { threads }, true) => {
                value.set_call_conventions(SPIR_KERNEL);
                let i32 = self.context.i32_type();
                let sizes = [u64::from(threads), 1, 1].map(|size| i32.const_int(size, false).into());
                let kind = self.context.get_kind_id("reqd_work_group_size");
                value.as_global_value().set_metadata(self.context.metadata_node(&sizes), kind);
            }
            (nest::Linkage::Kernel { threads }, false) => {
                value.set_call_conventions(PTX_KERNEL);
                let attribute = self.context.create_string_attribute("nvvm.maxntid", &threads.to_string());
                value.add_attribute(AttributeLoc::Function, attribute);
            }
            (_, is_spirv) => {
                self.mark("alwaysinline", value);
                if is_spirv {
                    value.set_call_conventions(SPIR_FUNCTION);
                }
            }
        }
        if !self.target.cpu.is_empty() {
            let attribute = self.context.create_string_attribute("target-cpu", &self.target.cpu);
            value.add_attribute(AttributeLoc::Function, attribute);
        }
    }

    /// Declares a function of the device's language, such as a barrier of OpenCL.
    pub(crate) fn device_function(
        &self,
        name: &str,
        ty: inkwell::types::FunctionType<'c>,
    ) -> FunctionValue<'c> {
        self.module.get_function(name).unwrap_or_else(|| {
            let function = self.module.add_function(name, ty, Some(Linkage::External));
            function.set_call_conventions(SPIR_FUNCTION);
            self.mark("nounwind", function);
            self.mark("convergent", function);
            function
        })
    }

    /// Declares workgroup memory.
    pub(crate) fn workgroup_memory(&self, bytes: u32, alignment: u32) -> GlobalValue<'c> {
        let ty = self.context.i8_type().array_type(bytes);
        let global = self.module.add_global(ty, Some(AddressSpace::from(WORKGROUP)), "workgroup");
        global.set_linkage(Linkage::Internal);
        global.set_initializer(&ty.as_basic_type_enum().into_array_type().get_undef());
        global.set_alignment(alignment);
        global
    }
}
