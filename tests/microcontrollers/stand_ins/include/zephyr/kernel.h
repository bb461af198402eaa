// Stand-in for a header of Zephyr.
#pragma once
int printf(const char* format, ...);
#define printk printf
