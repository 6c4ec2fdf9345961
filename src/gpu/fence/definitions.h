// What a function may read before it has written it: registers, the carry, results. PTX leaves such a value undefined; on
// hardware it is what the last kernel left there, which may have been another tenant's.
//
// A register is written first if every way from the function's entry to each of its reads has an instruction that writes
// it. One under a predicate may leave it as it was, so it counts as a read. Conservative: what may be read first is named,
// and where the search takes too long more than that. Near linear in the function's length. Pure. Threads: none of its own.
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/fence/ptx.h"

namespace fairlead::fence {

struct ReadFirst {
  std::vector<int> registers;  // of Function::registers, in their order
  bool carry = false;          // of addc, subc, madc
  // Results, by their index in Function::variables, of which a return may give back bytes that nothing was stored to.
  std::vector<int> results;
};

ReadFirst read_before_written(const Function& function);

}  // namespace fairlead::fence
