//! Constant tables of `StaticData()`: sizes, aliases, names, and shapes.

use super::text::{Text, quoted};
use super::{BASE, Constants, CppNames, HeaderOptions, lookup_name, sizes};
use crate::Artifact;
use crate::artifact::ProfileCounter;
use crate::cpp_type::{alignment, enumerator};
use shape::{ArrayShape, ProgramShape, Shape};

/// Writes `StaticData()`, the argument of the base class's constructor.
pub(super) fn static_data(out: &mut Text, artifact: &Artifact, options: &HeaderOptions, names: &CppNames) {
    let named = options.gen_name_to_index;
    let profiled = !artifact.profile_counters.is_empty();
    let entry = &artifact.entry_point;
    let memory = artifact.host_memory();
    let choose = |name: &'static str, present: bool| if present { name } else { "nullptr" };
    let none = || "nullptr".to_string();
    let (near, far) = match Constants::of(artifact) {
        Constants::Near => (format!("::{entry}_constants"), none()),
        Constants::Far => (none(), format!("&::{entry}_constants_pointer")),
        Constants::File => (none(), none()),
    };
    let mut fields = vec![
        ("function", format!("&::{entry}")),
        ("constants", near),
        ("constants_pointer", far),
        ("args", choose("kArgs", !artifact.interface.arguments().is_empty()).to_string()),
        ("results", choose("kResults", !artifact.interface.results().is_empty()).to_string()),
        (
            "variable_results",
            choose("kVariableResults", !artifact.interface.variables().is_empty()).to_string(),
        ),
        ("num_args", artifact.interface.arguments().len().to_string()),
        ("num_results", artifact.interface.results().len().to_string()),
        ("num_variables", artifact.interface.variables().len().to_string()),
        ("temps_size", format!("{}u", memory.temps)),
        ("persistent_temps_size", format!("{}u", memory.persistent_temps)),
        ("scratch_size", format!("{}u", memory.scratch)),
        ("profile_counters_size", artifact.profile_counters.len().to_string()),
        ("arg_names", choose("kArgNames", named).to_string()),
        ("variable_names", choose("kVariableNames", named).to_string()),
        ("result_names", choose("kResultNames", named).to_string()),
        ("program_shape", choose("&kProgramShape", options.gen_program_shape).to_string()),
        ("hlo_profile_printer_data", choose("&kProfilePrinterData", profiled).to_string()),
    ];
    // The last fields, omitted if they are 0.
    let has_named = !names.sizes.is_empty();
    if artifact.interface.size_count() > 0 || has_named {
        fields.push(("num_dynamic_sizes", artifact.interface.size_count().to_string()));
    }
    if has_named {
        fields.push(("named_dimensions", "kNamedDimensions".to_owned()));
        fields.push(("num_named_dimensions", names.sizes.len().to_string()));
    }
    out.comment("Description of this computation for the base class.");
    out.line(&format!("static const {BASE}::StaticData& StaticData() {{"));
    out.line(&format!("  static constexpr {BASE}::StaticData kStaticData = {{"));
    for (field, value) in &fields {
        out.line(&format!("      /*{field}=*/{value},"));
    }
    out.line("  };");
    out.line("  return kStaticData;");
    out.line("}");
    out.blank();
}

/// Writes the private tables.
pub(super) fn tables(out: &mut Text, artifact: &Artifact, options: &HeaderOptions, cpp_names: &CppNames) {
    let infos = |shapes: Vec<&ArrayShape>| -> Vec<String> {
        let info = |s: &&ArrayShape| format!("{{{}u, {}u}}", s.byte_size(), alignment(s.element_type));
        shapes.iter().map(info).collect()
    };
    let buffer_info = format!("{BASE}::BufferInfo");
    out.comment("Size of each buffer and alignment of its elements, in bytes.");
    table(
        out,
        &buffer_info,
        "kArgs",
        &infos(artifact.interface.arguments().iter().map(|a| &a.shape).collect()),
    );
    table(
        out,
        &buffer_info,
        "kResults",
        &infos(artifact.interface.results().iter().map(|r| &r.shape).collect()),
    );
    let variables = artifact.interface.feed_count()..artifact.interface.arguments().len();
    let aliases: Vec<String> = variables
        .map(|argument| artifact.interface.new_value(argument))
        .map(|result| result.map_or("-1".to_string(), |index| index.to_string()))
        .collect();
    table(out, "::std::int32_t", "kVariableResults", &aliases);
    let (row_type, rows) = sizes::table(cpp_names);
    table(out, &row_type, "kNamedDimensions", &rows);
    if options.gen_name_to_index {
        names(out, artifact);
    }
    if options.gen_program_shape {
        program_shape(out, &artifact.interface.program_shape());
    }
    if !artifact.profile_counters.is_empty() {
        profile_printer_data(out, &artifact.profile_counters);
    }
}

fn table(out: &mut Text, element: &str, name: &str, entries: &[String]) {
    if entries.is_empty() {
        return;
    }
    out.line(&format!("static constexpr {element} {name}[] = {{"));
    for entry in entries {
        out.line(&format!("    {entry},"));
    }
    out.line("};");
}

/// Writes the names of the config. A null pointer terminates each table.
fn names(out: &mut Text, artifact: &Artifact) {
    let closed = |names: Vec<&str>| -> Vec<String> {
        names.into_iter().map(quoted).chain(["nullptr".to_string()]).collect()
    };
    let feeds = artifact.interface.feeds().iter().map(lookup_name).collect();
    let variables = artifact.interface.variables().iter().map(lookup_name).collect();
    let fetches = artifact.interface.fetches().iter().map(|r| r.name.as_deref().unwrap_or("")).collect();
    for (name, entries) in [("kArgNames", feeds), ("kVariableNames", variables), ("kResultNames", fetches)] {
        table(out, "const char*", name, &closed(entries));
    }
}

fn profile_printer_data(out: &mut Text, counters: &[ProfileCounter]) {
    let counters: Vec<String> = counters
        .iter()
        .map(|c| {
            let [name, short, category] = [&c.name, &c.short_name, &c.category].map(|text| quoted(text));
            format!("{{{name}, {short}, {category}, {}, {}, {}}}", c.flops, c.transcendentals, c.bytes)
        })
        .collect();
    let number = counters.len();
    table(out, "::xla::tfcompile_v1::HloInstructionInfo", "kProfileCounters", &counters);
    out.line(&format!(
        "static constexpr ::xla::tfcompile_v1::HloProfilePrinterData kProfilePrinterData{{kProfileCounters, {number}}};"
    ));
}

fn program_shape(out: &mut Text, shape: &ProgramShape) {
    let mut arrays = ShapeArrays { lines: Vec::new() };
    let parameters = arrays.shapes(&shape.parameters);
    let names: Vec<String> = shape.parameter_names.iter().map(|name| quoted(name)).collect();
    let names = arrays.define("const char*", "kParameterNames", &names);
    let result = arrays.shape(&shape.result);
    for line in &arrays.lines {
        out.line(line);
    }
    let count = shape.parameters.len();
    out.line("static constexpr ::xla::tfcompile_v1::ProgramShapeProto kProgramShape{");
    out.line(&format!("    {parameters}, {names}, {count}, {result}}};"));
}

/// Constants that the shapes refer to, numbered in the order of definition.
struct ShapeArrays {
    lines: Vec<String>,
}

impl ShapeArrays {
    /// Returns the name of an array of shapes, or `nullptr`.
    fn shapes(&mut self, shapes: &[Shape]) -> String {
        let shapes: Vec<String> = shapes.iter().map(|shape| self.shape(shape)).collect();
        self.define("::xla::tfcompile_v1::ShapeProto", "kShapes", &shapes)
    }

    /// Returns an expression that constructs the shape.
    fn shape(&mut self, shape: &Shape) -> String {
        let arguments = match shape {
            Shape::Array(array) => {
                let sizes: Vec<String> = array.sizes().iter().map(i64::to_string).collect();
                let dimensions = self.define("::std::int64_t", "kDimensions", &sizes);
                let element_type = enumerator(array.element_type);
                format!("::xla::tfcompile_v1::{element_type}, {dimensions}, {}", array.rank())
            }
            Shape::Tuple(elements) => format!("{}, {}", self.shapes(elements), elements.len()),
            Shape::Token => "::xla::tfcompile_v1::TOKEN, nullptr, 0".to_string(),
        };
        format!("::xla::tfcompile_v1::ShapeProto({arguments})")
    }

    fn define(&mut self, element: &str, name: &str, entries: &[String]) -> String {
        if entries.is_empty() {
            return "nullptr".to_string();
        }
        let name = format!("{name}{}", self.lines.len());
        self.lines.push(format!("static constexpr {element} {name}[] = {{{}}};", entries.join(", ")));
        name
    }
}
