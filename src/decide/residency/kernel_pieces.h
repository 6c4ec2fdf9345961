// A call of a kernel task that would outlast its place on a device that is paced, piece by piece: which blocks of which kernels are
// launched next, so that a neighbour who is promised time waits for a piece and not for the call (docs/explanation/pacer.md).
//
//   kernels     a (50 ms, 10,000 blocks)     b (0.1 ms)   c (0.1 ms)
//   pieces      a: 0-199 │ 200-399 │ ... │ a: 9,800-9,999, b, c          each about 1 ms, some less before the place is over
//
// How long a block of a kernel takes is learnt by kernel and grid, as the shim's leash learns pieces of work: a kernel that is not known
// begins with the fewest blocks that there are at a time, in a piece of its own. One that takes longer than it did is believed at once, one
// that takes less a quarter at a time. Of a piece of several kernels the time is divided as it was estimated.
//
// The fewest blocks at a time are those that the device holds together, a wave: half of them would take as long. So a kernel of one wave is
// never cut, and blocks that are on the device together stay together.
//
// Example: 10,000 blocks in waves of 100, 50 ms. The first piece is a wave: 0.5 ms, 5 us a block. So pieces are of one wave each, and where
// 0.2 ms of the place are left it is still one. With 100,000 blocks in that time pieces are of ten waves, and the last one of a place of four.
//
// Pure. Threads: not thread-safe. One for each session of a kernel task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"

namespace fairlead {

class KernelPieces {
 public:
  // In flight at most, two pieces of these: a place of 2 ms is four of them, and the device has the next one when one ends.
  static constexpr Duration kMost = std::chrono::microseconds(500);
  // A place that is nearly over: a piece is at least so long, since each costs an event and a wake.
  static constexpr Duration kLeast = std::chrono::microseconds(100);
  // A call that takes less is launched as a whole, as it was: a frame is 2 ms.
  static constexpr Duration kWhole = std::chrono::milliseconds(1);

  struct Kernel {
    std::uint64_t blocks = 1;
    std::uint64_t wave = 1;   // blocks that the device holds together
    bool can_be_cut = false;  // false: in one piece, however long
  };
  // `iterations` of all kernels, one after the other.
  KernelPieces(std::vector<Kernel> kernels, std::uint32_t iterations);

  struct Range {
    std::size_t kernel = 0;
    std::uint64_t first = 0;
    std::uint64_t count = 0;  // all blocks of the kernel: in one launch as it is
    bool operator==(const Range&) const = default;
  };
  struct Piece {
    std::vector<Range> ranges;  // in this order
    Duration estimate{0};       // 0: not known
  };

  // From the beginning.
  void begin_call() { iteration_ = 0, kernel_ = 0, block_ = 0; }
  bool is_over() const { return iteration_ == iterations_; }
  // What is next, `left` of the place being there beside what is in flight. REQUIRES: !is_over().
  Piece next(Duration left);
  // It has ended, and took so long.
  void measured(const Piece& piece, Duration took);

  // A call was launched as a whole: where it took longer than it was estimated, so do its kernels.
  void measured_whole(Duration took);
  // Of all kernels in all iterations; nothing: one of them is not known.
  std::optional<Duration> estimate() const;

 private:
  bool is_known(std::size_t kernel) const { return ns_per_block_[kernel] > 0; }
  double ns_of(const Range& range) const { return ns_per_block_[range.kernel] * static_cast<double>(range.count); }
  std::uint64_t blocks_for(std::size_t kernel, double ns) const;
  void learn(std::size_t kernel, double ns_per_block);
  void advance(std::uint64_t blocks);

  const std::vector<Kernel> kernels_;
  const std::uint32_t iterations_;
  std::vector<double> ns_per_block_;  // 0: not known
  std::uint32_t iteration_ = 0;
  std::size_t kernel_ = 0;
  std::uint64_t block_ = 0;
};

}  // namespace fairlead
