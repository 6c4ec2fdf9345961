#include "model/warmth_tags.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "model/function.h"

namespace fairlead {
namespace {

const std::string kReplicas = "gpu:replicas";

int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// MIN and MAX of "N" or "MIN:MAX"; {0, kMaxReplicas} where nobody said.
std::pair<int, int> replicas(const Tags& tags) {
  const auto tag = tags.find(kReplicas);
  if (tag == tags.end()) return {0, kMaxReplicas};
  const std::size_t colon = tag->second.find(':');
  const std::string first = tag->second.substr(0, colon);
  const std::string second = colon == std::string::npos ? first : tag->second.substr(colon + 1);
  return {number(first), number(second)};
}

}  // namespace

Result<Tags> with_instances_kept(Tags tags, int least) {
  if (least < 0 || least > kMaxReplicas) {
    return fail(Errc::kInvalidArgument, "{} instances cannot be kept started; it must be 0 to {}", least, kMaxReplicas);
  }
  const int most = std::max(replicas(tags).second, least);
  if (least == 0 && most == kMaxReplicas) {  // what it is without the tag
    tags.erase(kReplicas);
    return tags;
  }
  tags[kReplicas] = fmt::format("{}:{}", least, most);
  return tags;
}

int instances_kept(const Tags& tags) {
  return replicas(tags).first;
}

}  // namespace fairlead
