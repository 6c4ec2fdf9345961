#include "node/peers/function_versions.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "decide/cluster/cluster_view.h"
#include "model/function.h"

namespace fairlead {
namespace {

// Sums of these are alike in whatever order they are added.
std::uint64_t share_of(const std::string& function, const FunctionVersion& version) {
  return function_key(version.node, function) * (static_cast<std::uint64_t>(version.ms) * 2 + 1) +
         function_key(function, version.is_deleted ? "deleted" : "there");
}

// "MS NODE there|deleted NAME"
Result<std::pair<std::string, FunctionVersion>> parse_line(std::string_view line) {
  std::string_view parts[4];
  for (std::string_view& part : parts) {
    const std::size_t space = std::min(line.find(' '), line.size());
    part = line.substr(0, space);
    line.remove_prefix(std::min(space + 1, line.size()));
  }
  FunctionVersion version{.node = std::string(parts[1]), .is_deleted = parts[2] == "deleted"};
  const auto [end, error] = std::from_chars(parts[0].data(), parts[0].data() + parts[0].size(), version.ms);
  const bool is_number = error == std::errc() && end == parts[0].data() + parts[0].size() && version.ms >= 0;
  std::string name(parts[3]);
  if (!is_number || !line.empty() || (parts[2] != "there" && parts[2] != "deleted") || !validate_node_name(parts[1]) ||
      !validate_function_name(name)) {
    return fail(Errc::kCorrupt, "'{}...' is no version of a function", std::string(parts[0].substr(0, 32)));
  }
  return std::pair(std::move(name), std::move(version));
}

}  // namespace

void TooFarAhead::add(const std::string& of, std::int64_t by_ms) {
  if (count++ > 0 && by_ms <= ahead_ms) return;
  function = of;
  ahead_ms = by_ms;
}

std::string TooFarAhead::text() const {
  constexpr std::int64_t kHourMs = std::int64_t{3600} * 1000;
  const std::string others = count == 1 ? "" : fmt::format(", the furthest of {}", count);
  return fmt::format("function {} has a version {} hours ahead of this node's clock{}", function, ahead_ms / kHourMs,
                     others);
}

FunctionVersion FunctionVersions::next(const std::string& function, std::int64_t now_ms,
                                       const std::string& node) const {
  const FunctionVersion* const known = find(function);
  // A file may say so; nothing comes after it.
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  if (known != nullptr && known->ms == kLast) return {.ms = kLast, .node = node};
  return {.ms = known == nullptr ? now_ms : std::max(now_ms, known->ms + 1), .node = node};
}

void FunctionVersions::set(const std::string& function, FunctionVersion version) {
  const auto [place, is_new] = versions_.try_emplace(function);
  if (!is_new) {
    digest_ -= share_of(function, place->second);
    deleted_ -= place->second.is_deleted ? 1 : 0;
  }
  deleted_ += version.is_deleted ? 1 : 0;
  place->second = std::move(version);
  digest_ += share_of(function, place->second);
  if (deleted_ > kMostDeleted) forget_oldest_deleted();
}

void FunctionVersions::forget_oldest_deleted() {
  auto oldest = versions_.end();
  for (auto it = versions_.begin(); it != versions_.end(); ++it) {
    if (it->second.is_deleted && (oldest == versions_.end() || it->second < oldest->second)) oldest = it;
  }
  digest_ -= share_of(oldest->first, oldest->second);
  --deleted_;
  versions_.erase(oldest);
}

const FunctionVersion* FunctionVersions::find(const std::string& function) const {
  const auto known = versions_.find(function);
  return known == versions_.end() ? nullptr : &known->second;
}

FunctionVersions::Missing FunctionVersions::missing(const FunctionVersions& theirs, std::int64_t now_ms) const {
  Missing missing;
  for (const auto& [name, version] : theirs.versions_) {
    const FunctionVersion* const known = find(name);
    if (known != nullptr && !(*known < version)) continue;
    if (version.ms > now_ms + kMostAheadMs) {
      missing.refused.add(name, version.ms - now_ms);
    } else {
      missing.names.push_back(name);
    }
  }
  return missing;
}

TooFarAhead FunctionVersions::too_far_ahead(std::int64_t now_ms) const {
  TooFarAhead ahead;
  for (const auto& [name, version] : versions_) {
    if (version.ms > now_ms + kMostAheadMs) ahead.add(name, version.ms - now_ms);
  }
  return ahead;
}

std::string FunctionVersions::text() const {
  std::string text;
  for (const auto& [name, version] : versions_) {
    text.append(std::to_string(version.ms)).append(" ").append(version.node);
    text.append(version.is_deleted ? " deleted " : " there ").append(name).append("\n");
  }
  return text;
}

Result<FunctionVersions> FunctionVersions::parse(std::string_view text) {
  FunctionVersions versions;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    auto line = parse_line(text.substr(0, end));
    if (!line) return fail(line.error());
    text.remove_prefix(std::min(end + 1, text.size()));
    if (versions.versions_.size() >= kMost) {
      return fail(Errc::kInvalidArgument, "there are more than {} versions of functions", kMost);
    }
    versions.set(line->first, std::move(line->second));
  }
  return versions;
}

}  // namespace fairlead
