// Names in the nested scopes of a function body: what is declared in a scope is known to its end, and hides what a name
// meant outside.
//
//   .reg .b32 %r<8>;  { .reg .b64 %r1; mov.b64 %r1, 1; }  mov.b32 %r1, 2;    two registers: the scope's own, the family's
//
// A look-up of a name takes one step, of a member of a family one for each digit of its number.
#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace softgpu::ptx {

// What a name inside a function means. A family is %r<8>: eight registers %r0 to %r7.
struct LocalName {
  enum class Kind : std::uint8_t { kRegister, kFamily, kVariable, kModuleVariable };
  Kind kind = Kind::kRegister;
  int index = 0;  // first register, or variable
  int count = 1;
  unsigned serial = 0;           // later declarations have higher ones
  std::string_view module_name;  // of a kModuleVariable
};

class Scopes {
 public:
  // Forgets everything, for the next function. What is declared before the first scope stays known behind the last.
  void clear();

  // False: kDeepest are open already.
  bool open();
  // Forgets what the innermost scope has declared. REQUIRES: one is open.
  void close();
  bool any_open() const { return !open_.empty(); }
  // Number of the innermost scope; scopes are counted as they are opened. REQUIRES: one is open.
  int current() const { return open_.back().id; }
  // The scope around each scope, by number; -1: none.
  const std::vector<int>& parents() const { return parents_; }

  // In place of what the name meant until now.
  void declare(std::string_view name, LocalName local);
  // Null when nothing declares it. Valid until the next declaration.
  const LocalName* find(std::string_view name) const;
  // A register of its own or a member of a family, whichever was declared last, which is in the innermost scope.
  bool find_register(std::string_view name, int& index) const;

  static constexpr std::size_t kDeepest = 1000;

 private:
  struct Shadowed {
    std::string_view name;
    bool existed = false;
    LocalName before;
  };
  struct Scope {
    int id = 0;
    std::size_t mark = 0;  // of shadowed_
  };

  const LocalName* find_family(std::string_view name, int& number) const;

  std::unordered_map<std::string_view, LocalName> locals_;
  unsigned last_serial_ = 0;
  std::vector<Shadowed> shadowed_;  // undone when a scope ends
  std::vector<Scope> open_;         // the function's own first
  std::vector<int> parents_;
};

}  // namespace softgpu::ptx
