// A trace of what this process does on its devices, for chrome://tracing and ui.perfetto.dev: SOFTGPU_TRACE=file.
//
// The file is an array of events in Chrome's JSON format, one on each line, appended with one write() each. The array
// is never closed, which the format allows: a process may be killed at any time, and several processes may write to one
// file. Times are microseconds of CLOCK_MONOTONIC, so the files of several processes also fit together: their lines,
// the first '[' aside, may simply be concatenated.
//
// Spans lie on the track of the host thread that did the work and nest. Who computes on how many SMs is a counter of
// the device, one for each process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "softgpu/device/result.h"

namespace softgpu {

// Begins to trace into `path`; "%p" in it stands for the process id. Call once. Error: the file cannot be written.
Status open_trace(std::string path);
bool tracing();

// The members of an event's "args": `"name":value`, separated by commas.
class TraceArguments {
 public:
  TraceArguments& add(std::string_view name, std::uint64_t value);
  TraceArguments& add(std::string_view name, std::string_view value);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// [begin_ns, end_ns) of monotonic_ns() on the calling thread's track. Like all that follows: does nothing unless
// tracing(); thread-safe.
void trace_span(std::string_view category, std::string_view name, std::uint64_t begin_ns, std::uint64_t end_ns,
                const TraceArguments& arguments = {});

// From `now_ns` on this process computes on `milli_sms` thousandths of SMs of the device.
void trace_sms(unsigned device, std::uint64_t milli_sms, std::uint64_t now_ns);

}  // namespace softgpu
