// Runs a command and lets one of its calls to the system fail, or ends it there. The calls that
// count are those on files below a directory: opening, reading, writing, renaming, removing, and
// so on, of all threads and child processes, in the order in which they happen.
//
//   inject DIRECTORY count LOG COMMAND...     only logs the calls, one a line: `write PATH`
//   inject DIRECTORY fail N LOG COMMAND...    call N fails: no space for writers, else EIO
//   inject DIRECTORY full N LOG COMMAND...    from call N on, all that need space fail
//   inject DIRECTORY locked N LOG COMMAND...  from call N on, all that change files fail with EROFS
//   inject DIRECTORY short N LOG COMMAND...   call N, a write, takes one byte; later writes fail
//   inject DIRECTORY kill N LOG COMMAND...    the command is killed before call N
//
// The exit status is that of the command, or 128 plus the signal that ended it; 125 if injecting
// is impossible here. A seccomp filter stops the command only at the calls in question, whether the
// C library makes them or not.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef __x86_64__
#error "only for x86-64"
#endif

// What a call does. NEEDS_SPACE also changes files.
enum Effect { READS, CHANGES, NEEDS_SPACE };

// Where a call names its file: in an argument with a descriptor, in one with a path below the
// current directory, or in one with a path after the descriptor of its directory.
enum Place { DESCRIPTOR, PATH, AT };

struct Call {
  long number;
  const char* name;
  enum Effect effect;
  enum Place place;
  int argument;
};

static const struct Call kCalls[] = {
    {SYS_read, "read", READS, DESCRIPTOR, 0},
    {SYS_pread64, "pread", READS, DESCRIPTOR, 0},
    {SYS_mmap, "mmap", READS, DESCRIPTOR, 4},
    {SYS_getdents64, "getdents", READS, DESCRIPTOR, 0},
    {SYS_write, "write", NEEDS_SPACE, DESCRIPTOR, 0},
    {SYS_pwrite64, "pwrite", NEEDS_SPACE, DESCRIPTOR, 0},
    {SYS_writev, "writev", NEEDS_SPACE, DESCRIPTOR, 0},
    {SYS_ftruncate, "ftruncate", NEEDS_SPACE, DESCRIPTOR, 0},
    {SYS_fallocate, "fallocate", NEEDS_SPACE, DESCRIPTOR, 0},
    {SYS_fsync, "fsync", NEEDS_SPACE, DESCRIPTOR, 0},
    {SYS_fdatasync, "fdatasync", NEEDS_SPACE, DESCRIPTOR, 0},
    {SYS_copy_file_range, "copy_file_range", NEEDS_SPACE, DESCRIPTOR, 2},
    {SYS_sendfile, "sendfile", NEEDS_SPACE, DESCRIPTOR, 0},
    {SYS_fchmod, "fchmod", CHANGES, DESCRIPTOR, 0},
    {SYS_open, "open", READS, PATH, 0},
    {SYS_openat, "open", READS, AT, 1},
    {SYS_creat, "creat", NEEDS_SPACE, PATH, 0},
    {SYS_mkdir, "mkdir", NEEDS_SPACE, PATH, 0},
    {SYS_mkdirat, "mkdir", NEEDS_SPACE, AT, 1},
    {SYS_rename, "rename", NEEDS_SPACE, PATH, 1},
    {SYS_renameat, "rename", NEEDS_SPACE, AT, 3},
    {SYS_renameat2, "rename", NEEDS_SPACE, AT, 3},
    {SYS_link, "link", NEEDS_SPACE, PATH, 1},
    {SYS_linkat, "link", NEEDS_SPACE, AT, 3},
    {SYS_symlink, "symlink", NEEDS_SPACE, PATH, 1},
    {SYS_symlinkat, "symlink", NEEDS_SPACE, AT, 2},
    {SYS_truncate, "truncate", NEEDS_SPACE, PATH, 0},
    {SYS_chmod, "chmod", CHANGES, PATH, 0},
    {SYS_fchmodat, "chmod", CHANGES, AT, 1},
    {SYS_unlink, "unlink", CHANGES, PATH, 0},
    {SYS_unlinkat, "unlink", CHANGES, AT, 1},
    {SYS_rmdir, "rmdir", CHANGES, PATH, 0},
    {SYS_utimensat, "utimens", CHANGES, AT, 1},
};
enum { kCallCount = sizeof kCalls / sizeof kCalls[0] };

static void fatal(const char* what) {
  perror(what);
  exit(125);
}

// Stops the process at the calls of the list.
static void filter(void) {
  struct sock_filter code[kCallCount + 6];
  int n = 0;
  code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
  code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, kCallCount + 1);
  code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (int i = 0; i < kCallCount; ++i) {
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)kCalls[i].number,
                                             (unsigned char)(kCallCount - i), 0);
  }
  code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
  const struct sock_fprog program = {(unsigned short)n, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fatal("inject: no_new_privs");
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) fatal("inject: seccomp");
}

static unsigned long long argument(const struct user_regs_struct* registers, int number) {
  const unsigned long long all[] = {registers->rdi, registers->rsi, registers->rdx,
                                    registers->r10, registers->r8,  registers->r9};
  return all[number];
}

// Reads a path from the memory of a process.
static void read_path(pid_t pid, unsigned long long address, char out[PATH_MAX]) {
  size_t length = 0;
  while (length < PATH_MAX - 1) {
    // Up to the end of the page, because the next one may not exist.
    size_t wanted = 4096 - (address + length) % 4096;
    if (wanted > PATH_MAX - 1 - length) wanted = PATH_MAX - 1 - length;
    const struct iovec to = {out + length, wanted};
    const struct iovec from = {(void*)(address + length), wanted};
    const ssize_t got = process_vm_readv(pid, &to, 1, &from, 1, 0);
    if (got <= 0) break;
    if (memchr(out + length, 0, (size_t)got) != NULL) return;
    length += (size_t)got;
  }
  out[length] = 0;
}

// Sets `out` to the file that a call is about, or to "" if it has none.
static void find_path(pid_t pid, const struct Call* call, const struct user_regs_struct* registers,
                      char out[2 * PATH_MAX]) {
  char link[64], path[PATH_MAX] = "";
  int descriptor = AT_FDCWD;
  if (call->place == DESCRIPTOR) {
    descriptor = (int)argument(registers, call->argument);
  } else {
    if (call->place == AT) descriptor = (int)argument(registers, call->argument - 1);
    if (argument(registers, call->argument) != 0) read_path(pid, argument(registers, call->argument), path);
    if (path[0] == '/') {
      strcpy(out, path);
      return;
    }
  }
  if (descriptor == AT_FDCWD) {
    snprintf(link, sizeof link, "/proc/%d/cwd", pid);
  } else {
    snprintf(link, sizeof link, "/proc/%d/fd/%d", pid, descriptor);
  }
  const ssize_t length = readlink(link, out, PATH_MAX - 1);
  out[length < 0 ? 0 : length] = 0;
  if (length >= 0 && path[0] != 0) {
    out[length] = '/';
    strcpy(out + length + 1, path);
  }
}

int main(int count, char** arguments) {
  int at = 1;
  if (count < 5) return 125;
  const char* directory = arguments[at++];
  const char* mode = arguments[at++];
  const long wanted = strcmp(mode, "count") == 0 ? -1 : atol(arguments[at++]);
  // Not inherited by the command.
  const int log = open(arguments[at++], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (log < 0) fatal("inject: the log");
  const pid_t child = fork();
  if (child < 0) fatal("inject: fork");
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) fatal("inject: ptrace");
    raise(SIGSTOP);
    filter();
    execvp(arguments[at], arguments + at);
    fatal("inject: exec");
  }
  int status;
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return 125;
  const long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                       PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SETOPTIONS, child, 0, options) != 0) fatal("inject: ptrace");
  ptrace(PTRACE_CONT, child, 0, 0);
  long number = 0;
  int result = 125;
  pid_t pid;
  while ((pid = waitpid(-1, &status, __WALL)) > 0) {
    if (!WIFSTOPPED(status)) {
      if (pid == child) result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      continue;
    }
    int signal = WSTOPSIG(status);
    const int event = status >> 16;
    if (event != 0) signal = 0;
    // New threads and processes begin with this signal.
    if (signal == SIGSTOP) signal = 0;
    struct user_regs_struct registers;
    if (event == PTRACE_EVENT_SECCOMP && ptrace(PTRACE_GETREGS, pid, 0, &registers) == 0) {
      const struct Call* call = kCalls;
      while (call->number != (long)registers.orig_rax) ++call;
      enum Effect effect = call->effect;
      const int flag = call->number == SYS_open ? 1 : 2;
      if (strcmp(call->name, "open") == 0 && (argument(&registers, flag) & O_ACCMODE) != O_RDONLY) effect = CHANGES;
      if (strcmp(call->name, "open") == 0 && (argument(&registers, flag) & O_CREAT) != 0) effect = NEEDS_SPACE;
      char path[2 * PATH_MAX] = "";
      const int is_anonymous = call->number == SYS_mmap && (argument(&registers, 3) & MAP_ANONYMOUS) != 0;
      if (!is_anonymous) find_path(pid, call, &registers, path);
      const size_t length = strlen(directory);
      if (strncmp(path, directory, length) == 0 && (path[length] == '/' || path[length] == 0)) {
        ++number;
        dprintf(log, "%s%s %s\n", call->name,
                strcmp(call->name, "open") == 0 && effect != READS ? "-for-writing" : "", path);
        int error = 0;
        if (strcmp(mode, "fail") == 0 && number == wanted) error = effect == NEEDS_SPACE ? ENOSPC : EIO;
        if (strcmp(mode, "full") == 0 && number >= wanted && effect == NEEDS_SPACE) error = ENOSPC;
        if (strcmp(mode, "locked") == 0 && number >= wanted && effect != READS && strstr(call->name, "write") == NULL) {
          error = EROFS;
        }
        if (strcmp(mode, "short") == 0 && call->number == SYS_write) {
          if (number == wanted && registers.rdx > 1) {
            registers.rdx = 1;
            ptrace(PTRACE_SETREGS, pid, 0, &registers);
          }
          if (number > wanted) error = ENOSPC;
        }
        if (strcmp(mode, "kill") == 0 && number == wanted) {
          kill(child, SIGKILL);
          if (pid != child) kill(pid, SIGKILL);
          continue;
        }
        if (error != 0) {
          registers.orig_rax = (unsigned long long)-1;
          registers.rax = (unsigned long long)-(long long)error;
          ptrace(PTRACE_SETREGS, pid, 0, &registers);
        }
      }
    }
    ptrace(PTRACE_CONT, pid, 0, signal);
  }
  return result;
}
