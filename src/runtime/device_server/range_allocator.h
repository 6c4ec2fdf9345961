// Which parts of a range are free: best fit, neighbours merged. Of addresses it knows nothing; sizes and offsets are
// multiples of kUnit.
//
// Threads: not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace fairlead {

class RangeAllocator {
 public:
  static constexpr std::uint64_t kUnit = 512;  // what textures and wide loads want at most
  static constexpr std::uint64_t round_up(std::uint64_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

  void grow(std::uint64_t bytes);    // the range, at its end
  void shrink(std::uint64_t bytes);  // the same way; REQUIRES: at most free_at_end()
  // The smallest free part that holds it, its beginning.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes);
  void release(std::uint64_t offset, std::uint64_t bytes);  // REQUIRES: allocated as such
  // Everything below `used` is taken, everything above is free.
  void reset(std::uint64_t used);

  std::uint64_t size() const { return size_; }
  std::uint64_t free_at_end() const;

 private:
  void add(std::uint64_t offset, std::uint64_t bytes);
  void remove(std::map<std::uint64_t, std::uint64_t>::iterator part);

  std::uint64_t size_ = 0;
  std::map<std::uint64_t, std::uint64_t> by_offset_;           // of free parts, to their sizes
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  // size, offset
};

}  // namespace fairlead
