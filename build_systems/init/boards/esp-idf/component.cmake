idf_component_register(SRCS main.c)

# An object for chips with RISC-V, and C source for those with Xtensa and with floats in registers.
include("${CMAKE_CURRENT_LIST_DIR}/../model.cmake")
if(CONFIG_IDF_TARGET_ARCH_RISCV AND NOT CONFIG_SOC_CPU_HAS_FPU)
  add_model(${COMPONENT_LIB} --target=esp32c3)
else()
  add_model(${COMPONENT_LIB} C)
endif()
