// Instances that have answered while their work on the device goes on. Their pages say when it has ended; this looks, soon
// at first and then less often, and tells.
//
// Threads: everything on the io_context's thread. `ended` is never called from inside a call of this class.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <optional>

#include "base/ids.h"
#include "decide/core/invocation_record.h"

namespace fairlead {

class WorkAfterAnswers {
 public:
  using IsBusy = std::function<bool(InstanceId)>;
  using Ended = std::function<void(InstanceId)>;
  WorkAfterAnswers(boost::asio::io_context& io, IsBusy is_busy, Ended ended)
      : is_busy_(std::move(is_busy)), ended_(std::move(ended)), timer_(io) {}

  void add(InstanceId instance, InvocationId invocation);
  // It was stopped, or is gone: nothing is told of it any more.
  void forget(InstanceId instance) { watched_.erase(instance); }

  // Of an invocation that was added and is not charged yet.
  bool has(InvocationId invocation) const { return open_.contains(invocation); }
  void keep(InvocationId invocation, const InvocationRecord& record) { open_.at(invocation).record = record; }
  struct Charged {
    InstanceId instance;
    std::optional<InvocationRecord> record;  // that was kept
  };
  // REQUIRES: has(invocation).
  Charged take(InvocationId invocation) { return open_.extract(invocation).mapped(); }

 private:
  void wait();
  void look();

  const IsBusy is_busy_;
  const Ended ended_;
  std::map<InstanceId, InvocationId> watched_;
  std::map<InvocationId, Charged> open_;
  boost::asio::steady_timer timer_;
  Duration pause_{0};
  bool waiting_ = false;
};

}  // namespace fairlead
