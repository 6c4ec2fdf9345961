// Operands that name no memory: registers, numbers, special registers, and lists of them. Whatever else an instruction has must
// be judged by the rule of its family.
//
//   add.u32 %r1, %r2, -1;      plain      mov.u64 %rd1, table;      is not: `table` is an address
#pragma once

#include <vector>

#include "gpu/fence/ptx.h"

namespace fairlead::fence {

// Why the first that is not plain is none.
Status are_plain(const std::vector<Operand>& operands);
// Likewise, but for operands that are addresses, which the caller judges.
Status are_plain_beside_addresses(const std::vector<Operand>& operands);
Status is_plain(const Operand& operand);

}  // namespace fairlead::fence
