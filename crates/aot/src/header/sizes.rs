//! Methods of a class for the sizes of named dimensions.

use super::text::Text;
use super::{BASE, CppNames, base};
use crate::Artifact;
use crate::header::quoted;
use crate::sizes::{Size, TrueSizes};
use hlo::{Argument, Interface, Output};
use support::{Error, Result};

/// Checks that no method has the name of the class.
pub(super) fn check_class(class: &str, sizes: &[Size]) -> Result<()> {
    match sizes.iter().find(|size| class == size.name || class == format!("set_{}", size.name)) {
        None => Ok(()),
        Some(size) => Err(Error::invalid(format!(
            "class '{class}' has the name of a method for the size of dimension '{}'; choose another name for the class",
            size.graph_name
        ))),
    }
}

/// Writes the public methods of a class with the usual base class.
pub(super) fn methods(out: &mut Text, artifact: &Artifact, names: &CppNames) {
    if names.sizes.is_empty() {
        return;
    }
    comment(out);
    for (index, size) in names.sizes.iter().enumerate() {
        limits(out, size);
        let name = &size.name;
        out.line(&format!("::std::int64_t {name}() const {{ return NamedSize({index}); }}"));
        out.line(&format!("bool set_{name}(::std::int64_t size) {{ return SetNamedSize({index}, size); }}"));
        out.blank();
    }
    out.line(&format!("using {}::Run;", base(artifact)));
    run_with_sizes(out, &names.sizes);
}

/// Writes the public methods of a freestanding class, which has the array `sizes_`.
pub(super) fn freestanding_methods(out: &mut Text, names: &CppNames) {
    if names.sizes.is_empty() {
        return;
    }
    comment(out);
    for (index, size) in names.sizes.iter().enumerate() {
        limits(out, size);
        let (name, camel) = (&size.name, size.in_camel_case());
        out.line(&format!(
            "::std::int64_t {name}() const {{ return k{camel}Max - sizes_[{index}].below_max; }}"
        ));
        out.line(&format!("bool set_{name}(::std::int64_t size) {{"));
        out.line(&format!("  sizes_[{index}].is_out_of_range = size < k{camel}Min || size > k{camel}Max;"));
        out.line(&format!("  if (sizes_[{index}].is_out_of_range) return false;"));
        out.line(&format!("  sizes_[{index}].below_max = static_cast<::std::int32_t>(k{camel}Max - size);"));
        out.line("  return true;");
        out.line("}");
        out.blank();
    }
    run_with_sizes(out, &names.sizes);
}

/// Writes the beginning of `Run` of a freestanding class.
pub(super) fn freestanding_checks(out: &mut Text, names: &CppNames) {
    for (index, size) in names.sizes.iter().enumerate() {
        out.line(&format!("  if (sizes_[{index}].is_out_of_range) {{"));
        out.line(&format!("    error_ = {};", quoted(&size.out_of_range())));
        out.line("    return false;");
        out.line("  }");
    }
    if !names.sizes.is_empty() {
        let values = names.sizes.iter().map(|size| format!("static_cast<::std::int32_t>({}())", size.name));
        let values: Vec<String> = values.collect();
        out.line(&format!("  ::std::int32_t sizes[] = {{{}}};", values.join(", ")));
    }
}

/// Writes the members of a freestanding class. They are zero for the largest sizes.
pub(super) fn freestanding_members(out: &mut Text, names: &CppNames) {
    if names.sizes.is_empty() {
        return;
    }
    out.line("struct NamedSize {");
    out.line("  ::std::int32_t below_max;");
    out.line("  bool is_out_of_range;");
    out.line("};");
    out.line(&format!("NamedSize sizes_[{}] = {{}};", names.sizes.len()));
}

fn comment(out: &mut Text) {
    for line in [
        "Sizes of named dimensions, which may change from run to run. For dimension D:",
        "",
        "  kDMin, kDMax            the smallest and the largest size.",
        "  std::int64_t D() const  returns the size, at first the largest.",
        "  bool set_D(size)        sets the size of the following runs. If it is out of range, returns",
        "                          false and leaves the size unchanged, and Run fails until a valid size",
        "                          is set.",
        "",
    ] {
        out.comment(line);
    }
    out.paragraph(
        "Buffers have room for the largest sizes, and elements have the same places for all sizes. Runs do \
         not use the contents of arguments beyond the sizes, and leave results undefined there.",
    );
    out.blank();
}

fn limits(out: &mut Text, size: &Size) {
    let camel = size.in_camel_case();
    out.line(&format!("static constexpr ::std::int64_t k{camel}Min = {};", size.range.low));
    out.line(&format!("static constexpr ::std::int64_t k{camel}Max = {};", size.range.high));
}

/// Writes the method that sets all sizes and runs.
fn run_with_sizes(out: &mut Text, sizes: &[Size]) {
    out.comment(if sizes.len() == 1 { "Sets the size and runs." } else { "Sets the sizes and runs." });
    let parameter = |size: &Size| match sizes.len() {
        1 => "size".to_owned(),
        _ => format!("{}_size", size.name),
    };
    let parameters: Vec<String> =
        sizes.iter().map(|size| format!("::std::int64_t {}", parameter(size))).collect();
    out.line(&format!("bool Run({}) {{", parameters.join(", ")));
    for size in sizes {
        out.line(&format!("  set_{}({});", size.name, parameter(size)));
    }
    out.line("  return Run();");
    out.line("}");
    out.blank();
}

/// Writes the table of the base class.
pub(super) fn table(names: &CppNames) -> (String, Vec<String>) {
    let row = |size: &Size| {
        let (range, error) = (size.range, quoted(&size.out_of_range()));
        format!("{{{}, {}, {}, {error}}}", size.argument, range.low, range.high)
    };
    (format!("{BASE}::NamedDimension"), names.sizes.iter().map(row).collect())
}

/// Returns expressions for the sizes of an argument with named dimensions.
pub(super) fn of_argument(argument: &Argument, names: &CppNames) -> Option<TrueSizes> {
    TrueSizes::of_argument(argument, |number| {
        let size = names.sizes.iter().find(|size| size.argument == number);
        format!("{}()", size.expect("a size for each named dimension").name)
    })
}

/// Returns expressions for the sizes of a bounded result. In programs without named dimensions,
/// accessors return upper bounds.
pub(super) fn of_result(interface: &Interface, result: &Output) -> Option<TrueSizes> {
    let has_named = interface.sizes().next().is_some();
    (has_named && !result.shape.is_static()).then(|| reported(result))
}

/// Returns expressions for the sizes of a result, some of which the run reports.
pub(super) fn reported(result: &Output) -> TrueSizes {
    let indices = result.size_indices();
    TrueSizes::new(&result.shape, |d| indices[d].map(|index| format!("dynamic_sizes()[{index}]")))
}
