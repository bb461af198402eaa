// Access to LLVM's tables of processors and features, which its C interface does not expose.

#include <cstddef>

#include "llvm-c/TargetMachine.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/TargetParser/Triple.h"

extern "C" {

// Calls `visit` with the name of each processor (`features` is 0) or feature (1). Returns 0, or 1
// if the target has no tables.
int tfcompile_visit_subtarget_names(LLVMTargetRef target, char const* triple, int features,
                                    void (*visit)(void* data, char const* name), void* data) {
  auto const* llvm_target = reinterpret_cast<llvm::Target const*>(target);
  llvm::MCSubtargetInfo* info = llvm_target->createMCSubtargetInfo(llvm::Triple(triple), "", "");
  if (info == nullptr) return 1;
  if (features != 0) {
    for (auto const& feature : info->getAllProcessorFeatures()) visit(data, feature.Key);
  } else {
    for (auto const& processor : info->getAllProcessorDescriptions()) visit(data, processor.Key);
  }
  delete info;
  return 0;
}

}  // extern "C"
