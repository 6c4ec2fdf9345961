// The last requests that are over, of each tenant: where the time of each went, and who ran meanwhile.
//
// What is kept has a bound, kMostOfTenant requests and of all kMost: where all tenants together have more, the oldest of whoever has most
// goes. A request counts as kMostRequestBytes at most, so kMost of them are 16 MiB.
//
// Example: A and B have 20,000 requests each in the last second. The last 2,000 of each are kept, and none of A's goes for one of B's.
//
// Threads: not thread-safe; owned by the core thread.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/units.h"
#include "edge/recent_calls.h"
#include "edge/request_service.h"

namespace fairlead {

class RecentRequests final : public RequestService, public RecentCalls {
 public:
  static constexpr std::size_t kMostOfTenant = 2000;
  static constexpr std::size_t kMost = 16'000;
  static constexpr std::size_t kMostRequestBytes = 1024;

  // By the clock that all of them have.
  struct Times {
    Instant arrived;
    Instant chosen;     // for an instance; where it never ran, its end
    Instant delivered;  // to it; nothing where it never was
    Instant over;
  };
  // REQUIRES: times.over is not before that of any added earlier.
  void add(RequestTrace trace, const Times& times);

  // Those that run now and were delivered: who calls `visit` with each. The names are valid until trace() returns.
  struct Running {
    std::string_view function, tenant;
    Instant delivered;
  };
  using Visit = std::function<void(const Running&)>;
  void set_running(std::function<void(const Visit&)> each) { each_running_ = std::move(each); }

  Result<RequestTrace> trace(const std::string& request_id) override;
  std::vector<RequestTrace> recent(const RecentQuery& query) const override;
  std::size_t size() const { return size_; }

 private:
  struct Kept {
    RequestTrace trace;
    Times times;
  };
  using Ring = std::list<Kept>;  // the oldest first

  void drop_oldest(const std::string& tenant);
  void find_ahead(Kept& of) const;

  std::map<std::string, Ring> rings_;                           // by tenant
  std::set<std::pair<std::size_t, std::string>> by_size_;       // the same
  std::unordered_map<std::string_view, Ring::iterator> by_id_;  // into the rings
  std::map<std::string, Instant> forgotten_;                    // by tenant: until then, not all is kept
  std::size_t size_ = 0;
  std::function<void(const Visit&)> each_running_;
};

}  // namespace fairlead
