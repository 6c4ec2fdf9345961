// What events hold, in the bound of their own and in the memory that they share with bodies and answers (base/byte_budget.h): a
// tenant may have as much as is left free in both.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "base/byte_budget.h"
#include "base/result.h"

namespace fairlead {

class EventMemory {
 public:
  explicit EventMemory(std::size_t bytes) : own_(bytes) {}
  // REQUIRES: nothing is held.
  void share(std::shared_ptr<ByteBudget> all) { all_ = std::move(all); }

  std::size_t used() const { return own_.used(); }
  bool is_full() const { return own_.is_full() || all_->is_full(); }

  // kResourceExhausted names the bound; nothing has changed.
  Status try_hold(const std::string& tenant, std::size_t bytes) {
    if (!own_.try_add(tenant, bytes)) return refusal("asynchronous invocations hold", own_, tenant, bytes);
    if (all_->try_add(tenant, bytes)) return {};
    own_.subtract(tenant, bytes);
    return refusal("requests, answers and asynchronous invocations hold", *all_, tenant, bytes);
  }
  void hold(const std::string& tenant, std::size_t bytes) {  // of what is there already
    own_.add(tenant, bytes);
    all_->add(tenant, bytes);
  }
  void let_go(const std::string& tenant, std::size_t bytes) {  // REQUIRES: it holds them
    own_.subtract(tenant, bytes);
    all_->subtract(tenant, bytes);
  }

  // How much more it may hold: half of what is free beyond its own, since what it gets is not free any more.
  std::size_t room_for(const std::string& tenant) const {
    return std::min(room_in(own_, tenant), room_in(*all_, tenant));
  }

 private:
  static std::size_t room_in(const ByteBudget& budget, const std::string& tenant) {
    const std::size_t free = budget.total() - std::min(budget.total(), budget.used()), held = budget.held_by(tenant);
    return held >= free ? 0 : (free - held) / 2;
  }
  static Status refusal(const char* who, const ByteBudget& budget, const std::string& tenant, std::size_t bytes) {
    return fail(Errc::kResourceExhausted,
                "{} {} of the {} bytes that the node keeps for them, {} of these the tenant's, and this one needs {} "
                "more: send less at a time, or try again later",
                who, budget.used(), budget.total(), budget.held_by(tenant), bytes);
  }

  ByteBudget own_;
  std::shared_ptr<ByteBudget> all_ = std::make_shared<ByteBudget>(std::numeric_limits<std::size_t>::max());
};

}  // namespace fairlead
