// For tests: a driver whose processes have states and nothing else.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gpu/checkpoint.h"

namespace fairlead {

class FakeCheckpoints final : public ProcessCheckpoints {
 public:
  using Answers = std::map<std::string, Outcome>;

  Status start() override { return {}; }
  Answer lock(int pid, Duration) override { return change("lock", pid, State::kRunning, State::kLocked); }
  Answer checkpoint(int pid) override { return change("checkpoint", pid, State::kLocked, State::kCheckpointed); }
  Answer restore(int pid) override { return change("restore", pid, State::kCheckpointed, State::kLocked); }
  Answer unlock(int pid) override { return change("unlock", pid, State::kLocked, State::kRunning); }
  std::optional<State> state(int pid) override {
    const auto found = states.find(pid);
    return found == states.end() ? std::nullopt : std::optional(found->second);
  }

  std::map<int, State> states;     // processes that use the driver
  Answers answers;                 // in place of what the state would say, by call
  std::vector<std::string> calls;  // in order

 private:
  Answer change(const std::string& call, int pid, State from, State to) {
    calls.push_back(call);
    if (const auto given = answers.find(call); given != answers.end()) return {given->second, "as told"};
    const auto found = states.find(pid);
    if (found == states.end()) return {Outcome::kRefused, "no such process"};
    if (found->second != from) return {Outcome::kWrongState, "wrong state"};
    found->second = to;
    return {};
  }
};

}  // namespace fairlead
