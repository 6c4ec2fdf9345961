// Which tenants share models on the GPU, as their functions' tags say. Both have to agree: the one whose function stored a model
// lends it, the one whose function wants it takes it.
//
// Example: of tenant vision's function   gpu:lends-models-to = "shop"
//          of tenant shop's function     gpu:takes-models-of = "vision"
#pragma once

#include <map>
#include <set>
#include <string>

#include "base/result.h"

namespace fairlead {

inline constexpr const char* kLendsModelsTag = "gpu:lends-models-to";  // tenants, spaces between; kEveryTenant: all
inline constexpr const char* kTakesModelsTag = "gpu:takes-models-of";  // tenants, spaces between
inline constexpr const char* kEveryTenant = "@all";
inline constexpr std::size_t kMaxModelTenants = 32;  // in one tag

struct ModelConsent {
  std::set<std::string> lends_to;
  std::set<std::string> takes_of;
};

// kInvalidArgument: no tenant, one that cannot be a tenant's name, or more than kMaxModelTenants. Names the tag.
Result<ModelConsent> model_consent(const std::map<std::string, std::string>& tags);

}  // namespace fairlead
