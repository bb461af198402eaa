//! Element types that XLA does not have, so that its texts and messages cannot represent them.
//! StableHLO can.

use crate::module::Module;
use support::{Error, Result};

/// Rejects a module with elements of a type unknown to XLA: its parser cannot read them, and its
/// enumeration has no number for them.
pub(crate) fn check_xla_types(module: &Module) -> Result<()> {
    for (_, computation) in module.computations() {
        for (_, instruction) in computation.instructions() {
            let types = instruction.shape().leaves().into_iter().map(|(_, array)| array.element_type);
            if let Some(unsupported) = types.into_iter().find(|element_type| !element_type.is_xlas()) {
                return Err(Error::unsupported(format!(
                    "{} ({}): XLA has no type {}, so neither HLO text nor XLA's messages can represent it: convert to a type of \
                     XLA's in the model, such as f8e4m3fn, or write StableHLO (--format stablehlo)",
                    instruction.name(),
                    instruction.opcode().name(),
                    unsupported.name(),
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Module, proto, text};

    const TEXT: &str = "HloModule m\n\nENTRY e {\n  x = f32[2] parameter(0)\n  narrow = f6e2m3fn[2] convert(x)\n  \
        ROOT r = f32[2] convert(narrow)\n}\n";

    fn module(element_type: &str) -> Module {
        crate::parse(&TEXT.replace("f6e2m3fn", element_type)).expect("a module")
    }

    #[test]
    fn errors_name_instructions_of_types_unknown_to_xla() {
        for unsupported in ["f6e2m3fn", "f6e3m2fn"] {
            let module = module(unsupported);
            let text = text::text_for_xla(&module).map(|_| ()).unwrap_err();
            assert!(
                text.message().starts_with(&format!("narrow (convert): XLA has no type {unsupported}, ")),
                "{text}"
            );
            let message = proto::to_hlo_module_proto_bytes(&module).map(|_| ()).unwrap_err();
            assert_eq!(message.message(), text.message());
        }
    }

    #[test]
    fn types_that_xla_has_are_written() {
        let module = module("f4e2m1fn");
        assert_eq!(text::text_for_xla(&module).unwrap(), module.to_text());
        assert!(proto::to_hlo_module_proto_bytes(&module).is_ok());
    }
}
