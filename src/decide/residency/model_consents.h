// Who may have whose models, as the tags of functions say now (model/model_consent.h). Two tenants share a tensor while both agree: a version of a
// function of the owner that names the tensor lends to the asker's tenant, and the asker's takes from the owner.
//
// Example: vision's function lends to shop, shop's takes of vision: shop's opens find vision's tensor. vision takes its tag back: shop's next open
// finds none and stores its own; who of shop has it open keeps it until it closes.
//
// Pure. Threads: not thread-safe.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

namespace fairlead {

class ModelConsents {
 public:
  struct Terms {
    std::string tenant;
    std::set<std::string> lends_to;  // "@all": all
    std::set<std::string> uses_from;
  };

  // Of a version of a function, from now on.
  void set(const std::string& scope, Terms terms) { terms_[scope] = std::move(terms); }
  // No effect where the version is not known: nothing of it ever started.
  void change(const std::string& scope, std::set<std::string> lends_to, std::set<std::string> uses_from) {
    const auto found = terms_.find(scope);
    if (found == terms_.end()) return;
    found->second.lends_to = std::move(lends_to);
    found->second.uses_from = std::move(uses_from);
  }
  void forget(const std::string& scope) { terms_.erase(scope); }

  // Whether functions of `tenant` in version `scope` may have what `owner` stored, which has these names (scope, id).
  bool may_share(const std::string& owner, const std::set<std::pair<std::string, std::string>>& names,
                 const std::string& tenant, const std::string& scope) const {
    if (owner == tenant) return true;
    const auto taker = terms_.find(scope);
    if (taker == terms_.end() || !taker->second.uses_from.contains(owner)) return false;
    for (const auto& [named_in, id] : names) {
      const auto lender = terms_.find(named_in);
      if (lender == terms_.end() || lender->second.tenant != owner) continue;
      if (lender->second.lends_to.contains(tenant) || lender->second.lends_to.contains("@all")) return true;
    }
    return false;
  }

 private:
  std::map<std::string, Terms> terms_;  // by scope
};

}  // namespace fairlead
