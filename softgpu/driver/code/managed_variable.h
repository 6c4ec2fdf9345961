// The memory of a `.managed` variable: managed memory, at one address for the host and all devices. It goes with the last
// module that has it; the modules of a library in several contexts share their variables, by name.
//
// No context owns it: cuMemFree refuses it, CU_POINTER_ATTRIBUTE_CONTEXT is null and the device is the first one. Each
// takes whole pages of what a device holds, as every allocation of managed memory does.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace softgpu {

class ManagedVariable {
 public:
  // Zeroed; null when the system has no memory. Thread-safe.
  static std::shared_ptr<const ManagedVariable> make(std::uint64_t bytes);
  ~ManagedVariable();
  ManagedVariable(const ManagedVariable&) = delete;
  ManagedVariable& operator=(const ManagedVariable&) = delete;

  std::uint64_t address() const { return address_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  ManagedVariable(std::uint64_t address, std::uint64_t bytes) : address_(address), bytes_(bytes) {}

  const std::uint64_t address_;
  const std::uint64_t bytes_;
};

using ManagedVariables = std::map<std::string, std::shared_ptr<const ManagedVariable>, std::less<>>;

}  // namespace softgpu
