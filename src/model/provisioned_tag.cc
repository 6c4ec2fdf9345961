#include "model/provisioned_tag.h"

#include <fmt/format.h>

#include <charconv>

#include "model/function.h"
#include "model/version.h"

namespace fairlead {
namespace {

Status wrong(std::string_view part, std::string_view why) {
  return fail(Errc::kInvalidArgument,
              "tag {} has '{}', {}; it must be VERSION=N or ALIAS=N, several with commas, and N between 1 and {}",
              kProvisionedTag, part.substr(0, 64), why, kMaxReplicas);
}

Status read_part(std::string_view part, Provisioned& all) {
  const std::size_t equals = part.find('=');
  if (equals == std::string_view::npos) return wrong(part, "which has no '='");
  const std::string_view qualifier = part.substr(0, equals), count = part.substr(equals + 1);
  if (qualifier == kLatestVersion) return wrong(part, "and gpu:replicas is what keeps instances of $LATEST");
  if (!validate_qualifier(qualifier)) return wrong(part, "which names no version and no alias");
  int instances = 0;
  const char* const last = count.data() + count.size();
  const auto [end, error] = std::from_chars(count.data(), last, instances);
  if (error != std::errc() || end != last || instances < 1 || instances > kMaxReplicas) {
    return wrong(part, "which has no such number");
  }
  if (!all.emplace(qualifier, instances).second) return wrong(part, "which is there twice");
  return {};
}

}  // namespace

Result<Provisioned> provisioned_in(const Tags& tags) {
  Provisioned all;
  const auto tag = tags.find(std::string(kProvisionedTag));
  if (tag == tags.end()) return all;
  std::string_view rest = tag->second;
  for (bool is_last = false; !is_last;) {
    const std::size_t comma = rest.find(',');
    is_last = comma == std::string_view::npos;
    if (Status read = read_part(rest.substr(0, comma), all); !read) return fail(read.error());
    if (!is_last) rest.remove_prefix(comma + 1);
  }
  return all;
}

Result<Tags> with_provisioned(Tags tags, const std::string& qualifier, int instances) {
  if (instances < 0 || instances > kMaxReplicas) {
    return fail(Errc::kInvalidArgument, "{} instances of {} cannot be kept started; it must be 0 to {}", instances,
                qualifier, kMaxReplicas);
  }
  auto all = provisioned_in(tags);
  if (!all) return fail(all.error());
  all->erase(qualifier);
  if (instances > 0) all->emplace(qualifier, instances);
  std::string text;
  for (const auto& [name, count] : *all) text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, count);
  tags.erase(std::string(kProvisionedTag));
  if (text.size() > kMaxProvisionedBytes) {
    return fail(Errc::kInvalidArgument,
                "instances of {} versions and aliases are kept started, and with {} the tag {} would have {} bytes, of "
                "at most {}: delete the configuration of one that needs none",
                all->size() - 1, qualifier, kProvisionedTag, text.size(), kMaxProvisionedBytes);
  }
  if (!text.empty()) tags[std::string(kProvisionedTag)] = std::move(text);
  return tags;
}

}  // namespace fairlead
