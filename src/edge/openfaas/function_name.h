// Names in OpenFaaS's words: a function "f.ns1" is f in the namespace ns1, and a namespace is a tenant.
//
//   f                with acme's key    ->  f, acme's
//   f.openfaas-fn    with acme's key    ->  the same: faas-cli says so where its user names no namespace
//   f                with a key for all ->  f, default's
//   f.acme           with a key for all ->  f, acme's
//
// The names "", "openfaas-fn" and "fairlead" all mean the caller's own tenant, or default. Functions have one name on a node, whoever
// has them: one that is there under another namespace is not found.
//
// Plain functions.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "edge/node_service.h"
#include "model/principal.h"

namespace fairlead::openfaas {

inline constexpr std::string_view kOwnNamespace = "fairlead";       // what default's is called
inline constexpr std::string_view kUsualNamespace = "openfaas-fn";  // what others call the default

struct FunctionName {
  std::string name;
  std::string space;  // after the last dot; "": none

  bool operator==(const FunctionName&) const = default;
};
FunctionName split_name(std::string_view text);

// kInvalidArgument: no tenant may be called so. kForbidden: the key is another tenant's.
Result<std::string> tenant_of_namespace(const Principal& who, std::string_view space);
std::string namespace_of(const std::string& tenant);

// kNotFound: there is none of that name in the namespace, or who asks does not see it.
Result<FunctionRecord> find_function(NodeService& node, const Principal& who, const FunctionName& name);
Error no_such_function(const FunctionName& name);

}  // namespace fairlead::openfaas
