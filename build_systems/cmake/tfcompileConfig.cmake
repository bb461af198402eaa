# find_package(tfcompile): the compiler, the headers that generated ones include, and tf_library().
#
#   TFCOMPILE_EXECUTABLE   the tool; beside this file in an installation, else from PATH
#   tfcompile::runtime     the headers, for targets that name one of them without a library of ours
#   tf_library(...)        a compiled model as a library; see below
#
# CMake 3.20 or newer, which reads the list of files that a build has read (DEPFILE) with every generator.

if(CMAKE_VERSION VERSION_LESS 3.20)
  set(tfcompile_FOUND FALSE)
  set(tfcompile_NOT_FOUND_MESSAGE "tfcompile needs CMake 3.20 or newer")
  return()
endif()

include(CMakeFindDependencyMacro)
find_dependency(Threads)

get_filename_component(_tfcompile_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
# The tool runs on the build machine, also if libraries are searched elsewhere.
find_program(TFCOMPILE_EXECUTABLE tfcompile HINTS "${_tfcompile_prefix}/bin" NO_CMAKE_FIND_ROOT_PATH
  DOC "the tfcompile tool")
if(NOT TFCOMPILE_EXECUTABLE)
  set(tfcompile_FOUND FALSE)
  set(tfcompile_NOT_FOUND_MESSAGE
    "cannot find tfcompile in ${_tfcompile_prefix}/bin or PATH: set TFCOMPILE_EXECUTABLE")
  return()
endif()
set(TFCOMPILE_EXECUTABLE "${TFCOMPILE_EXECUTABLE}" CACHE FILEPATH "the tfcompile tool")

if(NOT TARGET tfcompile::runtime)
  add_library(tfcompile::runtime INTERFACE IMPORTED)
  set_target_properties(tfcompile::runtime PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${_tfcompile_prefix}/include")
  target_link_libraries(tfcompile::runtime INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
  if(CMAKE_CXX_COMPILER_LOADED)
    target_compile_features(tfcompile::runtime INTERFACE cxx_std_17)
  endif()
endif()
unset(_tfcompile_prefix)

# Returns the flags for the target machine. Empty for native builds, because the tool's default
# generates code for several processors of the machine.
function(_tfcompile_target_flags out)
  set(triple "${TFCOMPILE_TARGET_TRIPLE}")
  if(NOT triple AND ANDROID)
    set(machines "armeabi-v7a=armv7a" "arm64-v8a=aarch64" "x86=i686" "x86_64=x86_64" "riscv64=riscv64")
    foreach(machine IN LISTS machines)
      if(machine MATCHES "^${CMAKE_ANDROID_ARCH_ABI}=(.*)$" OR machine MATCHES "^${ANDROID_ABI}=(.*)$")
        set(triple "${CMAKE_MATCH_1}-linux-android")
      endif()
    endforeach()
    string(REPLACE "armv7a-linux-android" "armv7a-linux-androideabi" triple "${triple}")
  endif()
  if(NOT triple AND APPLE AND CMAKE_OSX_ARCHITECTURES)
    list(LENGTH CMAKE_OSX_ARCHITECTURES count)
    if(count GREATER 1)
      message(FATAL_ERROR "tf_library: expected one architecture in CMAKE_OSX_ARCHITECTURES, got ${count}: "
        "build each separately and join them with lipo")
    endif()
    if(CMAKE_SYSTEM_NAME STREQUAL "iOS")
      set(triple "${CMAKE_OSX_ARCHITECTURES}-apple-ios")
    else()
      set(triple "${CMAKE_OSX_ARCHITECTURES}-apple-macosx")
    endif()
  endif()
  if(NOT triple AND CMAKE_CROSSCOMPILING)
    foreach(said IN ITEMS CMAKE_CXX_COMPILER_TARGET CMAKE_C_COMPILER_TARGET
        CMAKE_CXX_LIBRARY_ARCHITECTURE CMAKE_C_LIBRARY_ARCHITECTURE)
      if(NOT triple AND ${said})
        set(triple "${${said}}")
      endif()
    endforeach()
    foreach(compiler IN ITEMS "${CMAKE_CXX_COMPILER}" "${CMAKE_C_COMPILER}")
      if(NOT triple AND compiler)
        execute_process(COMMAND "${compiler}" -dumpmachine OUTPUT_VARIABLE triple ERROR_QUIET
          OUTPUT_STRIP_TRAILING_WHITESPACE)
      endif()
    endforeach()
    if(NOT triple)
      message(FATAL_ERROR "tf_library: cannot determine the target machine: "
        "set TFCOMPILE_TARGET_TRIPLE to its LLVM triple in the toolchain file")
    endif()
  endif()
  set(flags "")
  if(triple)
    list(APPEND flags "--target-triple=${triple}")
  endif()
  if(TFCOMPILE_TARGET_CPU)
    list(APPEND flags "--target-cpu=${TFCOMPILE_TARGET_CPU}")
  endif()
  if(TFCOMPILE_TARGET_FEATURES)
    list(APPEND flags "--target-features=${TFCOMPILE_TARGET_FEATURES}")
  endif()
  set(${out} "${flags}" PARENT_SCOPE)
endfunction()

# tf_library(NAME <target> GRAPH <file> | SAVED_MODEL <directory> [CONFIG <file>]
#            [CPP_CLASS [<ns>::]<Class>] [FREEZE_CHECKPOINT <prefix>] [TEST] [BENCHMARK]
#            [CONSTANTS_FILE] [FLAGS <flag>...] [DEPENDS <file>...])
#
# Compiles a model and defines a static library <target> with the object. Targets that link to it can
# include <target>.h. Omitted arguments are inferred as by `tfcompile build`. TEST adds <target>_test
# to the project's tests, and BENCHMARK adds the program <target>_benchmark. CONSTANTS_FILE stores the
# weights in a file, whose path is the target's property TFCOMPILE_CONSTANTS_FILE. FLAGS are further
# flags of `tfcompile build`. DEPENDS are files or targets that generate the model. The target machine
# is that of the project's compilers, or TFCOMPILE_TARGET_TRIPLE, _CPU, and _FEATURES.
function(tf_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "TEST;BENCHMARK;CONSTANTS_FILE"
    "NAME;GRAPH;SAVED_MODEL;CONFIG;CPP_CLASS;FREEZE_CHECKPOINT" "FLAGS;DEPENDS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tf_library: unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_NAME)
    message(FATAL_ERROR "tf_library: missing NAME of the target")
  endif()
  if((arg_GRAPH AND arg_SAVED_MODEL) OR NOT (arg_GRAPH OR arg_SAVED_MODEL))
    message(FATAL_ERROR "tf_library(${arg_NAME}): give either GRAPH, a file, or SAVED_MODEL, a directory")
  endif()

  set(model "${arg_GRAPH}${arg_SAVED_MODEL}")
  get_filename_component(model "${model}" ABSOLUTE)
  string(MAKE_C_IDENTIFIER "${arg_NAME}" symbol)
  set(directory "${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME}_tfcompile")
  _tfcompile_target_flags(flags)
  set(inputs "")
  if(arg_SAVED_MODEL)
    if(EXISTS "${model}/saved_model.pbtxt")
      list(APPEND inputs "${model}/saved_model.pbtxt")
    else()
      list(APPEND inputs "${model}/saved_model.pb")
    endif()
  else()
    list(APPEND inputs "${model}")
  endif()
  if(arg_CONFIG)
    get_filename_component(config "${arg_CONFIG}" ABSOLUTE)
    list(APPEND inputs "${config}")
    list(APPEND flags "--config=${config}")
  endif()
  if(arg_CPP_CLASS)
    list(APPEND flags "--class=${arg_CPP_CLASS}")
  endif()
  if(arg_FREEZE_CHECKPOINT)
    get_filename_component(checkpoint "${arg_FREEZE_CHECKPOINT}" ABSOLUTE)
    list(APPEND flags "--checkpoint=${checkpoint}")
  endif()

  set(suffix o)
  if("${flags}" MATCHES "--target-triple=[^;]*(windows|mingw)" OR (WIN32 AND NOT "${flags}" MATCHES "--target-triple="))
    set(suffix obj)
  endif()
  set(object "${directory}/${symbol}.${suffix}")
  set(header "${directory}/${symbol}.h")
  # Unchanged outputs keep their timestamps. With Make, declared outputs would be touched, so these
  # are byproducts.
  set(byproducts "${header}")
  set(emit "obj,header")
  foreach(program IN ITEMS test benchmark)
    string(TOUPPER "${program}" wanted)
    if(arg_${wanted})
      set(emit "${emit},${program}")
      list(APPEND byproducts "${directory}/${symbol}_${program}.c")
    endif()
  endforeach()
  if(arg_CONSTANTS_FILE)
    list(APPEND flags "--constants=file")
    list(APPEND byproducts "${directory}/${symbol}.constants")
  endif()

  add_custom_command(
    OUTPUT "${object}"
    BYPRODUCTS ${byproducts}
    COMMAND "${TFCOMPILE_EXECUTABLE}" build "${model}" "--name=${symbol}" "--output=${directory}" "--emit=${emit}"
      --no-runtime-headers --keep-unchanged --quiet "--depfile=${directory}/${symbol}.d" ${flags} ${arg_FLAGS}
    DEPENDS "${TFCOMPILE_EXECUTABLE}" ${inputs} ${arg_DEPENDS}
    DEPFILE "${directory}/${symbol}.d"
    COMMENT "Compiling ${arg_NAME} with tfcompile"
    VERBATIM)

  # The linker language is not determined by an object. Uses C if the project enables it, for pure C
  # programs.
  set(language CXX)
  if(CMAKE_C_COMPILER_LOADED)
    set(language C)
  endif()
  set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  add_library(${arg_NAME} STATIC "${object}" "${header}")
  set_target_properties(${arg_NAME} PROPERTIES LINKER_LANGUAGE ${language} PUBLIC_HEADER "${header}")
  target_include_directories(${arg_NAME} INTERFACE "$<BUILD_INTERFACE:${directory}>" "$<INSTALL_INTERFACE:include>")
  target_link_libraries(${arg_NAME} INTERFACE tfcompile::runtime)
  set(constants "")
  if(arg_CONSTANTS_FILE)
    set_target_properties(${arg_NAME} PROPERTIES TFCOMPILE_CONSTANTS_FILE "${directory}/${symbol}.constants")
    set(constants "--constants=${directory}/${symbol}.constants")
  endif()

  foreach(program IN ITEMS test benchmark)
    string(TOUPPER "${program}" wanted)
    if(arg_${wanted})
      set(source "${directory}/${symbol}_${program}.c")
      set_source_files_properties("${source}" PROPERTIES LANGUAGE ${language})
      add_executable(${arg_NAME}_${program} "${source}")
      target_link_libraries(${arg_NAME}_${program} PRIVATE ${arg_NAME})
    endif()
  endforeach()
  if(arg_TEST)
    add_test(NAME ${arg_NAME}_test COMMAND ${arg_NAME}_test ${constants})
  endif()
endfunction()
