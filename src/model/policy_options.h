// What a queueing policy and its queue are told to do.
//
// The numbers that a policy looks at are named in the policy's own file: what each is called, its bounds, what it means, what
// it is where nobody says. Here are only their values, under these names; whoever sets one needs no policy for it:
//
//   inline constexpr Parameter<Duration> kOverRun{"over_run_s", "T of MQFQ, seconds", 0, 1e9, 10};
//   options.set(kOverRun, 8s);   options.get(kOverRun)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/units.h"

namespace fairlead {

// Of any type. Numbers of times are seconds.
struct ParameterInfo {
  std::string_view name;
  std::string_view meaning;
  double least, most;
  std::optional<double> initial;  // where nobody says; none: the policy goes without
  bool is_time;
};

// T: double or Duration.
template <typename T>
struct Parameter : ParameterInfo {
  constexpr Parameter(std::string_view called, std::string_view means, double lower, double upper,
                      std::optional<double> otherwise = std::nullopt)
      : ParameterInfo{called, means, lower, upper, otherwise, std::is_same_v<T, Duration>} {}
};

struct PolicyOptions {
  // The queue's, whatever the policy (MQFQ-Sticky section 4; defaults are the paper's).
  double ttl_factor = 2.0;                         // alpha: TTL of an empty flow = alpha x its mean inter-arrival time
  std::optional<Duration> fixed_ttl;               // the same TTL for all flows (for comparison)
  Duration initial_ttl = std::chrono::seconds(2);  // before the second arrival there is no inter-arrival time
  Duration min_ttl{0};
  Duration max_ttl = std::chrono::minutes(10);
  std::uint64_t seed = 1;  // of policies that choose at random
  bool by_tenant = false;  // fair between tenants first, then by the policy within each

  // The policies' own, by name; what a policy does not look at does nothing.
  using Value = std::variant<double, Duration>;
  std::map<std::string, Value, std::less<>> parameters;

  template <typename T>
  PolicyOptions& set(const Parameter<T>& parameter, std::type_identity_t<T> value) {
    parameters.insert_or_assign(std::string(parameter.name), value);
    return *this;
  }
  PolicyOptions& set_number(const ParameterInfo& parameter, double value) {
    parameters.insert_or_assign(std::string(parameter.name), parameter.is_time ? Value(from_seconds(value)) : value);
    return *this;
  }

  template <typename T>
  std::optional<T> find(const Parameter<T>& parameter) const {
    const auto found = parameters.find(parameter.name);
    return found == parameters.end() ? std::nullopt : std::optional(std::get<T>(found->second));
  }
  // REQUIRES: the parameter has an initial value.
  template <typename T>
  T get(const Parameter<T>& parameter) const {
    const auto found = find(parameter);
    if (found) return *found;
    if constexpr (std::is_same_v<T, Duration>) {
      return from_seconds(*parameter.initial);
    } else {
      return *parameter.initial;
    }
  }
};

}  // namespace fairlead
