// What names mean within a function's body, from the innermost scope outwards, as the driver does:
//
//   .reg .b64 %a;  { .reg .b32 %a; mov.u32 %a, 1; }  mov.u64 %a, 2;        two registers, of which the inner has id 0
//   .reg .b32 %r<1000>;                                                    none yet: registers are made when they are named
//
// A look-up takes as many steps as there are scopes, at most 64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "gpu/fence/ptx.h"

namespace fairlead::fence {

class Scopes {
 public:
  static constexpr std::size_t kDeepest = 64;

  // Of `function`, whose registers are added to as they are named. It must outlive this.
  explicit Scopes(Function& function) : function_(function) {}

  void open() { scopes_.emplace_back(); }
  // REQUIRES: one is open.
  void close() { scopes_.pop_back(); }
  std::size_t depth() const { return scopes_.size(); }

  // In the innermost scope. `count` of %r<count>; 0: the name itself. False: the name is declared there already.
  bool declare_registers(std::string_view name, unsigned bits, std::uint64_t count);
  // In place of what the name was there.
  void declare_variable(std::string_view name, int index);

  // Index of Function::registers, if the name is a register.
  std::optional<int> register_of(std::string_view name);
  // Writes the register or the variable that the operand names. What is neither stays a name: of the module, a label, or a
  // special register.
  void resolve(Operand& out);

 private:
  // A range of registers, or a variable.
  struct Local {
    int variable = -1;
    unsigned bits = 0;
    std::uint64_t count = 0;  // of %r<count>; 0: the name itself
    std::map<std::string_view, int> ids;
  };
  using Scope = std::map<std::string_view, Local>;

  static Scope::iterator range_of(Scope& scope, std::string_view name);
  std::optional<int> made(Local& local, std::string_view name, bool is_nested);

  Function& function_;
  std::vector<Scope> scopes_;
};

}  // namespace fairlead::fence
