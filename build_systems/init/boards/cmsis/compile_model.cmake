# Compiles the model to OBJECT, with its header beside it, for the processor TARGET. The project
# calls this script.
find_program(TFCOMPILE_EXECUTABLE tfcompile HINTS "@PREFIX@/bin" REQUIRED)
get_filename_component(directory "${OBJECT}" DIRECTORY)
execute_process(
  COMMAND "${TFCOMPILE_EXECUTABLE}" build "@MODEL@" @CONFIG@ --name=@NAME@ --target=${TARGET}
    --emit=obj,c-header --keep-unchanged --quiet "--output=${directory}"
  WORKING_DIRECTORY "${CMAKE_CURRENT_LIST_DIR}"
  RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "tfcompile cannot compile the model")
endif()
