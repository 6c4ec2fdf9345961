#include "model/model_consent.h"

#include <sstream>

#include "model/tenant.h"

namespace fairlead {
namespace {

Result<std::set<std::string>> tenants_in(const std::map<std::string, std::string>& tags, const char* tag,
                                         bool all_may) {
  std::set<std::string> tenants;
  const auto found = tags.find(tag);
  if (found == tags.end()) return tenants;
  std::istringstream words(found->second);
  for (std::string word; words >> word;) {
    if (!(all_may && word == kEveryTenant)) {
      if (Status valid = validate_tenant(word); !valid) {
        return fail(Errc::kInvalidArgument, "tag {}: {}", tag, valid.error().message);
      }
    }
    tenants.insert(word);
  }
  if (tenants.empty() || tenants.size() > kMaxModelTenants) {
    return fail(Errc::kInvalidArgument, "tag {} names {} tenants; it must be 1 to {}, with spaces between", tag,
                tenants.size(), kMaxModelTenants);
  }
  return tenants;
}

}  // namespace

Result<ModelConsent> model_consent(const std::map<std::string, std::string>& tags) {
  auto lends = tenants_in(tags, kLendsModelsTag, true);
  if (!lends) return fail(lends.error());
  auto takes = tenants_in(tags, kTakesModelsTag, false);
  if (!takes) return fail(takes.error());
  return ModelConsent{*std::move(lends), *std::move(takes)};
}

}  // namespace fairlead
