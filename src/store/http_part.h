// How a caller asked over HTTP, as text for the database: method, path and "name: value", a line each. HTTP allows no line end in
// any of them, so nothing is lost, whatever other bytes there are.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/invocation.h"

namespace fairlead::store {

std::string http_text(const std::optional<HttpPart>& http);  // none: ""
std::optional<HttpPart> http_part(std::string_view text);

}  // namespace fairlead::store
