#include <utility>

#include "softgpu/ptx/text/parser_state.h"

namespace softgpu::ptx {
namespace {

constexpr std::size_t kLargestRegisterCount = 1u << 20;

// Names the grammar reserves for special registers are the %names no declaration introduced.
bool is_special(std::string_view name) {
  return name.size() > 1 && name[0] == '%';
}

}  // namespace

bool Parser::body() {
  if (!expect('{')) return false;
  locals_.clear();
  shadowed_.clear();
  scopes_.clear();
  scope_parents_.clear();
  labels_.clear();
  instruction_scopes_.clear();
  table_scopes_.clear();
  for (const auto* list : {&function_->returns, &function_->parameters}) {
    for (const ast::Variable& variable : *list) {
      declare(variable.name, {LocalName::Kind::kVariable, add_local_variable(variable), 1});
    }
  }
  if (!enter_scope()) return false;
  while (!scopes_.empty()) {
    if (token_.kind == Token::Kind::kEnd)
      return fail("end of text inside function '" + std::string(function_->name) + "'");
    if (accept('{')) {
      if (!enter_scope()) return false;
    } else if (accept('}')) {
      leave_scope();
    } else if (!statement()) {
      return false;
    }
  }
  return resolve_labels();
}

bool Parser::statement() {
  if (accept(';')) return true;
  if (token_.kind == Token::Kind::kDotted) return directive_statement();
  if (is('@')) {
    advance();
    int index = -1;
    bool negated = false;
    return guard(index, negated) && instruction(index, negated);
  }
  return label_or_instruction();
}

bool Parser::directive_statement() {
  const std::string_view word = token_.text;
  if (word == "reg") return register_declaration();
  if (word == "loc" || word == "file") return skip_statement();
  if (word == "pragma" || word == "attribute") {
    while (token_.kind != Token::Kind::kEnd && !is(';')) advance();
    return expect(';');
  }
  const auto space = space_from_name(word);
  if (!space) {
    return fail("directive ." + std::string(word) + " is not supported in a function", LoadError::Kind::kUnsupported);
  }
  advance();
  return variable_list(*space, false);
}

bool Parser::register_declaration() {
  advance();
  const std::string_view word = token_.text;
  const auto type = token_.kind == Token::Kind::kDotted ? type_from_name(word) : std::nullopt;
  if (!type) {
    return fail("registers of type ." + std::string(word) + " are not supported", LoadError::Kind::kUnsupported);
  }
  advance();
  do {
    if (!declare_register(*type)) return false;
  } while (accept(','));
  return expect(';');
}

bool Parser::declare_register(Type type) {
  std::string_view name;
  if (!expect_name(name, "a register name")) return false;
  const int index = static_cast<int>(function_->registers.size());
  if (!accept('<')) {
    function_->registers.push_back(type);
    declare(name, {LocalName::Kind::kRegister, index, 1});
    return true;
  }
  std::size_t count = 0;
  if (!expect_count(count, "a register count") || !expect('>')) return false;
  if (function_->registers.size() + count > kLargestRegisterCount)
    return fail("more than 2^20 registers in a function");
  function_->registers.resize(function_->registers.size() + count, type);
  declare(name, {LocalName::Kind::kFamily, index, static_cast<int>(count)});
  return true;
}

bool Parser::guard(int& index, bool& negated) {
  negated = accept('!');
  std::string_view name;
  const int line = token_.line;
  if (!expect_name(name, "a predicate register")) return false;
  if (!find_register(name, index) || function_->registers[static_cast<std::size_t>(index)] != Type::kPred) {
    return fail_at(line, "'" + std::string(name) + "' is not a predicate register");
  }
  return true;
}

bool Parser::label_or_instruction() {
  if (token_.kind != Token::Kind::kIdentifier) {
    return fail("expected an instruction before '" + std::string(token_.text) + "'");
  }
  // One token decides: a label is a name and a colon.
  Lexer ahead = lexer_;
  const Token following = ahead.next();
  if (following.kind != Token::Kind::kPunctuation || following.text != ":") return instruction(-1, false);
  const Token label = token_;
  advance();
  advance();
  if (is_dotted("branchtargets") || is_dotted("callprototype") || is_dotted("calltargets")) {
    return label_directive(label.text);
  }
  ast::Instruction mark;
  mark.line = label.line;
  mark.label = label.text;
  note_label(label.text, label.line);
  push_instruction(mark);
  return true;
}

void Parser::push_instruction(const ast::Instruction& instruction) {
  function_->instructions.push_back(instruction);
  instruction_scopes_.push_back(scopes_.back().id);
}

bool Parser::name_list(std::vector<std::string_view>& names) {
  do {
    std::string_view name;
    if (!expect_name(name, "a name")) return false;
    names.push_back(name);
  } while (accept(','));
  return expect(';');
}

// `name: .branchtargets L1, L2;` and `name: .callprototype (.param .b32 _) _ (.param .b64 _);`
bool Parser::label_directive(std::string_view label) {
  const bool is_branch_table = is_dotted("branchtargets");
  const bool is_call_table = is_dotted("calltargets");
  advance();
  if (is_branch_table || is_call_table) {
    ast::BranchTable table{label, {}};
    if (!name_list(table.labels)) return false;
    // An indirect call checks its target when it is made.
    if (!is_branch_table) return true;
    note_label(label, token_.line);
    function_->branch_tables.push_back(std::move(table));
    table_scopes_.push_back(scopes_.back().id);
    return true;
  }
  // Indirect calls take the layout from their argument variables, so the prototype is only checked.
  std::vector<ast::Variable> returns, parameters;
  std::string_view underscore;
  if (is('(') && !parameter_list(returns)) return false;
  if (!expect_name(underscore, "_") || (is('(') && !parameter_list(parameters))) return false;
  while (token_.kind == Token::Kind::kDotted) advance();  // .noreturn
  return expect(';');
}

bool Parser::instruction(int guard_index, bool guard_negated) {
  ast::Instruction out;
  out.line = token_.line;
  out.guard = guard_index;
  out.guard_negated = guard_negated;
  if (!expect_name(out.opcode, "an instruction")) return false;
  opcode_ = out.opcode;
  out.first_modifier = static_cast<std::uint32_t>(function_->modifiers.size());
  while (token_.kind == Token::Kind::kDotted) {
    function_->modifiers.push_back(token_.text);
    advance();
  }
  out.modifier_count = static_cast<std::uint32_t>(function_->modifiers.size()) - out.first_modifier;
  // Operands of nested lists go to list_elements, so those of the instruction stay together.
  out.first_operand = static_cast<std::uint32_t>(function_->operands.size());
  if (!is(';') && !operand_list(';')) return false;
  out.operand_count = static_cast<std::uint32_t>(function_->operands.size()) - out.first_operand;
  for (const ElementAddress& element : std::exchange(element_addresses_, {})) push_element_address(element);
  push_instruction(out);
  return expect(';');
}

bool Parser::operand_list(char closing) {
  do {
    ast::Operand parsed;
    if (!operand(parsed)) return false;
    function_->operands.push_back(parsed);
    function_->operands.insert(function_->operands.end(), bracketed_.begin(), bracketed_.end());
    bracketed_.clear();
  } while (accept(','));
  if (is(closing)) return true;
  return fail("expected ',' or '" + std::string(1, closing) + "' before '" + std::string(token_.text) + "'");
}

bool Parser::operand(ast::Operand& out) {
  if (is('!') && !starts_expression()) {
    advance();
    if (token_.kind != Token::Kind::kIdentifier || !named_operand(out)) return fail("expected a predicate after '!'");
    if (out.kind != ast::Operand::Kind::kRegister) return fail("'!' before something that is no register");
    out.negated = true;
    return true;
  }
  if (accept('[')) return address_operand(out);
  if (accept('{')) return list_operand('}', out);
  if (is('(') && opcode_ == "call") {
    advance();
    return list_operand(')', out);
  }
  if (token_.kind == Token::Kind::kIdentifier && !starts_expression()) return named_operand(out);
  if (is('-')) {
    Lexer ahead = lexer_;
    if (ahead.next().kind == Token::Kind::kIdentifier) {
      advance();
      out.negated = true;
      if (!named_operand(out)) return false;
      const bool is_register = out.kind == ast::Operand::Kind::kRegister;
      if (is_register && function_->registers[static_cast<std::size_t>(out.index)] != Type::kPred) return true;
      return fail("'-' before something that is neither a number nor a register");
    }
  }
  return number_operand(out);
}

bool Parser::list_operand(char closing, ast::Operand& out) {
  constexpr std::size_t kLongestList = 256;
  std::vector<ast::Operand> elements;
  if (!is(closing)) {
    do {
      ast::Operand element;
      const bool is_nested = is('{') || (is('(') && opcode_ == "call") || is('[') || (is('!') && !starts_expression());
      if (is_nested) return fail("expected a simple operand in a list");
      if (!operand(element)) return false;
      elements.push_back(element);
    } while (accept(',') && elements.size() < kLongestList);
  }
  if (closing == '}' && elements.size() == 1) {  // ld.b32 {%r1}, [%rd1]: a scalar
    out = elements.front();
    return expect(closing);
  }
  out.kind = ast::Operand::Kind::kList;
  out.index = static_cast<int>(function_->list_elements.size());
  out.count = static_cast<int>(elements.size());
  function_->list_elements.insert(function_->list_elements.end(), elements.begin(), elements.end());
  return expect(closing);
}

// [register], [register+8], [symbol+8], [1024], and of textures [register, {x, y}]
bool Parser::address_operand(ast::Operand& out) {
  if (is('[') || is('{') || is('(') || is('!')) return fail("expected an address");
  if (!operand(out)) return false;
  out.memory = true;
  while (is('+') || is('-')) {
    const bool minus = is('-');
    advance();
    if (!starts_expression()) return fail("expected an offset in an address");
    Constant offset;
    if (!constant_term(offset)) return false;
    const auto before = static_cast<std::uint64_t>(out.offset);
    out.offset = static_cast<std::int64_t>(minus ? before - offset.bits : before + offset.bits);
  }
  while (accept(',')) {
    ast::Operand next;
    if (is('[') || !operand(next)) return fail("expected coordinates in an address");
    bracketed_.push_back(next);
  }
  return expect(']');
}

// The q of p|q, if there is one.
bool Parser::second_destination(int line, ast::Operand& out) {
  if (!accept('|')) return true;
  std::string_view second;
  if (!expect_name(second, "a register after '|'")) return false;
  if (second == "_" || find_register(second, out.second)) return true;
  return fail_at(line, "register '" + std::string(second) + "' is not declared");
}

bool Parser::named_operand(ast::Operand& out) {
  const Token name = token_;
  advance();
  if (name.text == "_") return second_destination(name.line, out);
  if (find_register(name.text, out.index)) {
    out.kind = ast::Operand::Kind::kRegister;
    if (token_.kind == Token::Kind::kDotted) {  // the selector of a video instruction
      out.name = token_.text;
      advance();
      return true;
    }
    return second_destination(name.line, out);
  }
  const LocalName* local = find_local(name.text);
  if (local != nullptr && local->kind == LocalName::Kind::kVariable) {
    out.kind = ast::Operand::Kind::kVariable;
    out.index = local->index;
  } else if (local != nullptr && local->kind == LocalName::Kind::kModuleVariable) {
    out.kind = ast::Operand::Kind::kSymbol;
    out.name = local->module_name;
  } else if (is_special(name.text)) {
    out.kind = ast::Operand::Kind::kSpecial;
    out.name = name.text;
    if (token_.kind == Token::Kind::kDotted) {  // %tid.x: one name in the text
      out.name = std::string_view(name.text.data(), static_cast<std::size_t>(token_.text.end() - name.text.begin()));
      advance();
    }
    return true;
  } else {
    out.kind = ast::Operand::Kind::kSymbol;
    out.name = name.text;
  }
  const bool is_local = out.kind == ast::Operand::Kind::kVariable;
  return symbol_offset(
      out, is_local ? &function_->variables[static_cast<std::size_t>(out.index)] : find_module_variable(out.name));
}

// What may follow a symbol: +8, or [2], which counts elements of an array.
bool Parser::symbol_offset(ast::Operand& out, const ast::Variable* variable) {
  if (variable != nullptr && accept('[')) return array_element(out, *variable);
  if (!is('+') && !is('-')) return true;
  const bool minus = is('-');
  advance();
  Constant offset;
  if (!constant_term(offset)) return false;
  out.offset = static_cast<std::int64_t>(minus ? std::uint64_t{0} - offset.bits : offset.bits);
  return true;
}

// Behind `array[`: a constant, a register, or a register and a constant. The element of a load or store is what it
// accesses; that of any other instruction is an address.
bool Parser::array_element(ast::Operand& out, const ast::Variable& variable) {
  const bool accesses = opcode_ == "ld" || opcode_ == "ldu" || opcode_ == "st" || opcode_ == "atom" || opcode_ == "red";
  const std::size_t bytes = variable.element_bytes;
  int index = -1;
  if (token_.kind == Token::Kind::kIdentifier && find_register(token_.text, index)) {
    const std::size_t index_bytes = size_of(function_->registers[static_cast<std::size_t>(index)]);
    if (index_bytes != 4 && index_bytes != 8) return fail("an index into an array is not 32 or 64 bits wide");
    advance();
    add_element_address(out, index, bytes);
  }
  Constant element;
  const bool has_constant = index < 0 || is('+') || is('-');
  if (index < 0 && !starts_expression()) return fail("expected an offset before '" + std::string(token_.text) + "'");
  if (has_constant && !constant_expression(element)) return false;
  out.offset = static_cast<std::int64_t>(static_cast<std::uint64_t>(out.offset) + element.bits * bytes);
  out.memory = accesses;
  return expect(']');
}

// `out` becomes a register with the address of element `index` of the variable that it names.
void Parser::add_element_address(ast::Operand& out, int index, std::size_t element_bytes) {
  ast::Operand number, size, address;
  number.kind = address.kind = ast::Operand::Kind::kRegister;
  number.index = index;
  size.kind = ast::Operand::Kind::kInteger;
  size.bits = element_bytes;
  address.index = static_cast<int>(function_->registers.size());
  function_->registers.push_back(Type::kU64);
  element_addresses_.push_back({address, number, size, out});
  out = address;
}

// mad.wide.s32 address, index, size, array
void Parser::push_element_address(const ElementAddress& element) {
  const Type type = function_->registers[static_cast<std::size_t>(element.index.index)];
  ast::Instruction sum;
  sum.line = token_.line;
  sum.opcode = "mad";
  sum.first_modifier = static_cast<std::uint32_t>(function_->modifiers.size());
  sum.modifier_count = 2;
  const bool is_wide = size_of(type) == 4;
  function_->modifiers.push_back(is_wide ? "wide" : "lo");
  function_->modifiers.push_back(!is_wide ? "u64" : is_signed(type) ? "s32" : "u32");
  sum.first_operand = static_cast<std::uint32_t>(function_->operands.size());
  sum.operand_count = 4;
  for (const ast::Operand& operand : {element.address, element.index, element.size, element.array}) {
    function_->operands.push_back(operand);
  }
  push_instruction(sum);
}

// Whether a constant expression begins here that is no floating-point number. `!p` is a predicate.
bool Parser::starts_expression() const {
  const bool is_sign = is('-') || is('+') || is('~') || is('!');
  const bool is_constant = token_.kind == Token::Kind::kIdentifier && token_.text == "WARP_SZ";
  if (!is_sign) return token_.kind == Token::Kind::kInteger || is_constant || is('(');
  Lexer ahead = lexer_;
  const Token next = ahead.next();
  return next.kind == Token::Kind::kInteger || (next.kind == Token::Kind::kPunctuation && next.text != "[");
}

bool Parser::number_operand(ast::Operand& out) {
  if (starts_expression()) {
    Constant value;
    if (!constant_expression(value)) return false;
    out.kind = ast::Operand::Kind::kInteger;
    out.bits = value.bits;
    return true;
  }
  const bool negative = accept('-');
  out.bits = token_.bits;
  switch (token_.kind) {
    case Token::Kind::kFloat32:
      out.kind = ast::Operand::Kind::kFloat32;
      if (negative) out.bits ^= std::uint64_t{1} << 31;
      break;
    case Token::Kind::kFloat64:
      out.kind = ast::Operand::Kind::kFloat64;
      if (negative) out.bits ^= std::uint64_t{1} << 63;
      break;
    default: return fail("expected an operand before '" + std::string(token_.text) + "'");
  }
  advance();
  return true;
}

}  // namespace softgpu::ptx
