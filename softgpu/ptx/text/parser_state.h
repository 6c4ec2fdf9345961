// The parser's working state, shared by its source files: parser.cc (module level), parser_function.cc (bodies and
// instructions), parser_variable.cc (variables and initialisers).
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "softgpu/ptx/text/lexer.h"
#include "softgpu/ptx/text/parser.h"

namespace softgpu::ptx {

// What a name inside a function means. A family is %r<8>: eight registers %r0 to %r7.
struct LocalName {
  enum class Kind : std::uint8_t { kRegister, kFamily, kVariable };
  Kind kind = Kind::kRegister;
  int index = 0;  // first register, or variable
  int count = 1;
};

// Every parse function returns false after the first error, which stays recorded.
class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) { advance(); }
  ParseResult run();

 private:
  // parser.cc
  bool module_item();
  bool linking_item();
  bool alias();
  bool skip_statement();
  bool skip_section();
  bool function(bool is_entry);
  bool function_header(ast::Function& function);
  bool performance_directive(ast::Function& function);

  // parser_variable.cc
  bool variable_list(Space space, bool is_extern);
  bool variable(Space space, ast::Variable& variable);
  bool variable_type(Space space, ast::Variable& variable);
  bool declarator(ast::Variable& variable);
  bool dimensions(ast::Variable& variable, bool& is_unsized);
  bool initialiser(ast::Variable& variable);
  bool initialiser_value(ast::Variable& variable);
  bool parameter_list(std::vector<ast::Variable>& out);

  // parser_function.cc
  bool body();
  bool statement();
  bool directive_statement();
  bool register_declaration();
  bool declare_register(Type type);
  bool label_or_instruction();
  bool label_directive(std::string_view label);
  bool name_list(std::vector<std::string_view>& names);
  bool instruction(int guard, bool guard_negated);
  bool operand_list(char closing);
  bool operand(ast::Operand& out);
  bool list_operand(char closing, ast::Operand& out);
  bool address_operand(ast::Operand& out);
  bool named_operand(ast::Operand& out);
  bool symbol_offset(ast::Operand& out, const ast::Variable* variable);
  bool second_destination(int line, ast::Operand& out);
  bool number_operand(ast::Operand& out);
  bool guard(int& index, bool& negated);
  bool find_register(std::string_view name, int& index);
  const LocalName* find_local(std::string_view name) const;
  const ast::Variable* find_module_variable(std::string_view name) const;
  void declare(std::string_view name, LocalName local);
  void leave_scope(std::size_t mark);
  int add_local_variable(const ast::Variable& variable);

  // Tokens.
  void advance() { token_ = lexer_.next(); }
  bool is(char punctuation) const { return token_.kind == Token::Kind::kPunctuation && token_.text[0] == punctuation; }
  bool is_dotted(std::string_view word) const { return token_.kind == Token::Kind::kDotted && token_.text == word; }
  bool accept(char punctuation);
  bool expect(char punctuation);
  bool expect_name(std::string_view& name, const char* what);
  bool expect_count(std::size_t& value, const char* what);
  bool fail(std::string message, LoadError::Kind kind = LoadError::Kind::kSyntax);
  bool fail_at(int line, std::string message, LoadError::Kind kind = LoadError::Kind::kSyntax);

  struct Shadowed {
    std::string_view name;
    bool existed = false;
    LocalName before;
  };

  Lexer lexer_;
  Token token_;
  ParseResult result_;
  ast::Function* function_ = nullptr;  // the body being parsed
  std::unordered_map<std::string_view, LocalName> locals_;
  std::vector<Shadowed> shadowed_;  // undone when a scope ends
  int depth_ = 0;
  // Operands behind the first of [texture, {x, y}]; they follow the bracket's own in the instruction.
  std::vector<ast::Operand> bracketed_;
};

}  // namespace softgpu::ptx
