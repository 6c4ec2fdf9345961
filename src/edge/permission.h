// What a route asks of its caller, and whether a principal has it.
//
// Plain values.
#pragma once

#include "base/result.h"
#include "model/principal.h"

namespace fairlead {

enum class Permission {
  kAnyone,    // no credential: health
  kRead,      // what the caller's tenant has
  kInvoke,    // run what it has, write its objects
  kDeploy,    // change its functions
  kReadNode,  // what all tenants have: a reader's key for all
  kOperate,   // the operator alone
};

// kForbidden names the role that is needed, and the one that is there.
Status permit(const Principal& who, Permission wanted);

// Whether a request changes functions or keys: that is written down (audit). Calls and objects are not: they are too many.
inline bool is_change(Permission wanted, std::string_view method) {
  return (wanted == Permission::kDeploy || wanted == Permission::kOperate) && method != "GET" && method != "HEAD";
}

}  // namespace fairlead
