// The variables of a module by name, and names that the parser makes.
//
// A variable of the module's spaces in a function, as `.shared` is: other functions and scopes may have one of the same name, so
// it is known to the module by a name that no text can spell. Example: `tile` of kernel `k` is `k.tile.3`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "softgpu/ptx/text/ast.h"
#include "softgpu/ptx/text/parser.h"

namespace softgpu::ptx {

class ModuleNames {
 public:
  // Adds to `result`, which must outlive this.
  explicit ModuleNames(ParseResult& result) : result_(result) {}

  // A view that lives as long as the result's names.
  std::string_view keep(std::string name);
  void add(ast::Variable variable);
  // The variable of that name in a body of `function`; returns its name in the module.
  std::string_view add_scoped(std::string_view function, ast::Variable variable);
  // The last that was added under the name, or null. Valid until the next is added.
  const ast::Variable* find(std::string_view name) const;

 private:
  ParseResult& result_;
  std::unordered_map<std::string_view, std::size_t> variables_;
};

}  // namespace softgpu::ptx
