#include "softgpu/ptx/decode/constant_pool.h"

#include <cstring>

namespace softgpu::ptx {
namespace {

constexpr std::size_t kPredicateBytes = sizeof(std::uint32_t);

}  // namespace

std::int32_t ConstantPool::reserve(std::size_t bytes) {
  used_ = align_up(used_ + bytes, kRowAlignment);
  return -static_cast<std::int32_t>(used_);
}

std::int32_t ConstantPool::value(std::uint64_t bits, std::size_t bytes) {
  if (bytes < 8) bits &= (std::uint64_t{1} << (8 * bytes)) - 1;
  const auto [entry, inserted] = rows_.try_emplace({bits, bytes}, 0);
  if (inserted) entry->second = reserve(bytes * kLanes);
  return entry->second;
}

std::int32_t ConstantPool::predicate(bool value) {
  const auto [entry, inserted] = rows_.try_emplace({value, 0}, 0);
  if (inserted) entry->second = reserve(kPredicateBytes);
  return entry->second;
}

void ConstantPool::store(Program& program) const {
  program.constants.resize(used_ + kRowAlignment);
  auto end = reinterpret_cast<std::uintptr_t>(program.constants.data()) + used_;
  std::byte* const aligned_end = reinterpret_cast<std::byte*>(align_up(end, kRowAlignment));
  for (const auto& [key, operand] : rows_) {
    const auto& [bits, bytes] = key;
    std::byte* row = aligned_end + operand;
    const std::uint32_t mask = bits != 0 ? ~0u : 0u;
    if (bytes == 0) std::memcpy(row, &mask, sizeof mask);
    for (std::size_t lane = 0; lane < kLanes && bytes != 0; ++lane) std::memcpy(row + lane * bytes, &bits, bytes);
  }
  program.constants_end = aligned_end;
}

}  // namespace softgpu::ptx
