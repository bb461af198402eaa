// The functions of runtime.c that stand for those of a C library.
#pragma once
int printf(const char* format, ...);
