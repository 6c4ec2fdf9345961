// cuGetProcAddress: which symbol a name and a version mean. The table is symbols.tsv, one line per exported symbol: base
// name, suffix of its per-thread-default-stream form, CUDA version that introduced it, symbol.
//
// Example: cuMemAlloc for version 13000 is cuMemAlloc_v2 (3020); for 2000 it is cuMemAlloc; for 1000 the version is not
// sufficient. cuLaunchKernel with the per-thread flag is cuLaunchKernel_ptsz from 7000 on.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "softgpu/driver/entry/unsupported.h"

// The table needs every symbol's address and nobody's signature, so this file does not see the declarations.
extern "C" {
#define SYMBOL(base, suffix, since, symbol) __attribute__((visibility("default"))) int symbol();
#include "symbols.inc"
#undef SYMBOL
}

namespace softgpu {
namespace {

struct Symbol {
  std::string_view base;
  bool per_thread;
  int since;
  int (*address)();
};

// Sorted by base name; a base's lines are in ascending order of version.
const Symbol kSymbols[] = {
#define SYMBOL(base, suffix, since, symbol) {#base, sizeof(suffix) > 1, since, &symbol},
#include "symbols.inc"
#undef SYMBOL
};

}  // namespace

Resolution resolve_symbol(std::string_view name, int version, bool per_thread) {
  // The list is sorted by a locale that is not ours, so the names are looked for one by one: 636 short comparisons.
  Resolution resolution;
  bool best_per_thread = false;
  int best_since = 0;
  for (const Symbol& symbol : kSymbols) {
    if (symbol.base != name) continue;
    if (resolution.outcome == Resolution::Outcome::kUnknownName) {
      resolution.outcome = Resolution::Outcome::kVersionTooOld;
    }
    if (symbol.since > version || (symbol.per_thread && !per_thread)) continue;
    const bool better = symbol.per_thread != best_per_thread ? symbol.per_thread : symbol.since > best_since;
    if (resolution.address != nullptr && !better) continue;
    resolution = {Resolution::Outcome::kFound, reinterpret_cast<void*>(symbol.address)};
    best_per_thread = symbol.per_thread;
    best_since = symbol.since;
  }
  return resolution;
}

}  // namespace softgpu
