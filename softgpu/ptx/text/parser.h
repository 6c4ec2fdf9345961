// PTX text -> tree. Checks syntax, names of registers and local variables; knows nothing of what instructions mean.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/text/ast.h"

namespace softgpu::ptx {

struct ParseResult {
  ast::Module module;
  std::deque<std::string> names;   // that the parser made; the tree holds views into them, too
  std::optional<LoadError> error;  // kSyntax or kUnsupported, with the line
};

// `text` and the result's names must outlive the tree, which holds views into them.
ParseResult parse(std::string_view text);

}  // namespace softgpu::ptx
