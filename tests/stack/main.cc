// Runs a model on a thread with a small stack that is filled with a pattern before. Checks that
// Run() uses no more stack than the metadata states, and restores the machine's state: rounding
// mode, flushing of denormals, signals.
//
// STATED is the metadata's upper bound in bytes.

#include <pthread.h>
#include <signal.h>

#include <cfenv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "model.h"

namespace {

constexpr std::size_t kStack = 256 << 10;
// The frames of Run() itself and of memcpy, and the kernel's use of memory below a thread's frames.
constexpr std::size_t kCallers = 1024;

alignas(4096) unsigned char stack[kStack];

void Fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

// Control bits of floating-point arithmetic: rounding mode and treatment of denormal numbers.
std::uint64_t ControlBits() {
#if defined(__x86_64__)
  // The six low bits are sticky status flags that arithmetic sets.
  return _mm_getcsr() & ~0x3fu;
#elif defined(__aarch64__)
  std::uint64_t bits;
  __asm__ volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
#else
  return static_cast<std::uint64_t>(std::fegetround());
#endif
}

struct State {
  int rounding;
  std::uint64_t bits;
  sigset_t mask;
  void (*handlers[32])(int);
  int flags[32];
};

void Read(State* state) {
  std::memset(static_cast<void*>(state), 0, sizeof *state);
  state->rounding = std::fegetround();
  state->bits = ControlBits();
  pthread_sigmask(SIG_SETMASK, nullptr, &state->mask);
  for (int signal = 1; signal < 32; ++signal) {
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    state->handlers[signal] = action.sa_handler;
    state->flags[signal] = action.sa_flags;
  }
}

bool Same(const State& a, const State& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

std::unique_ptr<Model> object;
State before;
State after;
bool fine;

__attribute__((noinline)) void* Run(void*) {
  unsigned char here;
  unsigned char* volatile const top = &here;
  unsigned char* const end = top - 256;
  for (unsigned char volatile* at = stack; at < end; ++at) *at = 0xa5;
  fine = object->Run();
  const unsigned char* lowest = stack;
  while (lowest < end && *lowest == 0xa5) ++lowest;
  const std::size_t used = static_cast<std::size_t>(top - lowest);
  std::printf("%zu of %d bytes of stack\n", used, STATED);
  if (used > STATED + kCallers) Fail("Run() takes more stack than stated");
  return nullptr;
}

void RunOnSmallStack() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstack(&attributes, stack, kStack) != 0) Fail("no such stack");
  pthread_t thread;
  auto const body = [](void*) -> void* {
    Read(&before);
    Run(nullptr);
    Read(&after);
    return nullptr;
  };
  if (pthread_create(&thread, &attributes, body, nullptr) != 0) Fail("no thread");
  pthread_join(thread, nullptr);
  if (!fine) Fail("Run() failed");
  if (!Same(before, after)) Fail("Run() changed the machine's state");
}

}  // namespace

int main() {
  object = std::make_unique<Model>();
  for (int i = 0; i < static_cast<int>(Model::kNumArgs); ++i) {
    std::memset(object->arg_data(i), 0, static_cast<std::size_t>(Model::ArgSize(i)));
  }
  RunOnSmallStack();
  // The program's settings are also preserved. Threads inherit them.
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR1);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);  // flush results, take denormal operands for zero
#endif
  RunOnSmallStack();
  if (before.rounding != FE_UPWARD) Fail("the thread does not round upward");
}
