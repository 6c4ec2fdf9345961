#include "edge/permission.h"

namespace fairlead {
namespace {

Role least_role(Permission wanted) {
  switch (wanted) {
    case Permission::kAnyone:
    case Permission::kRead:
    case Permission::kReadNode: return Role::kReader;
    case Permission::kInvoke: return Role::kInvoker;
    case Permission::kDeploy: return Role::kDeployer;
    case Permission::kOperate: break;
  }
  return Role::kOperator;
}

}  // namespace

Status permit(const Principal& who, Permission wanted) {
  const Role least = least_role(wanted);
  if (!who.may(least)) {
    return fail(Errc::kForbidden, "{} has the role {}; this needs {}", who.name, role_name(who.role), role_name(least));
  }
  if (who.tenant && (wanted == Permission::kReadNode || wanted == Permission::kOperate)) {
    return fail(Errc::kForbidden, "{} is a key of tenant '{}'; this shows or changes what all tenants have", who.name,
                *who.tenant);
  }
  return {};
}

}  // namespace fairlead
