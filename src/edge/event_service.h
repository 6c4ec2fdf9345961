// What edges ask of a node about asynchronous invocations beside accepting them: how often and how long they are tried, and
// that dead letters are tried again.
//
// Threads: the io_context's; callbacks run on it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "model/event_invoke_config.h"
#include "model/invocation.h"

namespace fairlead {

// Of asynchronous invocations since the node started.
struct EventCounters {
  std::size_t waiting = 0;  // on disk, for their turn or their next attempt
  std::size_t running = 0;  // given to the scheduler
  std::uint64_t retries = 0;
  std::uint64_t node_faults = 0;  // attempts that failed by the node's fault, and count for nothing
  std::uint64_t dead_letters = 0;
  std::uint64_t redriven = 0;
};

// Dead letters that became events again, and those that did not fit: ask again.
struct RedriveResult {
  std::size_t redriven = 0;
  std::size_t left = 0;
};

class EventService {
 public:
  template <typename T>
  using Callback = std::function<void(Result<T>)>;

  virtual ~EventService() = default;

  // kNotFound: there is no such function, or (config, remove_config) its author has set nothing.
  virtual void set_config(std::string function, EventInvokeConfig config, Callback<EventInvokeConfig> done) = 0;
  virtual Result<EventInvokeConfig> config(const std::string& function) = 0;
  virtual void remove_config(std::string function, std::function<void(Status)> done) = 0;

  // Of one function; "": of all that exist. The oldest first.
  virtual void redrive(std::string function, Callback<RedriveResult> done) = 0;

  // `callback` is called of each asynchronous invocation that is over for good, from now on: it succeeded, or is a dead letter. Not of
  // those of functions that were deleted. In place of whom was called before.
  using Over = std::function<void(const Invocation& invocation, const Outcome& outcome)>;
  virtual void when_over(Over callback) = 0;

  virtual EventCounters counters() const = 0;
};

}  // namespace fairlead
