#include "softgpu/driver/code/managed_variable.h"

#include "softgpu/driver/memory/managed_memory.h"

namespace softgpu {

std::shared_ptr<const ManagedVariable> ManagedVariable::make(std::uint64_t bytes) {
  const std::uint64_t address = ManagedMemory::instance().allocate(nullptr, bytes, CU_MEM_ATTACH_GLOBAL);
  if (address == 0) return nullptr;
  return std::shared_ptr<const ManagedVariable>(new ManagedVariable(address, bytes));
}

ManagedVariable::~ManagedVariable() {
  ManagedMemory::instance().release(address_);
}

}  // namespace softgpu
