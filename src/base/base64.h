// Base64 with padding (RFC 4648 section 4), as Lambda's headers and JSON bodies carry bytes.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace fairlead {

std::string base64_encode(std::string_view bytes);

// kInvalidArgument names `field` when the text is not base64.
Result<std::string> base64_decode(std::string_view field, std::string_view text);

}  // namespace fairlead
