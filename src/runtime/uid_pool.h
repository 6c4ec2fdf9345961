// Users of the host for instances, one each: what the kernel counts by user (pending signals, inotify, message queues, keys) is
// then an instance's own. A user that came back is given out again after all others, so that what it may have left has gone.
//
// Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

namespace fairlead {

class UidPool {
 public:
  // The last but one block of the range that Linux systems leave to containers (524288 to 1879048191); images have the last.
  static constexpr std::uint32_t kFirst = 1878917120, kCount = 65536;

  explicit UidPool(std::uint32_t first = kFirst, std::uint32_t count = kCount) : first_(first), count_(count) {}

  // One that nobody has; empty: all are taken.
  std::optional<std::uint32_t> take() {
    if (taken_.size() >= count_) return std::nullopt;
    while (!taken_.insert(first_ + next_).second) next_ = (next_ + 1) % count_;
    const std::uint32_t uid = first_ + next_;
    next_ = (next_ + 1) % count_;
    return uid;
  }
  // When the last process of it has ended. One that nobody has: no effect.
  void give_back(std::uint32_t uid) { taken_.erase(uid); }

  std::size_t taken() const { return taken_.size(); }

 private:
  const std::uint32_t first_, count_;
  std::uint32_t next_ = 0;
  std::set<std::uint32_t> taken_;
};

}  // namespace fairlead
