// What a kernel does to each buffer it is given: read, write or both. By the role of the buffer, unless its argument
// says otherwise.
#pragma once

#include <variant>
#include <vector>

#include "model/kernel_task.h"

namespace fairlead {

struct BufferAccess {
  std::uint32_t buffer = 0;
  bool reads = false;
  bool writes = false;
};

inline bool may_be_written(BufferRole role) {
  return role != BufferRole::kInput && role != BufferRole::kConstant;
}

inline BufferAccess access_of(const BufferArgument& argument, BufferRole role) {
  using Access = BufferArgument::Access;
  const bool by_role = argument.access == Access::kByRole;
  return {.buffer = argument.buffer,
          .reads = argument.access != Access::kWrite,
          .writes = by_role ? may_be_written(role) : argument.access != Access::kRead};
}

// Calls visit(BufferArgument) for the kernel's buffers, those inside of literals included.
template <typename Visit>
void for_each_buffer_argument(const KernelLaunch& kernel, Visit visit) {
  for (const KernelArgument& argument : kernel.arguments) {
    if (const auto* buffer = std::get_if<BufferArgument>(&argument)) {
      visit(*buffer);
    } else {
      for (const auto& relocation : std::get<LiteralArgument>(argument).relocations) visit(relocation.target);
    }
  }
}

// Each buffer of the kernel once, ascending. REQUIRES: its buffers are of `task`.
std::vector<BufferAccess> buffer_accesses(const KernelTask& task, const KernelLaunch& kernel);

}  // namespace fairlead
