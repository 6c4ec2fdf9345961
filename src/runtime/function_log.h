// The log file of one function, shared by its instances: <dir>/<function>.log, rotated once to .log.1 at `limit`, so
// that it never takes more than twice the limit. Writes are buffered; whoever owns it calls flush() now and then.
//
// Beside it lies <function>.log.times (and .log.1.times), which says when what was written: a line "OFFSET MILLISECONDS" for a flush,
// where the last such line is at least kMarkEvery and kMarkBytes ago, or kMarkAtLeastEvery. So a line's time is known to a second or so,
// and a log of 8 MiB has at most 256 Ki marks, 6 MiB of them.
//
// Example: "0 1700000000000", "812 1700000004250": what stands from byte 812 on was written at 4.25 s or later.
//
// Errors: a write that fails (a full disk) loses the buffered bytes and counts them; nothing else stops.
// Threads: not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "base/units.h"

namespace fairlead {

class FunctionLog {
 public:
  static constexpr std::int64_t kMarkEveryMs = 1000, kMarkBytes = 32, kMarkAtLeastEveryMs = 60'000;

  FunctionLog(std::string dir, std::string_view function, Bytes limit,
              std::function<std::int64_t()> wall_clock = wall_clock_ms);
  ~FunctionLog() { flush(); }
  FunctionLog(const FunctionLog&) = delete;
  FunctionLog& operator=(const FunctionLog&) = delete;

  void append(std::string_view bytes);
  void flush();
  bool dirty() const { return !buffer_.empty(); }
  std::uint64_t lost_bytes() const { return lost_bytes_; }
  const std::string& path() const { return path_; }

 private:
  bool open();
  void rotate();
  void mark_time();

  std::string path_;
  std::int64_t limit_;
  UniqueFd file_;
  std::int64_t size_ = 0;
  std::string buffer_;
  std::uint64_t lost_bytes_ = 0;
  const std::function<std::int64_t()> wall_clock_;
  struct Mark {
    std::int64_t at = 0, ms = 0;
  };
  std::optional<Mark> mark_;  // the last one; none: of this file, by this object
};

}  // namespace fairlead
