# Includes the SDK before project() is called. The variable PICO_SDK_PATH, of CMake or of the
# environment, names its directory.
if(NOT PICO_SDK_PATH)
  set(PICO_SDK_PATH "$ENV{PICO_SDK_PATH}")
endif()
if(NOT EXISTS "${PICO_SDK_PATH}/pico_sdk_init.cmake")
  message(FATAL_ERROR "no Pico SDK in '${PICO_SDK_PATH}': set PICO_SDK_PATH to the directory of pico_sdk_init.cmake")
endif()
get_filename_component(PICO_SDK_PATH "${PICO_SDK_PATH}" ABSOLUTE)
set(PICO_SDK_PATH "${PICO_SDK_PATH}" CACHE PATH "directory of the Pico SDK" FORCE)
include("${PICO_SDK_PATH}/pico_sdk_init.cmake")
