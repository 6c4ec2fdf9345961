#include "node/pacing/bells.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/clock.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

namespace fairlead {
namespace {

// As the kernel has it; older headers lack it.
struct WaitEntry {
  std::uint64_t value;
  std::uint64_t address;
  std::uint32_t flags;
  std::uint32_t reserved;
};
constexpr std::uint32_t kWord32 = 2;

timespec at(Instant when) {
  const std::int64_t ns = std::max<std::int64_t>(when.time_since_epoch().count(), 0);
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

void sleep_until(Instant when) {
  const timespec until = at(when);
  ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

}  // namespace

Bells::Bells(bool may_wait) : may_wait_(may_wait) {
  if (!may_wait_) return;
  // Refused as a call, or as one of nothing?
  const long result = ::syscall(SYS_futex_waitv, nullptr, 0U, 0U, nullptr, CLOCK_MONOTONIC);
  may_wait_ = result != -1 || errno == EINVAL;
}

void Bells::wait(std::optional<Instant> until) {
  if (may_wait_ && wait_for_all(until)) return;
  const Instant next = monotonic_now() + kPoll;
  sleep_until(until ? std::min(*until, next) : next);
}

// False: this kernel does not.
bool Bells::wait_for_all(std::optional<Instant> until) {
  std::vector<WaitEntry> entries;
  for (const Word& word : words_) {
    if (entries.size() == kMost) break;
    entries.push_back({word.seen, reinterpret_cast<std::uint64_t>(word.word), kWord32, 0});
  }
  if (words_.size() > kMost) {  // the rest is looked at now and then
    const Instant next = monotonic_now() + kPoll;
    until = until ? std::min(*until, next) : next;
  }
  const timespec limit = until ? at(*until) : timespec{};
  const long result = ::syscall(SYS_futex_waitv, entries.data(), static_cast<unsigned>(entries.size()), 0U,
                                until ? &limit : nullptr, CLOCK_MONOTONIC);
  if (result != -1 || (errno != ENOSYS && errno != EPERM)) return true;
  may_wait_ = false;
  return false;
}

void Bells::ring(std::atomic<std::uint32_t>& word) {
  word.fetch_add(1);
  wake_all(word);
}

void Bells::wake_all(const std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace fairlead
