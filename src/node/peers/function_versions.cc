#include "node/peers/function_versions.h"

#include <algorithm>
#include <charconv>

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

FunctionVersion FunctionVersions::next(const std::string& function, std::int64_t now_ms,
                                       const std::string& node) const {
  const FunctionVersion* const known = find(function);
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

std::vector<std::string> FunctionVersions::missing(const FunctionVersions& theirs) const {
  std::vector<std::string> names;
  for (const auto& [name, version] : theirs.versions_) {
    const FunctionVersion* const known = find(name);
    if (known == nullptr || *known < version) names.push_back(name);
  }
  return names;
}

std::string FunctionVersions::text() const {
  std::string text;
  for (const auto& [name, version] : versions_) {
    text.append(std::to_string(version.ms)).append(" ").append(version.node);
    text.append(version.is_deleted ? " deleted " : " there ").append(name).append("\n");
  }
  return text;
}

Result<FunctionVersions> FunctionVersions::parse(std::string_view text, std::int64_t now_ms) {
  FunctionVersions versions;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    auto line = parse_line(text.substr(0, end));
    if (!line) return fail(line.error());
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line->second.ms > now_ms + kMostAheadMs) {
      return fail(Errc::kInvalidArgument,
                  "function {} has a version {} ms ahead of this node's clock, at most {} are believed", line->first,
                  line->second.ms - now_ms, kMostAheadMs);
    }
    if (versions.versions_.size() >= kMost) {
      return fail(Errc::kInvalidArgument, "there are more than {} versions of functions", kMost);
    }
    versions.set(line->first, std::move(line->second));
  }
  return versions;
}

}  // namespace fairlead
