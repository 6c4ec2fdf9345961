// Words that the parser and those who read its tree share; parse_ptx() in ptx.h is the way in.
//
//   space_named(".shared::cta")   Space::kShared        type_bytes(".f16x2")   4
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gpu/fence/ptx.h"

namespace fairlead::fence {

// "function 'f', line 12: reason", as every refusal of the fence begins.
std::string at_line(std::string_view function, int line);

std::optional<Space> space_named(std::string_view dotted);
// Of a scalar type with its dot, such as ".f32"; 0: it is none.
unsigned type_bytes(std::string_view dotted);

}  // namespace fairlead::fence
