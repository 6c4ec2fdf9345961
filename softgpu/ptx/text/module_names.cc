#include "softgpu/ptx/text/module_names.h"

#include <utility>

namespace softgpu::ptx {

std::string_view ModuleNames::keep(std::string name) {
  return result_.names.emplace_back(std::move(name));
}

void ModuleNames::add(ast::Variable variable) {
  variables_[variable.name] = result_.module.variables.size();
  result_.module.variables.push_back(std::move(variable));
}

std::string_view ModuleNames::add_scoped(std::string_view function, ast::Variable variable) {
  const std::string_view name = keep(std::string(function) + "." + std::string(variable.name) + "." +
                                     std::to_string(result_.module.variables.size()));
  variable.name = name;
  add(std::move(variable));
  return name;
}

const ast::Variable* ModuleNames::find(std::string_view name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : &result_.module.variables[found->second];
}

}  // namespace softgpu::ptx
