// What one instance prints and what the platform says about it (START, END, REPORT), on its way into the function's
// log.
// Keeps the last kTailBytes since the current or last delivery and bounds the rate: of what the function prints within
// one second, `rate` bytes are kept and the rest is dropped and counted in the log.
//
// Example: rate 4 MiB/s, the function prints 10 MiB within a second: 4 MiB are in the log, then one line
// "[fairlead] dropped 6291456 bytes of output: the limit is 4194304 bytes per second".
// Threads: not thread-safe. Time: handed in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "runtime/function_log.h"

namespace fairlead {

inline constexpr std::size_t kTailBytes = 4096;  // what AWS returns for LogType=Tail

struct InvocationReport {
  std::string_view request_id;
  Duration duration{0};
  Duration init_duration{0};  // 0: not this instance's first invocation
  Bytes memory_limit{0};
  Bytes memory_peak{0};
  std::optional<Duration> first_byte = std::nullopt;  // of an answer that was streamed: from delivery
  std::string_view failure;                           // empty: it answered; else why it did not
};

class InstanceLog {
 public:
  // `file` outlives this. `version`: of the function, for START lines.
  InstanceLog(FunctionLog& file, Bytes rate, std::string version = "$LATEST")
      : file_(file), rate_(rate.count()), version_(std::move(version)) {}

  void output(std::string_view bytes, Instant now);
  void start_line(std::string_view request_id);  // begins a new tail
  void end_lines(const InvocationReport& report);
  // Writes the count of dropped bytes, if any. Call at the end of the instance.
  void close();

  std::string_view tail() const;

  // How much of this second's output was taken in, kept or dropped. A reader that stops at a multiple of `rate` makes a
  // flooding function wait instead of spending the node's time on it.
  std::int64_t taken_this_second(Instant now);

 private:
  void emit(std::string_view bytes);
  void roll(Instant now);

  FunctionLog& file_;
  std::int64_t rate_;
  const std::string version_;
  Instant second_{};
  std::int64_t taken_ = 0;
  std::int64_t dropped_ = 0;
  std::string tail_;
};

}  // namespace fairlead
