// The parser's working state, shared by its source files: parser.cc (module level), parser_function.cc (bodies and
// instructions), parser_scope.cc (names in bodies), parser_variable.cc (variables and initialisers), parser_expression.cc
// (constants).
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "softgpu/ptx/text/lexer.h"
#include "softgpu/ptx/text/parser.h"

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

// The value of a constant expression.
struct Constant {
  std::uint64_t bits = 0;
  bool is_unsigned = false;
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
  bool declare_variable(ast::Variable variable);
  bool declare_family(const ast::Variable& variable, std::size_t count);
  bool variable(Space space, ast::Variable& variable);
  bool variable_type(Space space, ast::Variable& variable);
  bool declarator(ast::Variable& variable, std::size_t& family);
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
  bool array_element(ast::Operand& out, const ast::Variable& variable);
  struct ElementAddress {
    ast::Operand address, index, size, array;
  };
  void add_element_address(ast::Operand& out, int index, std::size_t element_bytes);
  void push_element_address(const ElementAddress& element);
  void push_instruction(const ast::Instruction& instruction);
  bool starts_expression() const;
  bool second_destination(int line, ast::Operand& out);
  bool number_operand(ast::Operand& out);
  bool guard(int& index, bool& negated);

  // parser_scope.cc
  std::string_view keep_name(std::string name);
  bool find_register(std::string_view name, int& index) const;
  const LocalName* find_local(std::string_view name) const;
  const LocalName* find_family(std::string_view name, int& number) const;
  const ast::Variable* find_module_variable(std::string_view name) const;
  void declare(std::string_view name, LocalName local);
  bool enter_scope();
  void leave_scope();
  int add_local_variable(const ast::Variable& variable);
  void add_scoped_variable(ast::Variable variable);
  void add_module_variable(ast::Variable variable);
  using LabelNames = std::map<std::pair<std::string_view, int>, std::string_view>;  // by name and scope
  void note_label(std::string_view name, int line);
  int scope_of_label(const LabelNames& names, std::string_view name, int scope) const;
  bool resolve_labels();

  // parser_expression.cc
  bool constant_expression(Constant& out);
  bool constant_term(Constant& out);
  bool conditional_rest(Constant& out);
  bool binary_expression(int least_precedence, Constant& out);
  bool unary_expression(Constant& out);
  bool primary_expression(Constant& out);
  std::string_view peek_operator(int& precedence) const;

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
  struct Scope {
    int id = 0;
    std::size_t mark = 0;  // of shadowed_
  };
  struct Label {
    std::string_view name;
    int scope = 0;
    int line = 0;
  };

  Lexer lexer_;
  Token token_;
  ParseResult result_;
  ast::Function* function_ = nullptr;  // the body being parsed
  std::unordered_map<std::string_view, LocalName> locals_;
  std::unordered_map<std::string_view, std::size_t> module_variables_;
  unsigned last_serial_ = 0;
  std::vector<Shadowed> shadowed_;  // undone when a scope ends
  std::vector<Scope> scopes_;       // that are open, the function's own first
  // Of the function: the scope around each scope, the labels, and where instructions and branch tables stand.
  std::vector<int> scope_parents_;
  std::vector<Label> labels_;
  std::vector<int> instruction_scopes_, table_scopes_;
  std::string_view opcode_;  // of the instruction being parsed
  int depth_ = 0;
  int expression_depth_ = 0;
  std::vector<ElementAddress> element_addresses_;  // of array elements that the instruction names by a register
  // Operands behind the first of [texture, {x, y}]; they follow the bracket's own in the instruction.
  std::vector<ast::Operand> bracketed_;
};

}  // namespace softgpu::ptx
