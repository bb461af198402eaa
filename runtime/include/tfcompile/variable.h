// What a generated class says about its variables.

#ifndef TFCOMPILE_VARIABLE_H_
#define TFCOMPILE_VARIABLE_H_

#include <cstddef>
#include <cstdint>

namespace tfcompile {
inline namespace tfcompile_v1 {

// One variable of a class; its static method Variables() gives all kNumVariables of them, in the order of the arguments.
struct VariableInfo {
  const char* name;            // In the graph, with its slashes.
  const char* config_name;     // In the config, else the same.
  const char* type;            // As NumPy writes it, without the byte order: "f4". Types that NumPy lacks: their bits, "u2".
  const ::std::int64_t* dims;  // Null for a scalar.
  ::std::int32_t rank;
  bool readonly;               // Whether Run() leaves it as it is.
  ::std::size_t size;          // Bytes.
  ::std::size_t argument;      // What arg_data() takes.
};

}  // namespace tfcompile_v1
}  // namespace tfcompile

#endif  // TFCOMPILE_VARIABLE_H_
