// The parser's state; parse_ptx() in ptx.h is the way in. Functions return false when error_ says why they stopped.
//
//   module    header, then variables, functions and aliases in any order
//   function  [(results)] name [(parameters)] directives, then ; or a body
//   body      { items }: registers, variables, labels, tables, instructions, bodies
//
// By recursive descent and one token ahead. What calls itself, initialisers and scopes, is bounded in depth. It takes what no
// compiler would, operands of any kind in any number: who looks at an instruction must look at all of them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/fence/lexer.h"
#include "gpu/fence/ptx.h"

namespace fairlead::fence {

class Parser {
 public:
  Parser(std::string_view text, Names names) : names_(names), lexer_(text), token_(lexer_.next()) {}
  Result<Module> run();

 private:
  // A name of a function's body: a range of registers, or a variable.
  struct Local {
    int variable = -1;
    unsigned bits = 0;
    std::uint64_t count = 0;  // of %r<count>; 0: the name itself
    std::map<std::string_view, int> ids;
  };
  using Scope = std::map<std::string_view, Local>;

  bool fail(const std::string& reason);
  void advance() { token_ = lexer_.next(); }
  bool is(char punctuation) const;
  bool is_dotted(std::string_view word) const { return token_.kind == Token::Kind::kDotted && token_.text == word; }
  bool accept(char punctuation);
  bool accept_dotted(std::string_view word);
  bool expect(char punctuation);
  bool expect_name(std::string_view& name, const char* what);
  bool expect_integer(std::uint64_t& value, const char* what);

  // Modules.
  bool module_item();
  bool header_item();
  bool skip_line();
  bool skip_section();
  bool alias();
  bool linked_item();
  bool function(bool is_entry, std::string_view linkage);
  bool directives();
  bool parameter_list(std::vector<Variable>& out);

  // Variables.
  bool variables(Space space, std::string_view linkage);
  bool variable_type(Variable& out);
  bool variable_facts(Variable& out, bool& is_pointer, bool& is_known);
  bool declarator(Variable& out);
  bool initialiser(Variable& out);
  bool initialiser_value(Variable& out);
  bool keep_variable(Variable variable);

  // Bodies.
  bool body();
  bool body_item();
  bool directive_item();
  bool register_item();
  bool labelled_item(std::string_view name, int line);
  bool prototype_item(std::string_view name, int line);
  bool target_list(Item& item);
  bool instruction_item(Instruction instruction, int line);
  bool operand(Operand& out);
  bool signed_operand(Operand& out);
  bool named_operand(Operand& out);
  bool number_operand(Operand& out);
  bool list_operand(char closing, Operand& out);
  bool address_operand(Operand& out);
  bool offsets(Operand& out);
  void resolve(Operand& out);
  std::optional<int> register_of(std::string_view name);
  Item& add_item(Item::Kind kind, int line, std::string_view name = {});

  const Names names_;
  Lexer lexer_;
  Token token_;
  Module module_;
  std::set<std::string_view> variable_names_;  // of module_.variables
  Function* function_ = nullptr;
  std::vector<Scope> scopes_;
  int depth_ = 0;  // of initialisers
  std::optional<Error> error_;
};

// "function 'f', line 12: reason", as every refusal of the fence begins.
std::string at_line(std::string_view function, int line);

std::optional<Space> space_named(std::string_view dotted);
// Of a scalar type with its dot, such as ".f32"; 0: it is none.
unsigned type_bytes(std::string_view dotted);

}  // namespace fairlead::fence
