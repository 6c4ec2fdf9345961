#include "model/tenant.h"

#include <algorithm>

namespace fairlead {

Status validate_tenant(std::string_view tenant) {
  const auto is_allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
  };
  if (tenant.empty() || tenant.size() > kMaxTenantLength || !std::all_of(tenant.begin(), tenant.end(), is_allowed)) {
    return fail(Errc::kInvalidArgument, "tenant is '{}'; it must be 1 to {} letters, digits, '-' and '_'",
                tenant.substr(0, 2 * kMaxTenantLength), kMaxTenantLength);
  }
  return {};
}

std::string tenant_of(const std::map<std::string, std::string>& tags) {
  const auto it = tags.find(kTenantTag);
  return it == tags.end() ? kDefaultTenant : it->second;
}

}  // namespace fairlead
