// SHA-256 and HMAC-SHA-256 of text, by libsodium.
//
// Pure. Threads: any.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace fairlead::identity {

using Digest = std::array<unsigned char, 32>;

Digest sha256(std::string_view text);
Digest hmac_sha256(std::string_view key, std::string_view text);  // a key of any length

std::string to_hex(std::string_view bytes);  // lower case

inline std::string_view as_text(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

// Takes as long wherever the two differ; of texts of different length it says so at once.
bool are_equal(std::string_view a, std::string_view b);

}  // namespace fairlead::identity
