// What tests build virtual nodes from.
#pragma once

#include <memory>
#include <string_view>

#include "decide/core/core_test_support.h"
#include "sim/virtual_node.h"

namespace fairlead::sim::testing {

inline std::unique_ptr<Core> make_core(const CoreOptions& options, std::string_view policy,
                                       const PolicyOptions& policy_options = {}) {
  return std::make_unique<Core>(options, fairlead::testing::policy_named(policy, policy_options));
}

// On which nothing slows anything else down.
inline DeviceModel plain_device(Bytes memory, double link_bytes_per_second) {
  return {.memory = memory, .link_bytes_per_second = link_bytes_per_second, .slowdown = {}, .start_slowdown = 1};
}

}  // namespace fairlead::sim::testing
