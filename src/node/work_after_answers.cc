#include "node/work_after_answers.h"

#include <algorithm>
#include <vector>

namespace fairlead {
namespace {

constexpr Duration kShortestPause = std::chrono::microseconds(200);
constexpr Duration kLongestPause = std::chrono::milliseconds(2);

}  // namespace

void WorkAfterAnswers::add(InstanceId instance, InvocationId invocation) {
  watched_[instance] = invocation;
  open_[invocation].instance = instance;
  pause_ = kShortestPause;
  if (!waiting_) wait();
}

void WorkAfterAnswers::wait() {
  waiting_ = true;
  timer_.expires_after(pause_);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    waiting_ = false;
    pause_ = std::min(pause_ + pause_ / 4, kLongestPause);
    look();
  });
}

void WorkAfterAnswers::look() {
  std::vector<InstanceId> ended;  // telling may add and forget
  for (const auto& [instance, invocation] : watched_) {
    if (!is_busy_(instance)) ended.push_back(instance);
  }
  for (const InstanceId instance : ended) {
    if (watched_.erase(instance) > 0) ended_(instance);
  }
  if (!watched_.empty() && !waiting_) wait();
}

}  // namespace fairlead
