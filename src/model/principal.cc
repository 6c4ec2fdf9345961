#include "model/principal.h"

#include <array>

namespace fairlead {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"reader", "invoker", "deployer", "operator"};

}  // namespace

std::string_view role_name(Role role) {
  return kNames[static_cast<std::size_t>(role)];
}

std::optional<Role> role_named(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Role>(i);
  }
  return std::nullopt;
}

}  // namespace fairlead
