// Which copies must be over before somebody uses a part of device memory? Large copies are queued on one stream and small
// ones on another, so that a load of 2 GB does not stand before everybody's inputs. What orders them where it matters:
// whoever uses memory, a copy or a kernel, waits for the copies that touch the same addresses, and for no others.
//
// Idea. Copies on a stream are numbered; each is remembered with the addresses that it reads or writes until it is known to
// be over. Copies of one stream are over in their order, so what a use of some addresses has to wait for is one number
// per stream: the last copy there that overlaps them.
//
// Example, in MiB: the write-back of an output in [0, 4) is copy 3 of the small stream, then a load of [0, 64) is queued on
// the large stream: it waits for copy 3, and is copy 9 of its own stream. A call with scratch memory in [64, 80) waits for
// nothing; one that uses what was loaded into [0, 64) waits for copies 3 and 9.
//
// Time: none. Threads: not thread-safe; the device server's loop owns it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>

namespace fairlead {

enum class CopyLane : std::uint8_t { kSmall, kLarge };
inline constexpr std::size_t kCopyLanes = 2;
// From here on a copy takes longer than most kernels.
inline constexpr std::uint64_t kLargeCopyBytes = 8 << 20;
inline CopyLane copy_lane_of(std::uint64_t bytes) {
  return bytes < kLargeCopyBytes ? CopyLane::kSmall : CopyLane::kLarge;
}

// Copies of each stream up to and with these numbers; 0: none.
struct CopyPoint {
  std::array<std::uint64_t, kCopyLanes> last{};

  std::uint64_t& operator[](CopyLane lane) { return last[static_cast<std::size_t>(lane)]; }
  std::uint64_t operator[](CopyLane lane) const { return last[static_cast<std::size_t>(lane)]; }
  void include(const CopyPoint& other) {
    for (std::size_t i = 0; i < kCopyLanes; ++i) last[i] = std::max(last[i], other.last[i]);
  }
  bool reached_by(const CopyPoint& other) const {
    return std::equal(last.begin(), last.end(), other.last.begin(), std::less_equal<>());
  }
  bool operator==(const CopyPoint&) const = default;
};

class PendingCopies {
 public:
  // [begin, end) in one space of addresses.
  struct Part {
    std::uint64_t begin = 0, end = 0;
  };

  // One more on the lane, behind all that are there. Returns its number.
  std::uint64_t add(CopyLane lane, Part part) {
    const std::uint64_t number = ++queued_[lane];
    pending_[static_cast<std::size_t>(lane)].push_back({number, part});
    return number;
  }

  // What must be over before `part` is used.
  CopyPoint before(Part part) const {
    CopyPoint point;
    for (std::size_t lane = 0; lane < kCopyLanes; ++lane) {
      const auto& copies = pending_[lane];
      const auto found = std::find_if(copies.rbegin(), copies.rend(), [&](const Copy& copy) {
        return copy.part.begin < part.end && part.begin < copy.part.end;
      });
      if (found != copies.rend()) point.last[lane] = found->number;
    }
    return point;
  }

  void over(CopyLane lane, std::uint64_t upto) {
    auto& copies = pending_[static_cast<std::size_t>(lane)];
    while (!copies.empty() && copies.front().number <= upto) copies.pop_front();
    over_[lane] = std::max(over_[lane], upto);
  }

  const CopyPoint& queued() const { return queued_; }
  const CopyPoint& over() const { return over_; }
  bool none() const { return queued_ == over_; }

 private:
  struct Copy {
    std::uint64_t number;
    Part part;
  };
  std::array<std::deque<Copy>, kCopyLanes> pending_;
  CopyPoint queued_, over_;
};

}  // namespace fairlead
