/* The start of a program without any library, on Linux: calls check() and exits with its result. */

#ifndef START_H_
#define START_H_

#ifdef __cplusplus
extern "C" {
#endif

int check(void);

#ifdef __cplusplus
}
#endif

#if defined(__x86_64__)
__asm__(
    ".globl _start\n"
    "_start:\n"
    "  xorl %ebp, %ebp\n"
    "  andq $-16, %rsp\n"
    "  call check\n"
    "  movl %eax, %edi\n"
    "  movl $60, %eax\n"
    "  syscall\n");
#elif defined(__aarch64__)
__asm__(
    ".globl _start\n"
    "_start:\n"
    "  bl check\n"
    "  mov x8, #93\n"
    "  svc #0\n");
#elif defined(__arm__)
__asm__(
    ".syntax unified\n"
    ".arm\n"
    ".globl _start\n"
    ".type _start, %function\n"
    "_start:\n"
    "  bl check\n"
    "  mov r7, #1\n"
    "  svc #0\n");
#elif defined(__riscv)
__asm__(
    ".globl _start\n"
    "_start:\n"
    ".option push\n"
    ".option norelax\n"
    "  la gp, __global_pointer$\n"
    ".option pop\n"
    "  call check\n"
    "  li a7, 93\n"
    "  ecall\n");
#endif

#endif /* START_H_ */
