# add_model(<target> C | <flag>...): compiles the model and links it to a target.
#
# The flags of `tfcompile build` select the processor. With C, the model is C source, which the
# project's compiler compiles.

find_program(TFCOMPILE_EXECUTABLE tfcompile HINTS "@PREFIX@/bin" NO_CMAKE_FIND_ROOT_PATH REQUIRED
  DOC "the tfcompile tool")

set(MODEL_DIRECTORY "${CMAKE_CURRENT_LIST_DIR}")

function(add_model target)
  set(directory "${CMAKE_CURRENT_BINARY_DIR}/@NAME@_model")
  set(flags ${ARGN})
  if("${flags}" STREQUAL "C")
    set(flags --emit=c,c-header --c-vectors=none)
    set(object "${directory}/@NAME@.c")
    set_source_files_properties("${object}" PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=off")
  else()
    list(APPEND flags --emit=obj,c-header)
    set(object "${directory}/@NAME@.o")
    set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  endif()
  add_custom_command(
    OUTPUT "${object}"
    BYPRODUCTS "${directory}/@NAME@_c.h"
    COMMAND "${TFCOMPILE_EXECUTABLE}" build "${MODEL_DIRECTORY}/@MODEL@" @CONFIG@ --name=@NAME@
      "--output=${directory}" --keep-unchanged --quiet "--depfile=${directory}/@NAME@.d" ${flags}
    DEPENDS "${TFCOMPILE_EXECUTABLE}"
    DEPFILE "${directory}/@NAME@.d"
    COMMENT "Compiling @NAME@ with tfcompile"
    VERBATIM)
  # The header exists before sources that include it are compiled.
  add_custom_target(@NAME@_model DEPENDS "${object}")
  add_dependencies(${target} @NAME@_model)
  target_sources(${target} PRIVATE "${object}")
  target_include_directories(${target} PRIVATE "${directory}")
endfunction()
