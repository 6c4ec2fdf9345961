// Linking: several PTX texts become one. No code is translated; only names are brought together.
//
// A text is cut into its module-level items. An `.extern` declaration gives way to the definition another text has; of
// several `.weak` or `.common` definitions the first stays, unless one is `.visible`; a name that is private to its text
// and also used elsewhere gets a suffix. Declarations come first in the result, so that every name is known when used.
//
// Example: `.extern .func f; .entry k { call f; }` + `.visible .func f { .. }` = `.visible .func f; f { .. } k { .. }`.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace softgpu::ptx {

struct LinkInput {
  std::string_view name;  // for messages
  std::string_view text;
};

struct LinkOutput {
  std::string text;
  std::string error;  // empty on success; names the symbol and the inputs
};

// Error: a name that is used and nowhere defined, a name defined twice, a text that cannot be cut into items. What is
// inside functions is not checked: loading the result does that.
LinkOutput link(std::span<const LinkInput> inputs);

}  // namespace softgpu::ptx
