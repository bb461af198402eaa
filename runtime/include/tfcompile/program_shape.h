// Shapes of a compiled computation, with the names and accessors of XLA's protocol buffers but
// without protobuf.
//
// Objects are constants in a generated header. Nothing is parsed or allocated.

#ifndef TFCOMPILE_PROGRAM_SHAPE_H_
#define TFCOMPILE_PROGRAM_SHAPE_H_

#include <cstdint>
#include <string>

// Informs XLA replacement headers that this header defines the enumeration.
#define TFCOMPILE_HAS_XLA_PRIMITIVE_TYPE 1

namespace xla {
inline namespace tfcompile_v1 {

// Element types with XLA's numbers. XLA has no F6 types.
enum PrimitiveType : int {
  PRIMITIVE_TYPE_INVALID = 0,
  PRED = 1,
  S8 = 2,
  S16 = 3,
  S32 = 4,
  S64 = 5,
  U8 = 6,
  U16 = 7,
  U32 = 8,
  U64 = 9,
  F16 = 10,
  F32 = 11,
  F64 = 12,
  TUPLE = 13,
  OPAQUE_TYPE = 14,
  C64 = 15,
  BF16 = 16,
  TOKEN = 17,
  C128 = 18,
  F8E5M2 = 19,
  F8E4M3FN = 20,
  S4 = 21,
  U4 = 22,
  F8E4M3B11FNUZ = 23,
  F8E5M2FNUZ = 24,
  F8E4M3FNUZ = 25,
  S2 = 26,
  U2 = 27,
  F8E4M3 = 28,
  F8E3M4 = 29,
  S1 = 30,
  U1 = 31,
  F4E2M1FN = 32,
  F8E8M0FNU = 33,
  F6E2M3FN = 128,
  F6E3M2FN = 129
};

// A read-only sequence for loops over a repeated field.
template <class T>
class RepeatedView {
 public:
  constexpr RepeatedView(const T* data, int size) : data_(data), size_(size) {}
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr int size() const { return size_; }
  constexpr const T& Get(int index) const { return data_[index]; }
  constexpr const T& operator[](int index) const { return data_[index]; }

 private:
  const T* data_;
  int size_;
};

// An array, or a tuple of shapes (`element_type() == TUPLE`).
class ShapeProto {
 public:
  constexpr ShapeProto(PrimitiveType element_type, const ::std::int64_t* dimensions, int dimensions_size)
      : element_type_(element_type), dimensions_(dimensions), dimensions_size_(dimensions_size) {}
  constexpr ShapeProto(const ShapeProto* tuple_shapes, int tuple_shapes_size)
      : element_type_(TUPLE), tuple_shapes_(tuple_shapes), tuple_shapes_size_(tuple_shapes_size) {}

  constexpr PrimitiveType element_type() const { return element_type_; }
  constexpr int dimensions_size() const { return dimensions_size_; }
  constexpr ::std::int64_t dimensions(int index) const { return dimensions_[index]; }
  constexpr RepeatedView<::std::int64_t> dimensions() const { return {dimensions_, dimensions_size_}; }
  constexpr int tuple_shapes_size() const { return tuple_shapes_size_; }
  constexpr const ShapeProto& tuple_shapes(int index) const { return tuple_shapes_[index]; }
  constexpr RepeatedView<ShapeProto> tuple_shapes() const { return {tuple_shapes_, tuple_shapes_size_}; }

 private:
  PrimitiveType element_type_;
  const ::std::int64_t* dimensions_ = nullptr;
  int dimensions_size_ = 0;
  const ShapeProto* tuple_shapes_ = nullptr;
  int tuple_shapes_size_ = 0;
};

// Parameters (feeds, then variables) and the result: a tuple of fetches, then written variables.
class ProgramShapeProto {
 public:
  constexpr ProgramShapeProto(const ShapeProto* parameters, const char* const* parameter_names, int parameters_size,
                              ShapeProto result)
      : parameters_(parameters),
        parameter_names_(parameter_names),
        parameters_size_(parameters_size),
        result_(result) {}

  constexpr int parameters_size() const { return parameters_size_; }
  constexpr const ShapeProto& parameters(int index) const { return parameters_[index]; }
  constexpr RepeatedView<ShapeProto> parameters() const { return {parameters_, parameters_size_}; }
  constexpr int parameter_names_size() const { return parameters_size_; }
  ::std::string parameter_names(int index) const { return parameter_names_[index]; }
  constexpr bool has_result() const { return true; }
  constexpr const ShapeProto& result() const { return result_; }

 private:
  const ShapeProto* parameters_;
  const char* const* parameter_names_;
  int parameters_size_;
  ShapeProto result_;
};

// The instruction or whole computation that a profile counter measures.
struct HloInstructionInfo {
  const char* long_name;   // The instruction as text; "[total]" for the whole computation.
  const char* short_name;  // The instruction's name.
  const char* category;    // The instruction's opcode.
  // Work in one run of the computation; 0 if the number of executions is data-dependent.
  ::std::int64_t flops;
  ::std::int64_t transcendentals;
  ::std::int64_t bytes_accessed;
};

// Descriptions of all profile counters.
class HloProfilePrinterData {
 public:
  constexpr HloProfilePrinterData(const HloInstructionInfo* infos, ::std::int64_t size) : infos_(infos), size_(size) {}

  constexpr ::std::int64_t profile_counters_size() const { return size_; }
  constexpr const HloInstructionInfo& instruction_info(::std::int64_t index) const { return infos_[index]; }
  constexpr const char* counter_name(::std::int64_t index) const { return infos_[index].short_name; }

 private:
  const HloInstructionInfo* infos_;
  ::std::int64_t size_;
};

}  // namespace tfcompile_v1
}  // namespace xla

#endif  // TFCOMPILE_PROGRAM_SHAPE_H_
