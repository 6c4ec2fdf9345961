// Labels of a function, which may be used before they are defined, and so are given meaning at its end: a use means the label
// of the innermost scope around it that defines one of the name.
//
//   L: { bra L; L: }  bra L;       the first jumps to the inner one: L.1 from now on; the second to the outer one, L.0
//
// Labels that one scope alone defines keep their names.
#pragma once

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "softgpu/ptx/text/ast.h"
#include "softgpu/ptx/text/module_names.h"
#include "softgpu/ptx/text/scopes.h"
#include "softgpu/ptx/text/token_reader.h"

namespace softgpu::ptx {

class Labels {
 public:
  // In the scope of that number. Instructions and branch tables are noted in the order of the function's lists.
  void define(std::string_view name, int scope, int line) { labels_.push_back({name, scope, line}); }
  void note_instruction(int scope) { instruction_scopes_.push_back(scope); }
  void note_table(int scope) { table_scopes_.push_back(scope); }

  // Gives labels that several scopes define names of their own, in the function's instructions and tables. `parents` are
  // Scopes::parents(). False, and the reader has failed: one scope defines a label twice.
  bool resolve(TokenReader& reader, const std::vector<int>& parents, ModuleNames& names, ast::Function& function) const;

 private:
  struct Label {
    std::string_view name;
    int scope = 0;
    int line = 0;
  };

  std::vector<Label> labels_;
  std::vector<int> instruction_scopes_, table_scopes_;
};

}  // namespace softgpu::ptx
