// Layout of the C++ classes with 64-bit addresses and libstdc++, as the first release had them.
// Libraries built with the headers of different releases share these classes within one program, so
// a change needs another name than tfcompile_v1 for their inline namespace.

#include <cstddef>

#include "tfcompile/constants_file.h"
#include "tfcompile/device_function.h"
#include "tfcompile/thread_pool.h"

using Function = ::tensorflow::tfcompile_v1::XlaCompiledCpuFunction;
using File = ::tensorflow::tfcompile_v1::ConstantsFileFunction;
using Device = ::tensorflow::tfcompile_v1::DeviceFunction<Function>;
using Constants = ::tfcompile::tfcompile_v1::Constants;
using ThreadPool = ::tfcompile::tfcompile_v1::ThreadPool;

#define AT(type, field, offset) static_assert(offsetof(type, field) == offset, #field)

AT(Function::StaticData, function, 0);
AT(Function::StaticData, constants, 8);
AT(Function::StaticData, constants_pointer, 16);
AT(Function::StaticData, args, 24);
AT(Function::StaticData, results, 32);
AT(Function::StaticData, variable_results, 40);
AT(Function::StaticData, num_args, 48);
AT(Function::StaticData, num_results, 52);
AT(Function::StaticData, num_variables, 56);
AT(Function::StaticData, temps_size, 64);
AT(Function::StaticData, persistent_temps_size, 72);
AT(Function::StaticData, scratch_size, 80);
AT(Function::StaticData, profile_counters_size, 88);
AT(Function::StaticData, arg_names, 96);
AT(Function::StaticData, variable_names, 104);
AT(Function::StaticData, result_names, 112);
AT(Function::StaticData, program_shape, 120);
AT(Function::StaticData, hlo_profile_printer_data, 128);
AT(Function::StaticData, num_dynamic_sizes, 136);
AT(Function::StaticData, named_dimensions, 144);
AT(Function::StaticData, num_named_dimensions, 152);

AT(Function::BufferInfo, size, 0);
AT(Function::BufferInfo, alignment, 8);

AT(Function::NamedDimension, arg, 0);
AT(Function::NamedDimension, min, 4);
AT(Function::NamedDimension, max, 8);
AT(Function::NamedDimension, error, 16);

static_assert(sizeof(Function) == 224, "size");
static_assert(sizeof(File) == 272, "size");
static_assert(sizeof(Constants) == 64, "size");
static_assert(sizeof(ThreadPool) == 512, "size");
static_assert(sizeof(Device) == 232, "size");
static_assert(sizeof(Function::StaticData) == 160, "size");
static_assert(sizeof(Function::BufferInfo) == 16, "size");
static_assert(sizeof(Function::NamedDimension) == 24, "size");

static_assert(TFCOMPILE_OLDEST_RUNTIME_VERSION <= 2, "the first release has headers of version 2");
