//! `tfcompile build --constants-section`: the section of the weights.

use super::{Build, Constants, c_source};
use crate::artifacts::kind::Kind;
use compiler::check_section;
use support::{Error, Result};

/// Rejects a section that the build would not have, and names that linkers do not accept.
pub(super) fn check(arguments: &Build) -> Result<()> {
    let Some(section) = &arguments.constants_section else { return Ok(()) };
    if arguments.constants == Constants::File {
        return Err(Error::invalid(
            "--constants-section is for weights in the object, but --constants=file keeps them in a file: remove one of \
             the flags",
        ));
    }
    if arguments.back.sanitizer().is_some() {
        return Err(Error::invalid(
            "--constants-section cannot be combined with --sanitize, which guards the weights in a section of its own: \
             remove one of the flags",
        ));
    }
    // C source is compiled for any machine; its section is checked as that of an ELF object.
    let is_c = arguments.emits(Kind::C);
    let target = if is_c { c_source::target(arguments)? } else { None };
    let target = target.map_or_else(|| arguments.model.target(""), Ok)?;
    check_section(section, &target)?;
    let placed = [Kind::Obj, Kind::C, Kind::Archive, Kind::Shared, Kind::Llvm, Kind::Asm];
    if !placed.iter().any(|&kind| arguments.emits(kind)) {
        return Err(Error::invalid(
            "--constants-section: no file of this build has the weights: add obj, archive, shared, or c to --emit, or \
             remove the flag",
        ));
    }
    Ok(())
}
