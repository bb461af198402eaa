//! The frame, the argument of the entry: its fields by name, so that the text holds for addresses
//! of any size.

use nest::FrameLayout;

/// The declaration of the frame, as in `tfcompile/frame.h`.
pub(crate) const DECLARATION: &str = "\
/* The argument of the function: see tfcompile/frame.h, or the header of this program. */
typedef int32_t (*tfcompile_parallel_body)(void *data, int64_t begin, int64_t end, int64_t worker);
typedef int32_t (*tfcompile_parallel_for)(void *context, int64_t count, tfcompile_parallel_body body, void *data);
struct tfcompile_frame {
  uint64_t size;
  uint32_t version;
  uint32_t reserved;
  void *const *args;
  void *const *results;
  void *temps;
  const void *constants;
  tfcompile_parallel_for parallel_for;
  void *context;
  int64_t max_workers;
  void *scratch;
  int64_t *profile_counters;
  const char *error;
  int64_t *dynamic_sizes;
  struct tfcompile_device_instance *device;
};
";

/// Returns the name of the field that holds an address.
pub(crate) fn field(layout: FrameLayout, offset: i64) -> Option<&'static str> {
    let fields = [
        (layout.args(), "args"),
        (layout.results(), "results"),
        (layout.temps(), "temps"),
        (layout.constants(), "constants"),
        (layout.scratch(), "scratch"),
        (layout.error(), "error"),
        (layout.dynamic_sizes(), "dynamic_sizes"),
    ];
    fields.into_iter().find(|&(place, _)| place == offset).map(|(_, name)| name)
}

/// Returns the name of the field that holds a list of addresses.
pub(crate) fn list(layout: FrameLayout, offset: i64) -> Option<&'static str> {
    field(layout, offset).filter(|name| matches!(*name, "args" | "results"))
}
