// Variables of a module, of a body, and parameters: what stands behind their state space.
//
//   .global .align 4 .b8 a[16] = {1, 2}, b;      two variables of one type, 16 bytes and 1
//   .param .u64 .ptr .global .align 4 in         a parameter; what it points to is the program's word only, and dropped
//
// Functions return false when the reader has failed (token_reader.h).
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "gpu/fence/ptx.h"
#include "gpu/fence/token_reader.h"

namespace fairlead::fence {

// `.align 4 .v2 .b8`: what stands before the name.
bool read_variable_type(TokenReader& reader, Variable& out);
// `name[16][4] = {...}`
bool read_declarator(TokenReader& reader, Variable& out);
// `(.param .b32 a, .param .b64 b)`
bool read_parameters(TokenReader& reader, std::vector<Variable>& out);

// `.align 4 .b8 a[16] = {...}, b;`. Each is handed to `keep` when it is read, which returns false when it fails.
template <class Keep>
bool read_variables(TokenReader& reader, Space space, std::string_view linkage, Keep keep) {
  Variable type;
  type.space = space;
  type.linkage = linkage;
  if (!read_variable_type(reader, type)) return false;
  do {
    Variable declared = type;
    if (!read_declarator(reader, declared) || !keep(std::move(declared))) return false;
  } while (reader.accept(','));
  return reader.expect(';');
}

}  // namespace fairlead::fence
