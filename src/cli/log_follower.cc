#include "cli/log_follower.h"

#include <algorithm>

namespace fairlead::cli {
namespace {

// How much of `tail` the anchor already covers, when the tail begins inside the anchor.
std::size_t overlap(std::string_view anchor, std::string_view tail) {
  std::size_t length = std::min(anchor.size(), tail.size());
  while (length > 0 && !anchor.ends_with(tail.substr(0, length))) --length;
  return length;
}

}  // namespace

bool LogFollower::reaches(std::string_view tail) const {
  return anchor_.empty() || tail.find(anchor_) != std::string_view::npos;
}

std::string_view LogFollower::next(std::string_view tail) {
  const std::size_t at = anchor_.empty() ? std::string_view::npos : tail.rfind(anchor_);
  const std::size_t known = at == std::string_view::npos ? overlap(anchor_, tail) : at + anchor_.size();
  if (!tail.empty()) anchor_ = tail.substr(tail.size() - std::min(tail.size(), kAnchorBytes));
  return tail.substr(known);
}

}  // namespace fairlead::cli
