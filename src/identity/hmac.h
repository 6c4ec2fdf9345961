// HMAC-SHA-256 of text by libsodium, and comparison in constant time.
//
// Pure. Threads: any.
#pragma once

#include <string_view>

#include "base/digest.h"

namespace fairlead::identity {

Digest hmac_sha256(std::string_view key, std::string_view text);  // a key of any length

// Takes as long wherever the two differ; of texts of different length it says so at once.
bool are_equal(std::string_view a, std::string_view b);

}  // namespace fairlead::identity
