// Four models in one program: accessors, allocation modes, variables, errors, moves, names, and
// shapes.

#include <complex>
#include <limits>
#include <memory>
#include <utility>

#include "add.h"
#include "check.h"
#include "matmul_and_add.h"
#include "train.h"
#include "types.h"
#include "xla/service/hlo_profile_printer.h"

bool SecondUnit();  // Defined in second_unit.cc.

namespace {

using AllocMode = tensorflow::XlaCompiledCpuFunction::AllocMode;

void Add() {
  static_assert(AddComp::kNumArgs == 2 && AddComp::kNumResults == 1 && AddComp::kNumVariables == 0, "counts");
  static_assert(AddComp::ArgSize(1) == 4, "bytes");
  AddComp add;
  CHECK(add.arg0_data() == add.arg_data(0) && add.arg1_data() == add.args()[1]);
  CHECK(reinterpret_cast<std::uintptr_t>(add.arg1_data()) % 64 == 0);
  CHECK(add.arg0() == 0);
  add.arg0() = 1;
  add.arg1_data()[0] = 2;
  CHECK(add.Run());
  CHECK(add.error_msg().empty());
  const AddComp& constant = add;
  CHECK(constant.result0() == 3 && constant.result0_data() == constant.result_data(0));
  CHECK(constant.results()[0] == constant.result0_data());
  CHECK(add.arg0_size() == 4 && add.arg0_count() == 1 && add.arg_size(0) == 4 && add.result_size(0) == 4);
  CHECK(!add.HasNameIndices() && add.LookupArgIndex("x") == -1 && add.GetArgName(0) == nullptr);
  CHECK(add.ProgramShape() == nullptr && !add.hlo_profiling_enabled() && add.profile_counters() == nullptr);
  add.set_error_msg("mine");
  CHECK(add.error_msg() == "mine");
}

void MemoryOfTheCaller() {
  AddComp add(AllocMode::RESULTS_AND_TEMPS_ONLY);
  CHECK(add.arg0_data() == nullptr);
  CHECK(!add.Run());
  CHECK(add.error_msg().find("no buffer") != std::string::npos);
  tensorflow::int32 x = 10, y = 32;
  add.set_arg0_data(&x);
  CHECK(!add.Run());
  add.set_arg1_data(&y);
  CHECK(add.Run());
  CHECK(add.result0() == 42 && add.error_msg().empty());
  CHECK(AllocMode::RESULTS_AND_TEMPS_ONLY == AllocMode::RESULTS_PROFILES_AND_TEMPS_ONLY);
  CHECK(AllocMode::ARGS_RESULTS_AND_TEMPS == AllocMode::ARGS_VARIABLES_RESULTS_PROFILES_AND_TEMPS);
  // The table may be filled directly, as programs for early releases do.
  AddComp other(AllocMode::RESULTS_PROFILES_AND_TEMPS_ONLY);
  other.args()[0] = &x;
  other.args()[1] = &x;
  CHECK(other.Run() && other.result0() == 20);
}

void Moves() {
  AddComp add;
  add.arg0() = 5;
  const int* const where = add.arg0_data();
  AddComp moved = std::move(add);
  CHECK(moved.arg0_data() == where && moved.Run() && moved.result0() == 5);
  AddComp assigned;
  assigned = std::move(moved);
  assigned.arg1() = 1;
  CHECK(assigned.Run() && assigned.result0() == 6);
  const std::unique_ptr<tensorflow::XlaCompiledCpuFunction> base(new AddComp(std::move(assigned)));
  CHECK(base->Run());
}

void NamesAndShapes() {
  foo::bar::MatMulAndAddComp muladd;
  for (int i = 0; i < 4; ++i) {
    muladd.arg_x_data()[i] = static_cast<float>(i + 1);
    muladd.arg_y(static_cast<std::size_t>(i) / 2, static_cast<std::size_t>(i) % 2) = static_cast<float>(i + 5);
  }
  CHECK(muladd.Run());
  CHECK(muladd.result_x_y_prod(0, 0) == 19 && muladd.result_x_y_prod(0, 1) == 22);
  CHECK(muladd.result0(1, 0) == 43 && muladd.result_x_y_prod_data()[3] == 50);
  CHECK(muladd.result_x_y_sum(1, 1) == 12);
  CHECK(muladd.HasNameIndices());
  CHECK(muladd.LookupArgIndex("y") == 1 && muladd.LookupArgIndex("") == -1 && muladd.LookupArgIndex("z") == -1);
  CHECK(muladd.LookupResultIndex("x_y_sum") == 1 && std::string(muladd.GetResultName(0)) == "x_y_prod");
  CHECK(muladd.GetResultName(2) == nullptr && muladd.GetArgName(-1) == nullptr);
  const xla::ProgramShapeProto* shape = muladd.ProgramShape();
  CHECK(shape != nullptr && shape->parameters_size() == 2 && shape->parameter_names(1) == "y");
  CHECK(shape->parameters(0).element_type() == xla::F32 && shape->parameters(0).dimensions_size() == 2);
  CHECK(shape->result().element_type() == xla::TUPLE && shape->result().tuple_shapes_size() == 2);
  std::int64_t elements = 1;
  for (const std::int64_t size : shape->result().tuple_shapes(1).dimensions()) elements *= size;
  CHECK(elements == 4);
  CHECK(muladd.hlo_profiling_enabled() && muladd.hlo_profile_printer_data().profile_counters_size() == 2);
  const xla::HloProfilePrinterData& profile = muladd.hlo_profile_printer_data();
  CHECK(std::string(profile.counter_name(1)) == "%dot.1" && profile.instruction_info(1).flops == 16);
  const std::int64_t cycles[] = {4000, 3000};
  const std::string table = xla::PrintHloProfile(profile, cycles, 2.0);
  CHECK(table.find("Execution profile for computation: (2 us @ f_nom)\n") == 0);
  CHECK(table.find("           4000 cycles (100.% 100\xce\xa3) ::          2.0 usec ::") != std::string::npos);
  CHECK(table.find("           3000 cycles (75.00% 75\xce\xa3) ::          1.5 usec ::       10.67MFLOP/s ::") !=
        std::string::npos);
  CHECK(table.find(":: %dot.1 = f32[2,2] dot(%x, %y), metadata={op_name=\"x\"}\n") != std::string::npos);
  CHECK(muladd.profile_counters()[0] == 1 && muladd.profile_counters()[1] == 0);
}

void Variables() {
  ns::Train train;
  static_assert(ns::Train::kNumArgs == 4 && ns::Train::kNumResults == 3 && ns::Train::kNumVariables == 3, "counts");
  const float other[3] = {1, 2, 3};
  train.set_var_layer_kernel_data(other);
  float kernel[3] = {10, 10, 10};
  train.set_var_layer_kernel_2_data(kernel);
  train.arg_step_size() = 2;
  CHECK(train.Run());
  CHECK(kernel[0] == 8 && kernel[2] == 4 && train.var_layer_kernel_2(2) == 4);
  CHECK(train.results()[1] == kernel && train.result_data(2) == train.var_layer_kernel_3_data());
  CHECK(train.var_layer_kernel_3() == 0.5f);
  CHECK(train.Run() && kernel[2] == -2 && train.var_layer_kernel_3() == 1.0f);
  // The persistent part of the temps survives; the rest was overwritten.
  CHECK(train.result_class() == 2);
  train.arg0() = -1;
  CHECK(!train.Run());
  CHECK(train.error_msg() == "the step is negative");
  train.arg0() = 0;
  CHECK(train.Run() && train.error_msg().empty());
  CHECK(train.LookupVariableIndex("layer_kernel") == 2 && train.LookupVariableIndex("layer:kernel") == 3);
  CHECK(train.LookupArgIndex("layer_kernel") == -1 && train.LookupArgIndex("step/size") == 0);
  CHECK(std::string(train.GetVariableName(0)) == "layer/kernel");
  ns::Train another;
  CHECK(another.Run() && another.result_class() == 1);
}

void AllTypes() {
  Types types;
  CHECK(types.arg_empty_count() == 0 && types.arg_empty_size() == 0);
  CHECK(types.arg_scalar() == 0.0);
  types.arg_data_2(1, 2, 3) = 7;
  CHECK(types.arg_data_2_data()[23] == 7 && types.arg_data_2_count() == 24 && types.arg_data_2_size() == 96);
  types.arg_pred(1) = true;
  types.arg_s64(0) = std::numeric_limits<std::int64_t>::min();
  types.arg_bf16(0) = tfcompile::FloatToBFloat16(1.5f);
  types.arg_c64(1) = {2.0f, -3.0f};
  CHECK(types.Run());
  CHECK(tfcompile::BFloat16ToFloat(types.result_bf16(0)) == 1.5f);
  CHECK(types.result_c64(1).imag == -3.0f);
  const auto* view = reinterpret_cast<const std::complex<float>*>(types.result_c64_data());
  CHECK(view[1] == std::complex<float>(2.0f, -3.0f));
  CHECK(types.ProgramShape()->parameters_size() == 35 && types.ProgramShape()->parameters(33).dimensions(1) == 0);
}

// Compares every half with arithmetic on its fields, and tests rounding of values between halves.
void Halves() {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const std::uint16_t half = static_cast<std::uint16_t>(bits);
    const float value = tfcompile::HalfToFloat(half);
    const int exponent = static_cast<int>(bits >> 10) & 31;
    const double fraction = static_cast<double>(bits & 1023);
    if (exponent == 31) {
      CHECK(fraction == 0 ? value == (bits >> 15 ? -1 : 1) * std::numeric_limits<float>::infinity() : value != value);
      if (fraction != 0) {
        const std::uint16_t back = tfcompile::FloatToHalf(value);
        CHECK((back & 0x7c00) == 0x7c00 && (back & 0x3ff) != 0);
        continue;
      }
    } else {
      double expected = exponent == 0 ? fraction / 1024 : 1 + fraction / 1024;
      for (int e = exponent == 0 ? 1 : exponent; e < 15; ++e) expected /= 2;
      for (int e = exponent; e > 15; --e) expected *= 2;
      CHECK(static_cast<double>(value) == (bits >> 15 ? -expected : expected));
      // A value halfway to the next half rounds to even, and a slightly larger one rounds up.
      if (exponent < 30 && (bits >> 15) == 0) {
        const float next = tfcompile::HalfToFloat(static_cast<std::uint16_t>(bits + 1));
        const float middle = (value + next) / 2;
        CHECK(tfcompile::FloatToHalf(middle) == (bits % 2 == 0 ? bits : bits + 1));
        CHECK(tfcompile::FloatToHalf((middle + next) / 2) == bits + 1);
      }
    }
    CHECK(tfcompile::FloatToHalf(value) == half);
  }
  CHECK(tfcompile::FloatToHalf(65519.0f) == 0x7bff && tfcompile::FloatToHalf(65520.0f) == 0x7c00);
  CHECK(tfcompile::FloatToBFloat16(1.00390625f) == 0x3f80 && tfcompile::FloatToBFloat16(1.01171875f) == 0x3f82);
  CHECK(tfcompile::FloatToBFloat16(-std::numeric_limits<float>::infinity()) == 0xff80);
}

}  // namespace

int main() {
  Add();
  MemoryOfTheCaller();
  Moves();
  NamesAndShapes();
  Variables();
  AllTypes();
  Halves();
  CHECK(SecondUnit());
  return 0;
}
