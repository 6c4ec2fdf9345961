// PTX text -> tree. Checks syntax, names of registers and local variables; knows nothing of what instructions mean.
#pragma once

#include <optional>
#include <string_view>

#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/text/ast.h"

namespace softgpu::ptx {

struct ParseResult {
  ast::Module module;
  std::optional<LoadError> error;  // kind kSyntax or kUnsupported, with the line
};

// `text` must outlive the tree, which holds views into it.
ParseResult parse(std::string_view text);

}  // namespace softgpu::ptx
