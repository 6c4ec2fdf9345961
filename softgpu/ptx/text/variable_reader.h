// Variables of a module, of a body, and parameters: what stands behind their state space.
//
//   .global .align 4 .b8 a[16] = {1, 2}, b;      two variables of one type, 16 bytes and 1
//   .param .u64 p<2>;                            a family: p0 and p1
//   .param .u64 .ptr .global .align 4 in         a parameter; what it points to is the program's word only, and dropped
//
// Functions return false when the reader has failed (token_reader.h). `scopes` say what names in initial values mean.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "softgpu/ptx/text/ast.h"
#include "softgpu/ptx/text/module_names.h"
#include "softgpu/ptx/text/scopes.h"
#include "softgpu/ptx/text/token_reader.h"

namespace softgpu::ptx {

// `.align 4 .b8 name[16] = {...}, other;`. Each is handed to `keep` when it is read; the names of families' members are made.
bool read_variables(TokenReader& reader, const Scopes& scopes, ModuleNames& names, Space space, bool is_extern,
                    const std::function<void(ast::Variable)>& keep);
// `(.param .b32 a, .param .b64 b)`
bool read_parameters(TokenReader& reader, const Scopes& scopes, std::vector<ast::Variable>& out);

}  // namespace softgpu::ptx
