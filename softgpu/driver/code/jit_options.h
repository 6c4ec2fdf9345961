// The options of the compiler behind cuModuleLoadDataEx, cuLibraryLoadData and cuLink*: pairs of a name and a value,
// where some values are written back.
#pragma once

#include <cstdint>
#include <string>

#include "softgpu/driver/api.h"

namespace softgpu {

// Refers to the caller's arrays, which must outlive it.
class JitOptions {
 public:
  JitOptions() = default;
  JitOptions(unsigned count, CUjit_option* options, void** values)
      : count_(count), options_(options), values_(values) {}

  // INVALID_VALUE for options that do not exist or lack their value, NOT_SUPPORTED for those that change what the
  // program computes and are not implemented.
  CUresult check() const;
  // MAX_REGISTERS, 0 when not given.
  unsigned max_registers() const;
  bool verbose() const;
  // Writes the logs, their sizes and the time since `begin_ns` where the caller asked for them.
  void report(const std::string& error, const std::string& information, std::uint64_t begin_ns) const;

 private:
  // The index of the last mention of an option, or count_.
  unsigned find(CUjit_option wanted) const;
  void write_log(CUjit_option buffer, CUjit_option size, const std::string& text) const;

  unsigned count_ = 0;
  CUjit_option* options_ = nullptr;
  void** values_ = nullptr;
};

}  // namespace softgpu
