// Description of the variables of a generated class.

#ifndef TFCOMPILE_VARIABLE_H_
#define TFCOMPILE_VARIABLE_H_

#include <cstddef>
#include <cstdint>

namespace tfcompile {
inline namespace tfcompile_v1 {

// A variable of a class. The static method Variables() returns kNumVariables of them in argument
// order.
struct VariableInfo {
  const char* name;            // Name in the graph, including slashes.
  const char* config_name;     // Name in the config, or else the same as `name`.
  const char* type;            // NumPy's type without byte order: "f4".
                               // Other types are raw bits: "u2".
  const ::std::int64_t* dims;  // Null for a scalar.
  ::std::int32_t rank;
  bool readonly;               // True if Run() does not change it.
  ::std::size_t size;          // Size in bytes.
  ::std::size_t argument;      // Index for arg_data().
};

}  // namespace tfcompile_v1
}  // namespace tfcompile

#endif  // TFCOMPILE_VARIABLE_H_
