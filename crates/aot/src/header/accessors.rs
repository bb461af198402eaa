//! Methods that access buffers and their elements.

use super::text::Text;
use super::{CppNames, sizes};
use crate::Artifact;
use crate::cpp_type::{cpp_type, remark};
use crate::quantized::Quantized;
use crate::sizes::TrueSizes;
use shape::ArrayShape;

/// Access that the methods of a buffer permit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Feed: the setter takes any pointer.
    Feed,
    /// Result: no setter.
    Result,
    /// Variable that the computation writes.
    Variable,
    /// Read-only variable, whose memory may be constant.
    ReadonlyVariable,
}

/// A buffer and the table that contains it.
struct Buffer<'a> {
    /// `arg_data` or `result_data`.
    table: &'static str,
    index: usize,
    shape: &'a ArrayShape,
    access: Access,
    quantized: Option<Quantized>,
    /// Expressions for its sizes, if they change from run to run.
    true_sizes: Option<TrueSizes>,
}

impl Buffer<'_> {
    /// Returns the size of an element in bytes.
    fn element_bytes(&self) -> u64 {
        self.shape.element_type.byte_size() as u64
    }
}

/// Number of parameters of the element accessor: none for rank 0 and for a one-dimensional array of
/// one element.
pub(super) fn parameters(shape: &ArrayShape) -> usize {
    if shape.sizes() == [1] { 0 } else { shape.rank() }
}

/// Writes the methods of the feeds, by position and by name.
pub(super) fn arguments(out: &mut Text, artifact: &Artifact, names: &CppNames) {
    for line in [
        "Arguments, by position and by name. For argument N with elements of type T:",
        "",
        "  void set_argN_data(const void* data)  sets the buffer for the following calls of Run.",
        "  T* argN_data()                        returns the buffer.",
        "  T& argN(dim0, dim1, ...)              returns an element; indices are not checked.",
        "  int argN_size() const                 returns the buffer's size in bytes.",
        "  int argN_count() const                returns the number of elements.",
    ] {
        out.comment(line);
    }
    if !names.sizes.is_empty() {
        for line in [
            "",
            "For an argument with named dimensions, count and size (from the first to the last element) are",
            "those of the current sizes, and",
            "",
            "  std::int64_t argN_dim_size(dim) const",
            "    returns the size of dimension `dim`.",
            "",
            "A buffer of the caller's needs room for the largest sizes: ArgSize(N) bytes.",
        ] {
            out.comment(line);
        }
    }
    out.blank();
    quantization(out, artifact);
    for (index, (argument, name)) in artifact.interface.feeds().iter().zip(&names.feeds).enumerate() {
        if argument.range.is_some() {
            continue;
        }
        let quantized = Quantized::new(&argument.shape, argument.quantization);
        let true_sizes = sizes::of_argument(argument, names);
        let (shape, access) = (&argument.shape, Access::Feed);
        let buffer = Buffer { table: "arg_data", index, shape, access, quantized, true_sizes };
        for name in accessor_names("arg", index, name) {
            methods(out, &buffer, &name);
            buffer.true_sizes.iter().for_each(|sizes| dim_size(out, sizes, &name));
        }
    }
}

/// Writes the methods of the fetches, by position and by name.
pub(super) fn results(out: &mut Text, artifact: &Artifact, names: &CppNames) {
    out.paragraph(
        "Results, by position and by name; valid after Run returned true. They have the same methods as \
         arguments, except for the setter: results are in the object's memory.",
    );
    out.blank();
    if artifact.interface.size_count() > 0 {
        for line in [
            if names.sizes.is_empty() {
                "For a result with a data-dependent shape, these methods return upper bounds, and"
            } else {
                "For a result whose shape differs from run to run, count and size are those of the last Run, and"
            },
            "",
            "  std::int64_t resultN_dim_size(dim) const",
            "    returns the actual size of dimension `dim` after the last Run.",
            "",
            "The rest of the buffer is undefined.",
        ] {
            out.comment(line);
        }
        out.blank();
    }
    for (index, (result, name)) in artifact.interface.fetches().iter().zip(&names.fetches).enumerate() {
        let quantized = Quantized::new(&result.shape, result.quantization);
        let true_sizes = sizes::of_result(&artifact.interface, result);
        let (shape, access) = (&result.shape, Access::Result);
        let buffer = Buffer { table: "result_data", index, shape, access, quantized, true_sizes };
        for name in accessor_names("result", index, name) {
            methods(out, &buffer, &name);
            if !result.shape.is_static() {
                dim_size(out, &sizes::reported(result), &name);
            }
        }
    }
}

/// Returns the names of a buffer's element accessor, by position and by name.
fn accessor_names(prefix: &str, index: usize, name: &Option<String>) -> Vec<String> {
    let named = name.iter().map(|name| format!("{prefix}_{name}"));
    std::iter::once(format!("{prefix}{index}")).chain(named).collect()
}

/// Writes the method that returns the actual size of a dimension.
fn dim_size(out: &mut Text, sizes: &TrueSizes, name: &str) {
    out.line(&format!("::std::int64_t {name}_dim_size(::std::size_t dim) const {{"));
    for (d, size) in sizes.dimensions.iter().enumerate() {
        out.line(&format!("  if (dim == {d}u) return {size};"));
    }
    out.line("  return 0;");
    out.line("}");
    out.blank();
}

/// Writes the methods of the variables, by name.
pub(super) fn variables(out: &mut Text, artifact: &Artifact, names: &CppNames) {
    out.paragraph(
        "Variables, by name: set_var_X_data(T*), var_X_data(), var_X(dim0, ...), var_X_size(), \
         var_X_count(). After Run, the buffer of a variable that the graph writes contains its new value. \
         For variables that the graph only reads, T is const, so the caller may set a buffer in constant \
         memory.",
    );
    out.blank();
    let first = artifact.interface.feed_count();
    for (position, (variable, name)) in
        artifact.interface.variables().iter().zip(&names.variables).enumerate()
    {
        let readonly = artifact.interface.new_value(first + position).is_none();
        let access = if readonly { Access::ReadonlyVariable } else { Access::Variable };
        let (shape, index) = (&variable.shape, first + position);
        let quantized = Quantized::new(shape, variable.quantization);
        let buffer = Buffer { table: "arg_data", index, shape, access, quantized, true_sizes: None };
        if let Some(name) = name {
            methods(out, &buffer, &format!("var_{name}"));
        }
    }
}

/// Writes all methods of one buffer under one name.
fn methods(out: &mut Text, buffer: &Buffer<'_>, name: &str) {
    let element = cpp_type(buffer.shape.element_type);
    let (count, size) = (buffer.shape.element_count(), buffer.shape.byte_size());
    if let Some(remark) = remark(buffer.shape.element_type) {
        out.comment(remark);
    }
    let readonly = buffer.access == Access::ReadonlyVariable;
    let mutable_element = if readonly { format!("const {element}") } else { element.to_string() };
    let set_type = match buffer.access {
        Access::Feed => Some("const void"),
        Access::Variable | Access::ReadonlyVariable => Some(mutable_element.as_str()),
        Access::Result => None,
    };
    if let Some(set_type) = set_type {
        out.line(&format!(
            "void set_{name}_data({set_type}* data) {{ set_arg_data({}, data); }}",
            buffer.index
        ));
    }
    for (element, constness) in [(mutable_element.as_str(), ""), (&format!("const {element}"), " const")] {
        let data = format!("static_cast<{element}*>({}({}))", buffer.table, buffer.index);
        let (indices, offset) = element_offset(buffer.shape);
        out.line(&format!("{element}* {name}_data(){constness} {{ return {data}; }}"));
        out.line(&format!("{element}& {name}({indices}){constness} {{ return {data}[{offset}]; }}"));
    }
    let number = |bound: u64, expression: Option<String>| match (count_type(bound), expression) {
        (_, None) => bound.to_string(),
        ("int", Some(expression)) => format!("static_cast<int>({expression})"),
        (_, Some(expression)) => expression,
    };
    let true_sizes = buffer.true_sizes.as_ref();
    let true_size = number(size, true_sizes.map(|sizes| sizes.extent(buffer.element_bytes())));
    let true_count = number(count as u64, true_sizes.map(TrueSizes::count));
    out.line(&format!("{} {name}_size() const {{ return {true_size}; }}", count_type(size)));
    out.line(&format!("{} {name}_count() const {{ return {true_count}; }}", count_type(count as u64)));
    if let Some(quantized) = &buffer.quantized {
        conversions(out, buffer, quantized, name);
    }
    out.blank();
}

/// Describes the methods of quantized buffers, if there are any.
fn quantization(out: &mut Text, artifact: &Artifact) {
    let (arguments, results) = (artifact.interface.arguments(), artifact.interface.results());
    if arguments.iter().all(|a| a.quantization.is_none()) && results.iter().all(|r| r.quantization.is_none())
    {
        return;
    }
    for line in [
        "Quantized integers stand for real numbers: scale * (stored - zero point). If array N has some:",
        "",
        "  static constexpr float argN_scale()         returns the scale.",
        "  static constexpr int argN_zero_point()      returns the integer that stands for zero.",
        "  void quantize_argN(const float* values)     writes argN_count() elements, each the integer",
        "                                              nearest to a real number. Halves are rounded away",
        "                                              from zero. Numbers beyond the type's range become",
        "                                              its nearest end, and NaN becomes the zero point.",
        "  void dequantize_resultN(float* values) const",
        "                                              copies resultN_count() elements as real numbers.",
        "",
        "Variables have both conversions; variables that are only read have the second. Integers of 32",
        "or 64 bits have none.",
    ] {
        out.comment(line);
    }
    out.blank();
}

/// Writes the scale and the zero point of a buffer, and its conversions from and to floats.
fn conversions(out: &mut Text, buffer: &Buffer<'_>, quantized: &Quantized, name: &str) {
    let (scale, zero_point) = (quantized.scale(), quantized.zero_point);
    out.line(&format!("static constexpr float {name}_scale() {{ return {scale}f; }}"));
    out.line(&format!("static constexpr int {name}_zero_point() {{ return {zero_point}; }}"));
    let Some((low, high)) = quantized.range else { return };
    let element = cpp_type(buffer.shape.element_type);
    let each = match &buffer.true_sizes {
        Some(sizes) => format!("for (::std::int64_t i = 0; i < {}; ++i)", sizes.extent(1)),
        None => {
            let count = buffer.shape.element_count();
            format!("for ({} i = 0; i < {count}; ++i)", count_type(count as u64))
        }
    };
    if matches!(buffer.access, Access::Feed | Access::Variable) {
        out.line(&format!("void quantize_{name}(const float* values) {{"));
        out.line(&format!("  {element}* const stored = {name}_data();"));
        out.line(&format!("  {each} {{"));
        out.line(&format!(
            "    stored[i] = static_cast<{element}>(::tfcompile_quantize(values[i], {scale}f, {zero_point}, {low}, {high}));"
        ));
        out.line("  }");
        out.line("}");
    }
    if buffer.access != Access::Feed {
        out.line(&format!("void dequantize_{name}(float* values) const {{"));
        out.line(&format!("  const {element}* const stored = {name}_data();"));
        out.line(&format!("  {each} values[i] = ::tfcompile_dequantize(stored[i], {scale}f, {zero_point});"));
        out.line("}");
    }
}

/// Returns the index parameters and the row-major offset of the element. The offset uses strides
/// rather than an array type because C++ has no arrays without elements.
fn element_offset(shape: &ArrayShape) -> (String, String) {
    if parameters(shape) == 0 {
        return (String::new(), "0".to_string());
    }
    let rank = shape.rank();
    let indices: Vec<String> = (0..rank).map(|i| format!("::std::size_t dim{i}")).collect();
    let mut stride: i64 = 1;
    let mut terms = Vec::with_capacity(rank);
    for dimension in (0..rank).rev() {
        terms.push(match stride {
            1 => format!("dim{dimension}"),
            _ => format!("dim{dimension} * {stride}u"),
        });
        stride = stride.saturating_mul(shape.size(dimension));
    }
    terms.reverse();
    (indices.join(", "), terms.join(" + "))
}

/// Returns `int`, as in TensorFlow's header, unless the number requires a wider type.
fn count_type(number: u64) -> &'static str {
    if number <= i32::MAX as u64 { "int" } else { "::std::int64_t" }
}
