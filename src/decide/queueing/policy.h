// The policies that there are, by name (policies.inc has one line for each).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "decide/queueing/flow_queue.h"

namespace fairlead {

#define FL_POLICY(name) extern const Policy name##_policy;
#include "decide/queueing/policies.inc"
#undef FL_POLICY

// The default first.
std::vector<const Policy*> policies();
std::vector<std::string_view> policy_names();

// What can be set of any of them, each once: two policies that have a parameter of one name share it.
std::vector<const ParameterInfo*> policy_parameters();
const ParameterInfo* policy_parameter(std::string_view name);  // nullptr: no policy has it

// A queue with the policy of that name. kInvalidArgument: there is none, and the message lists them; or an option is out of its
// bounds, or no policy has it.
Result<std::unique_ptr<FlowQueue>> make_policy(std::string_view name, const PolicyOptions& options);

// One that is no product: a test's. Known by its name from then on, after all others. `const RegisteredPolicy known(policy);`
// REQUIRES: `policy` outlives everything, the name is new, no other thread runs.
struct RegisteredPolicy {
  explicit RegisteredPolicy(const Policy& policy);
};

}  // namespace fairlead
