// The constants of a module as rows. Rows of equal constants are shared by the whole module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "softgpu/ptx/program.h"

namespace softgpu::ptx {

class ConstantPool {
 public:
  // The operand of a row whose elements are the lowest `bytes` of `bits`.
  std::int32_t value(std::uint64_t bits, std::size_t bytes);
  std::int32_t predicate(bool value);
  // Lays the rows out, where operands expect them.
  void store(Program& program) const;

 private:
  std::int32_t reserve(std::size_t bytes);

  std::map<std::pair<std::uint64_t, std::size_t>, std::int32_t> rows_;  // (bits, bytes; 0: a predicate) -> operand
  std::size_t used_ = 0;
};

}  // namespace softgpu::ptx
