/* The start of a program without any library, on Linux on x86-64: calls check() and exits with its result. */

#ifndef START_H_
#define START_H_

#ifdef __cplusplus
extern "C" {
#endif

int check(void);

#ifdef __cplusplus
}
#endif

__asm__(
    ".globl _start\n"
    "_start:\n"
    "  xorl %ebp, %ebp\n"
    "  andq $-16, %rsp\n"
    "  call check\n"
    "  movl %eax, %edi\n"
    "  movl $60, %eax\n"
    "  syscall\n");

#endif /* START_H_ */
