// Which piece of work is next, where strangers hand it in. A tenant has one at a time and tenants take turns, so that one
// whose pieces take long keeps others waiting for one piece and not for all of its own.
//
// With one at a time: a's 1 runs, a's 2 and 3 wait, then b's 4 comes; the order is 1, 4, 2, 3.
//
// Pure. Threads: none of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace fairlead {

class TenantTurns {
 public:
  explicit TenantTurns(std::size_t at_once) : at_once_(at_once) {}

  // REQUIRES: no piece of that number is there.
  void add(std::uint64_t piece, const std::string& tenant);
  // It runs from now on; none: nothing waits, or what waits must.
  std::optional<std::uint64_t> take_next();
  // It is over, and its tenant has no other one until it is removed; its place is free. REQUIRES: it runs.
  void rest(std::uint64_t piece);
  // It is over, or is not wanted any more. REQUIRES: it is there.
  void remove(std::uint64_t piece);

  std::size_t running() const { return running_; }  // without those after which their tenants rest
  std::size_t size() const { return tenant_of_.size(); }

 private:
  struct Tenant {
    std::deque<std::uint64_t> waiting;
    std::optional<std::uint64_t> running;  // or the one after which it rests
    bool rests = false;
  };

  const std::size_t at_once_;
  std::size_t running_ = 0;
  std::map<std::uint64_t, std::string> tenant_of_;
  std::map<std::string, Tenant> tenants_;  // those that have work
  std::deque<std::string> turns_;          // the same; who was longest not served comes first
};

}  // namespace fairlead
