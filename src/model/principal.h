// Who asks: what a credential stands for. Identity turns credentials into principals, edges ask what a principal may do.
//
// Plain values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fairlead {

// Each may do what the ones before it may.
enum class Role {
  kReader,    // read-only: what there is, and logs
  kInvoker,   // invoke functions, read and write objects, run graphs and one-off kernel tasks
  kDeployer,  // create, change and delete functions
  kOperator,  // everything, for every tenant: keys, the node's status
};

std::string_view role_name(Role role);  // "reader", "invoker", "deployer", "operator"
std::optional<Role> role_named(std::string_view name);

struct Principal {
  std::string name;  // for the audit log: the id of a key, "uid 1000 on the operator's socket"
  Role role = Role::kReader;
  std::optional<std::string> tenant;  // the only one whose things it sees; empty: all

  bool may(Role wanted) const { return role >= wanted; }
  bool sees(std::string_view other) const { return !tenant || *tenant == other; }
};

}  // namespace fairlead
