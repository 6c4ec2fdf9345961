// Where a function's addresses are fenced: behind each definition of the register, or in front of its uses.
//
// Each address register %rd5 gets a companion that holds nothing but fenced addresses, in which accesses are made. A
// loop that steps a pointer and reads [%rd5], [%rd5+4], ... needs one fence per round either way; a pointer computed
// before the loop and used inside is fenced before it, once. The plan compares both by a static estimate in which a
// loop's body counts eight times.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/fence/fence.h"
#include "gpu/fence/layout.h"
#include "gpu/fence/ptx.h"

namespace fairlead::fence {

struct AddressPlan {
  enum class Where : std::uint8_t { kNowhere, kAtUse, kAtDefinition };
  std::vector<Where> where;       // by register
  std::vector<bool> needs_start;  // at a definition only: a use may be reached without one, so the function's entry
                                  // gives the companion an address of the range
  std::vector<int> regions;       // by item: items of one region run in their order once the first one runs
};

// The register of a global address that is fenced in a companion, or -1.
int companion_base(const Instruction& instruction, const Function& function, const FenceOptions& options,
                   bool consts_are_placed);
// Behind which a fence may be due.
std::vector<int> registers_written(const Instruction& instruction);
// Whether `address` may be added to a fenced register: within the guard zone, vectors and cache lines included.
bool is_within_guard(std::int64_t offset, const FenceOptions& options);

AddressPlan plan_addresses(const Function& function, const Layout& layout, const FenceOptions& options);

}  // namespace fairlead::fence
