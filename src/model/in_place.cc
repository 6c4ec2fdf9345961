#include "model/in_place.h"

namespace fairlead {
namespace {

bool overlap(const std::string& one, const std::string& other) {
  return lies_in(one, other) || lies_in(other, one);
}

}  // namespace

Status check_in_place(const std::string& folder, const std::string& tenant, const InPlaceTerms& terms) {
  if (!terms.obstacle.empty()) {
    return fail(Errc::kInvalidArgument, "Code.InPlace: {}; deploy a copy, without InPlace", terms.obstacle);
  }
  if (Status shown = check_host_folder(folder, "a function in place"); !shown) return shown;
  if (overlap(folder, terms.state_dir)) {
    return fail(Errc::kInvalidArgument, "Code.InPlace: {} and the node's state folder {} lie in each other", folder,
                terms.state_dir);
  }
  for (const Volume& volume : terms.volumes) {
    if (!overlap(folder, volume.folder)) continue;
    if (volume.writable) {
      return fail(Errc::kInvalidArgument, "Code.InPlace: {} and a volume that functions may write to lie in each other",
                  folder);
    }
    if (volume.tenant.empty() || volume.tenant == tenant) continue;
    return fail(Errc::kInvalidArgument,
                "Code.InPlace: {} and a volume that is for another tenant than {} lie in each other", folder, tenant);
  }
  return {};
}

}  // namespace fairlead
