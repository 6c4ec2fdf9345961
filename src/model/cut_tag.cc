#include "model/cut_tag.h"

namespace fairlead {

Result<bool> may_cut_kernels(const std::map<std::string, std::string>& tags) {
  const auto tag = tags.find(kCutKernelsTag);
  if (tag == tags.end() || tag->second == "true") return true;
  if (tag->second == "false") return false;
  return fail(Errc::kInvalidArgument, "tag {} is '{}'; it must be true or false", kCutKernelsTag, tag->second);
}

}  // namespace fairlead
