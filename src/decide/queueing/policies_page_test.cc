// docs/reference/policies.md says of each policy and of each parameter what its file says.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "decide/queueing/policy.h"

namespace fairlead {
namespace {

std::string page() {
  std::ifstream file(POLICIES_PAGE);
  EXPECT_TRUE(file) << POLICIES_PAGE;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string_view> policies_with(const ParameterInfo& parameter) {
  std::vector<std::string_view> names;
  for (const Policy* policy : policies()) {
    for (const ParameterInfo* theirs : policy->parameters) {
      if (theirs == &parameter) names.push_back(policy->name);
    }
  }
  return names;
}

bool is_product(const Policy& policy) {
  return policy.name != "longest-queue";  // longest_queue_test.cc
}

TEST(PoliciesPage, HasALineForEveryPolicy) {
  const std::string text = page();
  for (const Policy* policy : policies()) {
    if (!is_product(*policy)) continue;
    EXPECT_NE(text.find(fmt::format("| `{}` | ", policy->name)), text.npos) << policy->name;
  }
}

TEST(PoliciesPage, HasTheLineOfEveryParameter) {
  const std::string text = page();
  for (const Policy* policy : policies()) {
    for (const ParameterInfo* parameter : policy->parameters) {
      if (parameter == nullptr || !is_product(*policy)) continue;
      const std::string initial = parameter->initial ? fmt::format("{}", *parameter->initial) : "none";
      const std::string line =
          fmt::format("| `{}` | {} | {} | {} to {} | {} |\n", parameter->name, parameter->meaning, initial,
                      parameter->least, parameter->most, fmt::join(policies_with(*parameter), ", "));
      EXPECT_NE(text.find(line), text.npos) << "the page lacks this line:\n" << line;
    }
  }
}

}  // namespace
}  // namespace fairlead
