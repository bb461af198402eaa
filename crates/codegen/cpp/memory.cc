// Handles exhausted memory in LLVM, which would end the process with a signal.

#include <new>

#include "llvm/Support/ErrorHandling.h"

namespace {

void (*handle)(void) = nullptr;

void HandleBadAlloc(void*, char const*, bool) { handle(); }

}  // namespace

extern "C" {

// Sets the function to call if `operator new` or LLVM's own functions cannot allocate memory. It
// must end the process.
void tfcompile_on_exhausted_memory(void (*handler)(void)) {
  handle = handler;
  std::set_new_handler(handler);
  llvm::install_bad_alloc_error_handler(HandleBadAlloc, nullptr);
}

}  // extern "C"
