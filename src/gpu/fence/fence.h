// Address fencing of PTX: kernels of different tenants may share one process of a device because none of them can form
// an address outside its tenant's memory. In the manner of software fault isolation (Wahbe et al., SOSP 1993): each
// global access goes through
//
//   and.b64 a, address, bytes - 1;
//   or.b64  a, a, base;
//
// so an address that is out of range lands inside the tenant's own range. A kernel that keeps to its range computes what
// it always did. What cannot be fenced is refused (docs/explanation/fencing.md).
//
// Pure: text in, text out. Threads: none of its own. Determinism: the same text and options give the same text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fairlead::fence {

struct FenceOptions {
  // The tenant's memory: `bytes` is a power of two, at least 64 KiB, and `base` a multiple of it. From 4 GiB on only the
  // upper half of an address needs masking.
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  // Accesses may end this far outside the range, because [a+offset] is fenced as a and then added to. REQUIRES of the
  // caller: nothing of another tenant is mapped within guard_bytes of the range. 0 to 16 MiB.
  std::uint64_t guard_bytes = 64 << 10;
  // Where the caller puts FencedModule::variables, within the range; a multiple of 4096. The size of `variables` does
  // not depend on it: fence once with `base` to learn it.
  std::uint64_t variables_address = 0;
  // False: kernels may read what others left in registers, shared and local memory. To measure what clearing costs.
  bool clears_leftovers = true;
};

struct PlacedVariable {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

struct FunctionReport {
  std::string name;
  bool is_entry = false;
  std::size_t instructions = 0;  // before
  std::size_t added = 0;         // by the fence, to its body
  std::size_t prologue = 0;      // by the fence, before its body; a loop's counted once
  std::size_t accesses = 0;      // to global or generic memory
};

struct FencedModule {
  std::string ptx;
  // The module's variables (of .global, and of .const where their addresses are taken): initial bytes, to be copied to
  // variables_address before the first launch.
  std::vector<std::byte> variables;
  std::vector<PlacedVariable> placed;
  std::vector<FunctionReport> functions;
  std::vector<std::string> notes;  // what behaves otherwise than written: printf
};

// What fencing takes is bounded by what came in: time and memory are linear in the text, and the fenced text has at most
// most_fenced_bytes(). A module that would become larger is refused.
constexpr std::size_t most_fenced_bytes(std::size_t bytes) {
  return 4 * bytes + (std::size_t{64} << 10);
}

// The fenced module, or kInvalidArgument that names function, line, instruction and reason; kTooLarge names the bound.
// `ptx` may be anything: what is no PTX is refused.
Result<FencedModule> fence_ptx(std::string_view ptx, const FenceOptions& options);
// The size of FencedModule::variables, before it is known where they will be. Errors as above; a module that has a size may
// still be refused.
Result<std::uint64_t> measure_variables(std::string_view ptx, const FenceOptions& options);

}  // namespace fairlead::fence
