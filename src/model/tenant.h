// Whose a function is: who pays for its GPU time, whose objects and device memory it uses.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fairlead {

inline constexpr const char* kDefaultTenant = "default";
inline constexpr const char* kTenantTag = "gpu:tenant";  // of a function, for its life
inline constexpr std::size_t kMaxTenantLength = 64;

// 1 to kMaxTenantLength letters, digits, '-' or '_': it is the name of a folder too.
Status validate_tenant(std::string_view tenant);

// What the tag says, or the default.
std::string tenant_of(const std::map<std::string, std::string>& tags);

}  // namespace fairlead
