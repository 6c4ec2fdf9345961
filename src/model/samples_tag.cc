#include "model/samples_tag.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_bounds.h"

namespace fairlead {
namespace {

bool is_file_name(std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !text.empty() && text.front() != '.' && std::all_of(text.begin(), text.end(), is_plain);
}

}  // namespace

Result<std::vector<std::string>> parse_samples(std::string_view text, const std::string& where) {
  if (text.size() > kMaxSamplesBytes) {
    return fail(Errc::kInvalidArgument, "{} is {} bytes; {} are the most", where, text.size(), kMaxSamplesBytes);
  }
  if (Status bounded = check_json_bounds(text, where); !bounded) return fail(bounded.error());
  const auto list = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array() || list.empty() || list.size() > kMostSamples) {
    return fail(Errc::kInvalidArgument, "{} must be a JSON array of 1 to {} payloads", where, kMostSamples);
  }
  std::vector<std::string> payloads;
  for (const nlohmann::json& one : list) {
    payloads.push_back(one.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return payloads;
}

Result<std::optional<SamplesTag>> samples_of(const FunctionConfig& config) {
  const auto tag = config.tags.find(std::string(kSamplesTag));
  if (tag == config.tags.end()) return std::optional<SamplesTag>();
  if (!config.tags.contains("gpu:objective-ms")) {
    return fail(Errc::kInvalidArgument, "tag {} is there and gpu:objective-ms is missing: it says what to measure for",
                kSamplesTag);
  }
  SamplesTag samples;
  if (is_file_name(tag->second)) {
    samples.file = tag->second;
    return std::optional(samples);
  }
  auto payloads =
      parse_samples(tag->second, fmt::format("tag {}, which names no file at the top of the code,", kSamplesTag));
  if (!payloads) return fail(payloads.error());
  samples.payloads = *std::move(payloads);
  return std::optional(samples);
}

}  // namespace fairlead
