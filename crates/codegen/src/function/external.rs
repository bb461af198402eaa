//! Calls of the user's functions, and early returns with a status.

use inkwell::AddressSpace;
use inkwell::module::Linkage;
use inkwell::types::BasicMetadataTypeEnum;
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, PointerValue};
use nest::ValueId;
use support::{Error, Result};

use super::FunctionTranslator;
use crate::llvm::Built;
use crate::module::ModuleTranslator;

impl<'c> FunctionTranslator<'_, 'c> {
    /// Calls a C function with addresses as arguments. Returns its status.
    pub(crate) fn call_external(&self, symbol: &str, arguments: &[ValueId]) -> Result<BasicValueEnum<'c>> {
        let context = self.module.context;
        let ptr: BasicMetadataTypeEnum<'c> = context.ptr_type(AddressSpace::default()).into();
        let ty = context.i32_type().fn_type(&vec![ptr; arguments.len()], false);
        let function = match self.module.module.get_function(symbol) {
            Some(known) if known.get_type() == ty => known,
            Some(_) => {
                return Err(Error::invalid(format!("the object has another function named '{symbol}'")));
            }
            None => self.module.module.add_function(symbol, ty, Some(Linkage::External)),
        };
        let arguments: Vec<BasicMetadataValueEnum<'c>> =
            self.all(arguments.iter().copied())?.into_iter().map(Into::into).collect();
        let call = self.builder.build_call(function, &arguments, "").built()?;
        call.try_as_basic_value().basic().ok_or_else(|| Error::internal("an external call returns no status"))
    }

    /// Returns a status from the function if a condition holds.
    pub(crate) fn leave_if(&self, condition: ValueId, status: ValueId) -> Result<()> {
        let (condition, status) = (self.integer(condition)?, self.integer(status)?);
        let (leave, next) = (self.new_block(), self.new_block());
        self.builder.build_conditional_branch(condition, leave, next).built()?;
        self.builder.position_at_end(leave);
        self.builder.build_return(Some(&status)).built()?;
        self.builder.position_at_end(next);
        Ok(())
    }
}

impl<'c> ModuleTranslator<'c> {
    /// Returns the address of constant bytes.
    pub(crate) fn constant_bytes(&self, bytes: &[u8]) -> PointerValue<'c> {
        let content = self.context.const_string(bytes, false);
        let global = self.module.add_global(content.get_type(), self.bytes_space(), "");
        global.set_linkage(Linkage::Private);
        global.set_initializer(&content);
        global.set_constant(true);
        global.set_alignment(8);
        match self.bytes_space() {
            None => global.as_pointer_value(),
            Some(_) => {
                let generic = self.context.ptr_type(self.generic_space());
                global.as_pointer_value().const_address_space_cast(generic)
            }
        }
    }
}
