// Stand-in for a header of the Pico SDK.
#pragma once
static inline void stdio_init_all(void) {}
