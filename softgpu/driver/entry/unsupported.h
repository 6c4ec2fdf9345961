// The part of the driver's symbol table that does not depend on signatures.
#pragma once

#include <string_view>

namespace softgpu {

struct Resolution {
  enum class Outcome { kUnknownName, kVersionTooOld, kFound };
  Outcome outcome = Outcome::kUnknownName;
  void* address = nullptr;
};

// The symbol that `name` meant in CUDA `version` (13000 is 13.0); with `per_thread` the form for the per-thread default
// stream where there is one.
Resolution resolve_symbol(std::string_view name, int version, bool per_thread);

// Counts a call of an entry point that is not implemented. Returns CUDA_ERROR_NOT_SUPPORTED; with $SOFTGPU_LOG the first
// call of each is reported on stderr.
int count_unsupported(const char* symbol);

// Calls of entry points that are not implemented, so far.
unsigned long unsupported_calls();

}  // namespace softgpu
