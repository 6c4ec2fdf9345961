#include "model/mig_tag.h"

#include <algorithm>

namespace fairlead {
namespace {

constexpr std::size_t kMostDigits = 4;  // of a slice's GB

bool are_digits(std::string_view text) {
  return !text.empty() && text.size() <= kMostDigits && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "3g", "3g.40gb", "1g.10gb+me", "1g.12gb-me"
bool is_profile(std::string_view text) {
  if (text.size() < 2 || text[0] < '1' || text[0] > '9' || text[1] != 'g') return false;
  text.remove_prefix(2);
  if (text.empty()) return true;
  if (text[0] != '.') return false;
  const std::size_t more = std::min(text.find_first_of("+-"), text.size());
  const std::string_view memory = text.substr(1, more - 1), kind = text.substr(more);
  const bool is_kind = kind.empty() || (kind.size() > 1 && kind.find_first_not_of("abcdefghijklmnopqrstuvwxyz.", 1) ==
                                                               std::string_view::npos);
  return is_kind && memory.ends_with("gb") && are_digits(memory.substr(0, memory.size() - 2));
}

}  // namespace

Result<std::string> mig_profile_in(const std::map<std::string, std::string>& tags) {
  constexpr std::size_t kMostCharacters = 32;
  const auto tag = tags.find(kMigProfileTag);
  if (tag == tags.end()) return std::string();
  if (tag->second.size() <= kMostCharacters && is_profile(tag->second)) return tag->second;
  return fail(Errc::kInvalidArgument,
              "tag {} is '{}'; it must be a slice's profile, as 3g.40gb (nvidia-smi mig -lgip lists them), or 3g for "
              "any memory",
              kMigProfileTag, tag->second);
}

bool is_of_profile(std::string_view profile, std::string_view wanted) {
  if (wanted.empty() || profile == wanted) return true;
  const bool is_any_memory = wanted.find('.') == std::string_view::npos;
  return is_any_memory && profile.substr(0, profile.find('.')) == wanted;
}

std::string profile_of(const Device& device) {
  return device.slice ? device.slice->profile : std::string();
}

}  // namespace fairlead
