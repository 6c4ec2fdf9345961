// What callers were told is on disk, and what else may be found there: the oracle of the power cuts.
//
//   asked(name, value)   from now on the old value or this one may be there
//   told(name, value)    from now on this one must be
//
// Example: "k" is told to be 1, and asked to be 2 when the power goes: 1 and 2 are right, nothing and 3 are not.
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace fairlead::power_cuts {

class Promises {
 public:
  using Value = std::optional<std::string>;  // none: it is not there

  void asked(const std::string& name, Value value) {
    auto& may_be = may_be_.try_emplace(name, std::set<Value>{std::nullopt}).first->second;
    may_be.insert(std::move(value));
  }
  void told(const std::string& name, Value value) {
    may_be_[name] = {std::move(value)};
    ++told_;
  }

  // What is wrong with what was found; "": nothing. What was found is what must be there from now on.
  std::string found(const std::map<std::string, std::string>& values) {
    for (const auto& [name, value] : values) {
      if (!may_be_.contains(name)) return name + " was found and never asked for";
    }
    for (auto& [name, may_be] : may_be_) {
      const auto it = values.find(name);
      const Value value = it == values.end() ? Value() : Value(it->second);
      if (!may_be.contains(value)) return name + (value ? " has another value than any that is right" : " is lost");
      may_be = {value};
    }
    return {};
  }

  std::size_t told_ever() const { return told_; }

 private:
  std::map<std::string, std::set<Value>> may_be_;
  std::size_t told_ = 0;
};

}  // namespace fairlead::power_cuts
