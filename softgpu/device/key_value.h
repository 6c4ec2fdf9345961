// `key = value` lines, the format of profiles and of a machine's description.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "softgpu/device/result.h"

namespace softgpu {

using KeyValues = std::map<std::string, std::string, std::less<>>;

// Error: the first line without '=', with an empty key, or whose key was given before.
Result<KeyValues> parse_key_values(std::string_view text);

// The whole of `text` as a decimal number between `low` and `high`. Error: names `key`, the value and the bounds.
Result<std::uint64_t> parse_number(std::string_view key, std::string_view text, std::uint64_t low, std::uint64_t high);

}  // namespace softgpu
