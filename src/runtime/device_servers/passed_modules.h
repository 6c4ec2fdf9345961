// Modules that passed their trial: so many, those asked for last. Pure. Threads: none of its own.
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <unordered_map>

namespace fairlead {

class PassedModules {
 public:
  explicit PassedModules(std::size_t limit) : limit_(limit) {}

  bool has(const std::string& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return false;
    order_.splice(order_.begin(), order_, found->second);
    return true;
  }

  void add(const std::string& key) {
    if (has(key)) return;
    order_.push_front(key);
    places_[key] = order_.begin();
    if (places_.size() <= limit_) return;
    places_.erase(order_.back());
    order_.pop_back();
  }

  std::size_t size() const { return places_.size(); }

 private:
  const std::size_t limit_;
  std::list<std::string> order_;  // asked for last, first
  std::unordered_map<std::string, std::list<std::string>::iterator> places_;
};

}  // namespace fairlead
