//! Parts of kernels of devices: kinds of memory, thread numbers, parameters, and the guard.

use crate::function::Printer;
use crate::prelude::Access;
use crate::spaces::Space;
use crate::text::Text;
use nest::{Statement, ThreadIndex, Type, ValueId};
use support::{Error, Id as _, Result};

impl Printer<'_, '_> {
    /// True if the text is OpenCL C.
    pub(crate) fn is_opencl(&self) -> bool {
        self.prelude.is_opencl
    }

    /// C's type of an address.
    pub(crate) fn pointer_type(&self, id: ValueId) -> String {
        let constness = if self.mutable[id.index()] { "" } else { "const " };
        if self.is_opencl() {
            return format!("{} {constness}uchar *", self.spaces[id.index()].qualifier());
        }
        format!("{constness}unsigned char *")
    }

    /// An access at an address that is a multiple of `alignment`.
    pub(crate) fn access(&self, pointer: ValueId, ty: Type, alignment: u32) -> Access {
        let space = self.spaces.get(pointer.index()).copied().unwrap_or(Space::Global);
        Access { ty, space, is_aligned: alignment as usize >= ty.scalar.byte_size() }
    }

    /// The number of the running thread or of its workgroup.
    pub(crate) fn thread(&self, index: ThreadIndex) -> Result<Text> {
        if !self.is_opencl() {
            return Err(Error::internal("unexpected thread number outside a kernel of a device"));
        }
        let function = match index {
            ThreadIndex::Local => "get_local_id(0)",
            ThreadIndex::Workgroup => "get_group_id(0)",
        };
        Ok(Text::primary(function).cast("int64_t"))
    }

    /// Returns the declaration of a kernel: the addresses, and their distances in bytes.
    pub(crate) fn kernel_signature(&mut self, symbol: &str, threads: u32) -> String {
        let mut addresses = Vec::new();
        let mut offsets = Vec::new();
        let function = self.function;
        for parameter in &function.parameters {
            let name = self.name_of(parameter.value).to_owned();
            let qualified =
                if parameter.pointer.no_alias { format!("restrict {name}") } else { name.clone() };
            addresses.push(self.declaration(parameter.value, &qualified));
            let offset = self.names.unique(&offset_of(&name));
            offsets.push(format!("const ulong {offset}"));
        }
        let list: Vec<String> = [addresses, offsets].map(|part| part.join(",\n    ")).to_vec();
        format!(
            "kernel __attribute__((reqd_work_group_size({threads}, 1, 1)))\nvoid {symbol}(\n    {})",
            list.join(",\n    ")
        )
    }

    /// Prints the first lines of a kernel: it returns if the guard is 0.
    pub(crate) fn begin_kernel(&mut self) {
        let function = self.function;
        let parameters = &function.parameters;
        let Some(guard) = parameters.first() else { return };
        let name = self.name_of(guard.value).to_owned();
        self.line(format!(
            "if ({name} != NULL && *(global const int *)({name} + {}) == 0) {{",
            offset_of(&name)
        ));
        self.line("  return;");
        self.line("}");
        for parameter in parameters {
            if self.uses.count(parameter.value) > 0 {
                let name = self.name_of(parameter.value).to_owned();
                self.line(format!("{name} += {};", offset_of(&name)));
            }
        }
    }

    /// Prints the last lines of a kernel. PoCL 3.1 computes wrong results for kernels with barriers
    /// that return early, unless the last statement is a barrier, too.
    pub(crate) fn end_kernel(&mut self) {
        if self.function.body.walk().any(|statement| matches!(statement, Statement::Barrier)) {
            self.line("barrier(CLK_LOCAL_MEM_FENCE); /* PoCL 3.1 needs it after an early return. */");
        }
    }
}

/// The name of the parameter with the distance of an address.
fn offset_of(name: &str) -> String {
    format!("{name}_offset")
}
