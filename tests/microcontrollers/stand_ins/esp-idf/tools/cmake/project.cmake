# Stand-in for ESP-IDF: reads the component twice, first as a script for its requirements, and links
# it to the program.
include("${CMAKE_CURRENT_LIST_DIR}/../../../program.cmake")
stand_in_configuration("${CMAKE_CURRENT_SOURCE_DIR}/sdkconfig.defaults" "${CMAKE_BINARY_DIR}/config/sdkconfig.h")

if(CMAKE_SCRIPT_MODE_FILE)
  message(FATAL_ERROR "project.cmake is not for scripts")
endif()
file(WRITE "${CMAKE_BINARY_DIR}/expand.cmake"
  "macro(idf_component_register)\n  message(\"registered\")\n  return()\nendmacro()\ninclude(\"${CMAKE_CURRENT_SOURCE_DIR}/main/CMakeLists.txt\")\n")
execute_process(COMMAND "${CMAKE_COMMAND}" -P "${CMAKE_BINARY_DIR}/expand.cmake" ERROR_VARIABLE output RESULT_VARIABLE status)
if(NOT status EQUAL 0 OR NOT output MATCHES "^registered")
  message(FATAL_ERROR "the component does not register itself first: ${output}")
endif()

function(idf_component_register)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "SRCS;INCLUDE_DIRS;REQUIRES")
  add_library(__idf_main STATIC ${arg_SRCS})
  stand_in_program(__idf_main app_main)
  target_include_directories(__idf_main PRIVATE "${CMAKE_BINARY_DIR}/config")
  set(COMPONENT_LIB __idf_main PARENT_SCOPE)
endfunction()

macro(project name)
  _project(${name} LANGUAGES C CXX ASM)
  file(WRITE "${CMAKE_BINARY_DIR}/start.c" "extern void app_main(void);\nvoid start_task(void) { app_main(); }\n")
  add_executable(${name}.elf "${CMAKE_BINARY_DIR}/start.c")
  stand_in_program(${name}.elf start_task)
  add_subdirectory(main)
  target_link_libraries(${name}.elf PRIVATE __idf_main)
endmacro()
