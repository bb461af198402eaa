//! Projects for microcontrollers: their files, and the parts of their programs that depend on the
//! model. The programs use the C header.

use super::{BuildSystem, Template};
use crate::program::model::Read;
use compiler::NoObserver;
use shape::PrimitiveType;
use std::fmt::Write as _;
use support::Result;

macro_rules! template {
    ($to:literal, $from:literal) => {
        ($to, include_str!(concat!("../../../../../build_systems/init/boards/", $from)))
    };
}

const MODEL: Template = template!("model.cmake", "model.cmake");

pub(super) const PICO_SDK: &[Template] = &[
    template!("CMakeLists.txt", "pico-sdk/CMakeLists.txt"),
    template!("pico_sdk_import.cmake", "pico-sdk/pico_sdk_import.cmake"),
    template!("main.c", "pico-sdk/main.c"),
    MODEL,
];

pub(super) const ZEPHYR: &[Template] = &[
    template!("CMakeLists.txt", "zephyr/CMakeLists.txt"),
    template!("Kconfig", "zephyr/Kconfig"),
    template!("prj.conf", "zephyr/prj.conf"),
    template!("src/main.c", "zephyr/main.c"),
    MODEL,
];

pub(super) const ARDUINO: &[Template] = &[
    template!("library.properties", "arduino/library.properties"),
    template!("build.sh", "arduino/build.sh"),
    template!("examples/Run/Run.ino", "arduino/run.ino"),
];

pub(super) const ESP_IDF: &[Template] = &[
    template!("CMakeLists.txt", "esp-idf/CMakeLists.txt"),
    template!("main/CMakeLists.txt", "esp-idf/component.cmake"),
    template!("main/main.c", "esp-idf/main.c"),
    template!("sdkconfig.defaults", "esp-idf/sdkconfig.defaults"),
    MODEL,
];

pub(super) const CMSIS: &[Template] = &[
    template!("@NAME@.csolution.yml", "cmsis/csolution.yml"),
    template!("@NAME@.cproject.yml", "cmsis/cproject.yml"),
    template!("compile_model.cmake", "cmsis/compile_model.cmake"),
    template!("main.c", "cmsis/main.c"),
];

/// Parts of a program in C that depend on the model. Empty for programs that are not for boards.
#[derive(Default)]
pub(super) struct Program {
    /// Comments that list the functions for arguments and results.
    pub(super) accessors: Option<String>,
    /// Statements that print the first element of each result.
    pub(super) results: String,
}

impl Program {
    /// Imports the model, whose interface determines the names.
    pub(super) fn new(build: BuildSystem, name: &str, read: &Read) -> Result<Self> {
        if !build.is_board() {
            return Ok(Self::default());
        }
        let program = read.input.source.clone().import_whole(&mut NoObserver)?;
        let (mut accessors, mut results) = (String::new(), String::new());
        for entry in aot::accessors(&program.interface)? {
            let (accessor, capitals) = (&entry.accessor, name.to_ascii_uppercase());
            if entry.kind == "size" {
                let _ =
                    writeln!(accessors, "//   {name}_{accessor}(state), {name}_set_{accessor}(state, size)");
                continue;
            }
            let _ = writeln!(accessors, "//   {name}_{accessor}(state), {capitals}_{accessor}_COUNT");
            if entry.kind == "fetch" && entry.shape.element_count() > 0 {
                results += &print(build, name, accessor, entry.shape.element_type);
            }
        }
        Ok(Self { accessors: Some(accessors), results: results.trim_end().to_owned() })
    }
}

/// Statements that print the first element of a result, or nothing for types that C has no numbers
/// for.
fn print(build: BuildSystem, name: &str, accessor: &str, element_type: PrimitiveType) -> String {
    let is_number = element_type.is_integer()
        || matches!(element_type, PrimitiveType::Pred | PrimitiveType::F32 | PrimitiveType::F64);
    if !is_number {
        return String::new();
    }
    let value = format!("(double){name}_{accessor}(state)[0]");
    match build {
        BuildSystem::Arduino => {
            format!("  Serial.print(\"{accessor}[0] = \");\n  Serial.println({value});\n")
        }
        BuildSystem::Zephyr => format!("  printk(\"{accessor}[0] = %g\\n\", {value});\n"),
        _ => format!("  printf(\"{accessor}[0] = %g\\n\", {value});\n"),
    }
}
