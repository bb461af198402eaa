/* Runs the instructions of AMX on processors that do not have them: a handler of the signal for
 * illegal instructions emulates each one, as the Intel 64 and IA-32 Architectures Software
 * Developer's Manual, volume 2, describes it. If Linux does not let the process use the registers,
 * another handler grants its request in Linux's place. The process fails if it emulated nothing. */

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { ROWS = 16, ROW_BYTES = 64, TILES = 8, REQUEST = 0x1023, TILE_DATA = 18 };

/* Opcodes of the second map of VEX. */
enum { CONFIGURE = 0x49, MOVE = 0x4b, MULTIPLY_BF16 = 0x5c, MULTIPLY_BYTES = 0x5e };

static _Thread_local struct {
  unsigned char palette, start, reserved[14];
  uint16_t row_bytes[16];
  unsigned char rows[16];
} shapes;
static _Thread_local unsigned char tiles[TILES][ROWS][ROW_BYTES];
static unsigned long emulated;

static const int registers[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

struct operand {
  uint64_t address, stride;
};

static void fail(const char* what) {
  fprintf(stderr, "amx.c: %s\n", what);
  _exit(9);
}

static float wide(uint16_t bits) {
  uint32_t all = (uint32_t)bits << 16;
  float number;
  memcpy(&number, &all, sizeof number);
  return number;
}

/* Subnormal numbers count as zero. */
static float flushed(float number) {
  return fpclassify(number) == FP_SUBNORMAL ? copysignf(0, number) : number;
}

static void check_shapes(int sum, int left, int right) {
  if (shapes.palette != 1) fail("the registers have no shapes");
  if (shapes.row_bytes[left] != 4 * shapes.rows[right] || shapes.rows[sum] != shapes.rows[left] ||
      shapes.row_bytes[sum] != shapes.row_bytes[right]) {
    fail("the shapes of the factors and of the sums do not match");
  }
}

static void multiply_bytes(int sum, int left, int right, int left_is_signed, int right_is_signed) {
  int row, column, group, k;
  check_shapes(sum, left, right);
  for (row = 0; row < shapes.rows[sum]; ++row) {
    for (column = 0; column < shapes.row_bytes[sum] / 4; ++column) {
      uint32_t total;
      memcpy(&total, &tiles[sum][row][4 * column], 4);
      for (group = 0; group < shapes.rows[right]; ++group) {
        for (k = 0; k < 4; ++k) {
          int x = tiles[left][row][4 * group + k], y = tiles[right][group][4 * column + k];
          if (left_is_signed) x = (int8_t)x;
          if (right_is_signed) y = (int8_t)y;
          total += (uint32_t)(x * y);
        }
      }
      memcpy(&tiles[sum][row][4 * column], &total, 4);
    }
  }
}

static void multiply_bf16(int sum, int left, int right) {
  int row, column, group, k;
  check_shapes(sum, left, right);
  for (row = 0; row < shapes.rows[sum]; ++row) {
    for (column = 0; column < shapes.row_bytes[sum] / 4; ++column) {
      float total, parts[2] = {0, 0};
      memcpy(&total, &tiles[sum][row][4 * column], 4);
      for (group = 0; group < shapes.rows[right]; ++group) {
        for (k = 0; k < 2; ++k) {
          uint16_t x, y;
          memcpy(&x, &tiles[left][row][4 * group + 2 * k], 2);
          memcpy(&y, &tiles[right][group][4 * column + 2 * k], 2);
          parts[k] = flushed(fmaf(flushed(wide(x)), flushed(wide(y)), parts[k]));
        }
      }
      total = flushed(flushed(total) + flushed(parts[0] + parts[1]));
      memcpy(&tiles[sum][row][4 * column], &total, 4);
    }
  }
}

static void load(int tile, struct operand from) {
  int row;
  memset(tiles[tile], 0, sizeof tiles[tile]);
  for (row = 0; row < shapes.rows[tile]; ++row) {
    memcpy(tiles[tile][row], (const void*)(from.address + row * from.stride), shapes.row_bytes[tile]);
  }
}

static void store(int tile, struct operand to) {
  int row;
  for (row = 0; row < shapes.rows[tile]; ++row) {
    memcpy((void*)(to.address + row * to.stride), tiles[tile][row], shapes.row_bytes[tile]);
  }
}

static void illegal(int number, siginfo_t* information, void* context) {
  greg_t* values = ((ucontext_t*)context)->uc_mcontext.gregs;
  const unsigned char* code = (const unsigned char*)values[REG_RIP];
  const unsigned char* next = code + 5;
  int mode = code[4] >> 6, reg = code[4] >> 3 & 7, rm = code[4] & 7, prefix = code[2] & 3;
  int second = ~code[2] >> 3 & 15, is_relative = 0, base = -1;
  int index_high = !(code[1] & 0x40) << 3, base_high = !(code[1] & 0x20) << 3;
  struct operand memory = {0, 0};
  int32_t distance = 0;
  (void)number;
  (void)information;
  if (code[0] != 0xc4 || (code[1] & 0x1f) != 2 || code[2] & 0x84) fail("an illegal instruction");
  if (mode != 3) {
    if (rm == 4) {
      int index = (*next >> 3 & 7) | index_high, scale = *next >> 6;
      base = *next++ & 7;
      if (index != 4) memory.stride = (uint64_t)values[registers[index]] << scale;
      if (base == 5 && mode == 0) {
        base = -1;
        mode = 2;
      } else {
        base |= base_high;
      }
    } else if (rm == 5 && mode == 0) {
      is_relative = 1;
      mode = 2;
    } else {
      base = rm | base_high;
    }
    if (mode == 1) distance = (int8_t)*next++;
    if (mode == 2) {
      memcpy(&distance, next, 4);
      next += 4;
    }
    memory.address = (is_relative ? (uint64_t)next : 0) + (uint64_t)(int64_t)distance;
    if (base >= 0) memory.address += (uint64_t)values[registers[base]];
    mode = 0;
  }
  ++emulated;
  if (code[3] == CONFIGURE && mode == 0 && prefix == 0) {
    memcpy(&shapes, (const void*)memory.address, sizeof shapes);
    memset(tiles, 0, sizeof tiles);
  } else if (code[3] == CONFIGURE && mode == 3 && prefix == 0) {
    memset(&shapes, 0, sizeof shapes);
  } else if (code[3] == CONFIGURE && mode == 3 && prefix == 3) {
    memset(tiles[reg], 0, sizeof tiles[reg]);
  } else if (code[3] == MOVE && mode == 0 && prefix == 3) {
    load(reg, memory);
  } else if (code[3] == MOVE && mode == 0 && prefix == 2) {
    store(reg, memory);
  } else if (code[3] == MULTIPLY_BYTES && mode == 3) {
    /* The prefix says which factors have no signs. */
    multiply_bytes(reg, rm, second, prefix == 3 || prefix == 2, prefix == 3 || prefix == 1);
  } else if (code[3] == MULTIPLY_BF16 && mode == 3 && prefix == 2) {
    multiply_bf16(reg, rm, second);
  } else {
    fail("an unknown instruction");
  }
  values[REG_RIP] = (greg_t)next;
}

static void grant(int number, siginfo_t* information, void* context) {
  (void)number;
  (void)information;
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_RAX] = 0;
}

static void check(void) {
  if (emulated == 0) fail("no instruction was emulated");
}

static void handle(int number, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  if (sigaction(number, &action, NULL)) fail("sigaction");
}

__attribute__((constructor)) static void begin(void) {
  /* Traps arch_prctl with the request for the registers. */
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, REQUEST, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  if (syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0) return;
  handle(SIGILL, illegal);
  handle(SIGSYS, grant);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) fail("prctl");
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) fail("seccomp");
  atexit(check);
}
