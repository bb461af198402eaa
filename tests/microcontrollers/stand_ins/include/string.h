// The functions of runtime.c that stand for those of a C library.
#pragma once
#include <stddef.h>
void* memcpy(void* to, const void* from, size_t count);
void* memset(void* to, int value, size_t count);
