// A function's body: declarations, labels and instructions in scopes that nest. Registers and local variables are resolved
// while it is read, labels at its end.
#pragma once

#include "softgpu/ptx/text/ast.h"
#include "softgpu/ptx/text/module_names.h"
#include "softgpu/ptx/text/scopes.h"
#include "softgpu/ptx/text/token_reader.h"

namespace softgpu::ptx {

// From '{' to its '}', into `function`, whose header has been read. `scopes` are cleared, and known afterwards are parameters
// alone. False when the reader has failed.
bool read_body(TokenReader& reader, Scopes& scopes, ModuleNames& names, ast::Function& function);

}  // namespace softgpu::ptx
