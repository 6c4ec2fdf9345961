// Waiting for any of many words to change, each in memory shared with another process: futex_waitv(2).
//
// Where the kernel refuses it (before 5.16, or a filter that does not know it) there is no such wait: the caller sleeps, and looks
// every kPoll. A doorbell for all, in memory that all share, would let one instance ring another's.
//
// Threads: not thread-safe; one waiter each.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"

namespace fairlead {

class Bells {
 public:
  static constexpr std::size_t kMost = 128;  // words of one wait, as the kernel has it
  static constexpr Duration kPoll = std::chrono::microseconds(500);

  // `may_wait`: false for tests of the way without futex_waitv.
  explicit Bells(bool may_wait = true);

  // What is waited for next; begins anew.
  void clear() { words_.clear(); }
  // A word and what it was when it was looked at. The word stays where it is until wait() has returned.
  void add(const std::atomic<std::uint32_t>& word, std::uint32_t seen) { words_.push_back({&word, seen}); }
  // Returns when a word is not what was seen, or at `until`, or without a reason.
  void wait(std::optional<Instant> until);

  bool polls() const { return !may_wait_; }

  static void ring(std::atomic<std::uint32_t>& word);
  static void wake_all(const std::atomic<std::uint32_t>& word);

 private:
  struct Word {
    const std::atomic<std::uint32_t>* word;
    std::uint32_t seen;
  };
  bool wait_for_all(std::optional<Instant> until);

  bool may_wait_;
  std::vector<Word> words_;
};

}  // namespace fairlead
