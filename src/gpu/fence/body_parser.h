// A function's body: a list of items, in the order of the text, with scopes as items that open and close. Nothing is moved, so
// that the rewriter can write it again in one pass.
#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "gpu/fence/ptx.h"
#include "gpu/fence/token_reader.h"

namespace fairlead::fence {

// Variables of .global and .const, and those of .shared outside of functions, which names tell apart.
struct StaticVariables {
  std::vector<Variable> variables;
  std::set<std::string_view> names;

  // False, and the reader has failed: there is one of that name.
  bool keep(TokenReader& reader, Variable variable);
};

// From '{' to its '}'. Statics of the body are the module's: PTX lets a body declare them, and their memory outlives the call.
// False when the reader has failed.
bool read_body(TokenReader& reader, Function& function, StaticVariables& statics);

}  // namespace fairlead::fence
