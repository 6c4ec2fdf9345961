#include "decide/queueing/policy.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"

namespace fairlead {
namespace {

std::vector<const Policy*>& known() {
  static std::vector<const Policy*> known = {
#define FL_POLICY(name) &name##_policy,
#include "decide/queueing/policies.inc"
#undef FL_POLICY
  };
  return known;
}

Status check(const std::string& name, const PolicyOptions::Value& value) {
  const ParameterInfo* parameter = policy_parameter(name);
  if (parameter == nullptr) return fail(Errc::kInvalidArgument, "\"{}\" is a parameter of no policy", name);
  const bool is_time = std::holds_alternative<Duration>(value);
  FL_CHECK(is_time == parameter->is_time, "{}", name);
  const double number = is_time ? to_seconds(std::get<Duration>(value)) : std::get<double>(value);
  if (number >= parameter->least && number <= parameter->most) return {};
  return fail(Errc::kInvalidArgument, "policy parameter {} is {}, it must be a number from {} to {}", name, number,
              parameter->least, parameter->most);
}

Status check_options(const PolicyOptions& options) {
  if (!(options.ttl_factor >= 0)) {
    return fail(Errc::kInvalidArgument, "TTL factor alpha is {}, it must be 0 or more", options.ttl_factor);
  }
  for (const auto& [name, value] : options.parameters) {
    if (Status valid = check(name, value); !valid) return valid;
  }
  return {};
}

}  // namespace

std::vector<const Policy*> policies() {
  return known();
}

std::vector<std::string_view> policy_names() {
  std::vector<std::string_view> names;
  for (const Policy* policy : known()) names.push_back(policy->name);
  return names;
}

std::vector<const ParameterInfo*> policy_parameters() {
  std::vector<const ParameterInfo*> all;
  for (const Policy* policy : known()) {
    for (const ParameterInfo* parameter : policy->parameters) {
      if (parameter == nullptr) continue;
      const auto same = [&](const ParameterInfo* other) { return other->name == parameter->name; };
      if (std::none_of(all.begin(), all.end(), same)) all.push_back(parameter);
    }
  }
  return all;
}

const ParameterInfo* policy_parameter(std::string_view name) {
  for (const ParameterInfo* parameter : policy_parameters()) {
    if (parameter->name == name) return parameter;
  }
  return nullptr;
}

Result<std::unique_ptr<FlowQueue>> make_policy(std::string_view name, const PolicyOptions& options) {
  if (Status valid = check_options(options); !valid) return fail(valid.error());
  for (const Policy* policy : known()) {
    if (policy->name == name) return std::make_unique<FlowQueue>(*policy, options);
  }
  return fail(Errc::kInvalidArgument, "queueing policy \"{}\" is unknown; known are {}", name,
              fmt::join(policy_names(), ", "));
}

RegisteredPolicy::RegisteredPolicy(const Policy& policy) {
  for (const std::string_view name : policy_names()) FL_CHECK(name != policy.name, "policy {} is there already", name);
  known().push_back(&policy);
}

}  // namespace fairlead
