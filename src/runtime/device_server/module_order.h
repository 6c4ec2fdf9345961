// Which loaded modules may stay. Those of sessions do, all of them; of the others as many as fit the limits, in number and in
// bytes, and the one that was left longest ago goes first. So a client that always sends new code does not make a device
// server grow, and one that sends the same again and again finds it loaded.
//
// With a limit of 2: a, b, c are used and left one after the other, then a again, then d; b and c go.
//
// Pure. Threads: none of its own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"

namespace fairlead {

struct ModuleLimits {  // of modules that no session uses
  std::size_t count = 128;
  Bytes bytes{64 << 20};  // of their images: what the driver makes of them is not known
};

class ModuleOrder {
 public:
  explicit ModuleOrder(ModuleLimits limits) : limits_(limits) {}

  // It is there now, with one user. REQUIRES: it was not.
  void add(const std::string& key, Bytes bytes);
  // One user more, or one less. REQUIRES: it is there, and has one.
  void use(const std::string& key);
  void leave(const std::string& key);
  // Those without users that are too many, the oldest first, when there are more than `times` as many as may stay; none
  // before that. They are not there any more.
  std::vector<std::string> take_surplus(std::size_t times);
  std::vector<std::string> take_unused();  // all without users

  bool has(const std::string& key) const { return modules_.contains(key); }
  std::size_t size() const { return modules_.size(); }
  std::size_t unused() const { return left_.size(); }

 private:
  struct Module {
    Bytes bytes{0};
    std::size_t users = 0;
    std::uint64_t left = 0;  // when the last user went, in left_
  };
  bool within(std::size_t times) const;
  std::string take_oldest();

  const ModuleLimits limits_;
  std::map<std::string, Module> modules_;
  std::map<std::uint64_t, std::string> left_;  // those without users, oldest first
  Bytes unused_bytes_{0};
  std::uint64_t clock_ = 0;
};

}  // namespace fairlead
