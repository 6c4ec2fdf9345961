#include <algorithm>
#include <charconv>
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

void Parser::declare(std::string_view name, LocalName local) {
  const auto [entry, inserted] = locals_.try_emplace(name, local);
  shadowed_.push_back({name, !inserted, inserted ? LocalName{} : entry->second});
  entry->second = local;
}

void Parser::leave_scope(std::size_t mark) {
  while (shadowed_.size() > mark) {
    const Shadowed& last = shadowed_.back();
    if (last.existed) {
      locals_[last.name] = last.before;
    } else {
      locals_.erase(last.name);
    }
    shadowed_.pop_back();
  }
}

int Parser::add_local_variable(const ast::Variable& variable) {
  function_->variables.push_back(variable);
  return static_cast<int>(function_->variables.size()) - 1;
}

const LocalName* Parser::find_local(std::string_view name) const {
  const auto entry = locals_.find(name);
  return entry == locals_.end() ? nullptr : &entry->second;
}

// "%r12" is a register of its own or the thirteenth of a family "%r".
bool Parser::find_register(std::string_view name, int& index) {
  if (const LocalName* local = find_local(name); local && local->kind == LocalName::Kind::kRegister) {
    index = local->index;
    return true;
  }
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  const LocalName* family = find_local(name.substr(0, digits));
  int number = 0;
  const auto [end, error] = std::from_chars(name.data() + digits, name.data() + name.size(), number);
  if (!family || family->kind != LocalName::Kind::kFamily || error != std::errc{} || number >= family->count) {
    return false;
  }
  index = family->index + number;
  return true;
}

bool Parser::body() {
  if (!expect('{')) return false;
  locals_.clear();
  shadowed_.clear();
  for (const auto* list : {&function_->returns, &function_->parameters}) {
    for (const ast::Variable& variable : *list) {
      declare(variable.name, {LocalName::Kind::kVariable, add_local_variable(variable), 1});
    }
  }
  std::vector<std::size_t> scopes{shadowed_.size()};
  while (!scopes.empty()) {
    if (token_.kind == Token::Kind::kEnd)
      return fail("end of text inside function '" + std::string(function_->name) + "'");
    if (accept('{')) {
      scopes.push_back(shadowed_.size());
    } else if (accept('}')) {
      leave_scope(scopes.back());
      scopes.pop_back();
    } else if (!statement()) {
      return false;
    }
  }
  return true;
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
  function_->instructions.push_back(mark);
  return true;
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
    if (is_branch_table) function_->branch_tables.push_back(std::move(table));
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
  function_->instructions.push_back(out);
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
  if (accept('!')) {
    if (token_.kind != Token::Kind::kIdentifier || !named_operand(out)) return fail("expected a predicate after '!'");
    if (out.kind != ast::Operand::Kind::kRegister) return fail("'!' before something that is no register");
    out.negated = true;
    return true;
  }
  if (accept('[')) return address_operand(out);
  if (accept('{')) return list_operand('}', out);
  if (accept('(')) return list_operand(')', out);
  if (token_.kind == Token::Kind::kIdentifier) return named_operand(out);
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
      if (is('{') || is('(') || is('[') || is('!')) return fail("expected a simple operand in a list");
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
    const bool also_minus = accept('-');
    if (token_.kind != Token::Kind::kInteger) return fail("expected an offset in an address");
    const auto offset = static_cast<std::int64_t>(token_.bits);
    const auto sum = minus != also_minus ? static_cast<std::uint64_t>(out.offset) - static_cast<std::uint64_t>(offset)
                                         : static_cast<std::uint64_t>(out.offset) + static_cast<std::uint64_t>(offset);
    out.offset = static_cast<std::int64_t>(sum);
    advance();
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
  if (name.text == "WARP_SZ") {
    out.kind = ast::Operand::Kind::kInteger;
    out.bits = 32;
    return true;
  }
  if (find_register(name.text, out.index)) {
    out.kind = ast::Operand::Kind::kRegister;
    if (token_.kind == Token::Kind::kDotted) {  // the selector of a video instruction
      out.name = token_.text;
      advance();
      return true;
    }
    return second_destination(name.line, out);
  }
  if (const LocalName* local = find_local(name.text); local && local->kind == LocalName::Kind::kVariable) {
    out.kind = ast::Operand::Kind::kVariable;
    out.index = local->index;
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
      out, is_local ? &function_->variables[static_cast<std::size_t>(out.index)] : find_module_variable(name.text));
}

// What may follow a symbol outside brackets: +8, or [2], which counts elements of an array.
bool Parser::symbol_offset(ast::Operand& out, const ast::Variable* variable) {
  const bool is_index = variable != nullptr && is('[');
  if (!is_index && !is('+') && !is('-')) return true;
  const bool minus = is('-');
  advance();
  if (token_.kind != Token::Kind::kInteger) return fail("expected an offset before '" + std::string(token_.text) + "'");
  const std::uint64_t bytes = token_.bits * (is_index ? variable->element_bytes : 1);
  out.offset = static_cast<std::int64_t>(minus ? std::uint64_t{0} - bytes : bytes);
  advance();
  return !is_index || expect(']');
}

const ast::Variable* Parser::find_module_variable(std::string_view name) const {
  const auto& variables = result_.module.variables;
  const auto found = std::find_if(variables.rbegin(), variables.rend(),
                                  [&](const ast::Variable& variable) { return variable.name == name; });
  return found == variables.rend() ? nullptr : &*found;
}

bool Parser::number_operand(ast::Operand& out) {
  const bool negative = accept('-');
  out.bits = token_.bits;
  switch (token_.kind) {
    case Token::Kind::kInteger:
      out.kind = ast::Operand::Kind::kInteger;
      if (negative) out.bits = std::uint64_t{0} - out.bits;
      break;
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
