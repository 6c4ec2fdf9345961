#include "softgpu/ptx/text/operand_reader.h"

#include <string>
#include <utility>

namespace softgpu::ptx {
namespace {

// Names the grammar reserves for special registers are the %names no declaration introduced.
bool is_special(std::string_view name) {
  return name.size() > 1 && name[0] == '%';
}

}  // namespace

bool OperandReader::read(std::string_view opcode) {
  opcode_ = opcode;
  do {
    ast::Operand parsed;
    if (!operand(parsed)) return false;
    function_.operands.push_back(parsed);
    function_.operands.insert(function_.operands.end(), bracketed_.begin(), bracketed_.end());
    bracketed_.clear();
  } while (reader_.accept(','));
  return reader_.is(';') || reader_.fail_expected("',' or ';'");
}

std::vector<ElementAddress> OperandReader::take_element_addresses() {
  return std::exchange(element_addresses_, {});
}

bool OperandReader::operand(ast::Operand& out) {
  if (reader_.is('!') && !starts_expression(reader_)) return predicate(out);
  if (reader_.accept('[')) return address(out);
  if (reader_.accept('{')) return list('}', out);
  if (reader_.is('(') && opcode_ == "call") {
    reader_.advance();
    return list(')', out);
  }
  if (reader_.is_name() && !starts_expression(reader_)) return named(out);
  if (reader_.is('-') && reader_.following().kind == Token::Kind::kIdentifier) return negative(out);
  return number(out);
}

bool OperandReader::predicate(ast::Operand& out) {
  reader_.advance();
  if (!reader_.is_name() || !named(out)) return reader_.fail("expected a predicate after '!'");
  if (out.kind != ast::Operand::Kind::kRegister) return reader_.fail("'!' before something that is no register");
  out.negated = true;
  return true;
}

bool OperandReader::negative(ast::Operand& out) {
  reader_.advance();
  out.negated = true;
  if (!named(out)) return false;
  const bool is_register = out.kind == ast::Operand::Kind::kRegister;
  if (is_register && register_type(out.index) != Type::kPred) return true;
  return reader_.fail("'-' before something that is neither a number nor a register");
}

bool OperandReader::list(char closing, ast::Operand& out) {
  constexpr std::size_t kLongestList = 256;
  std::vector<ast::Operand> elements;
  if (!reader_.is(closing)) {
    do {
      ast::Operand element;
      const bool is_nested = reader_.is('{') || (reader_.is('(') && opcode_ == "call") || reader_.is('[') ||
                             (reader_.is('!') && !starts_expression(reader_));
      if (is_nested) return reader_.fail("expected a simple operand in a list");
      if (!operand(element)) return false;
      elements.push_back(element);
    } while (reader_.accept(',') && elements.size() < kLongestList);
  }
  if (closing == '}' && elements.size() == 1) {  // ld.b32 {%r1}, [%rd1]: a scalar
    out = elements.front();
    return reader_.expect(closing);
  }
  out.kind = ast::Operand::Kind::kList;
  out.index = static_cast<int>(function_.list_elements.size());
  out.count = static_cast<int>(elements.size());
  function_.list_elements.insert(function_.list_elements.end(), elements.begin(), elements.end());
  return reader_.expect(closing);
}

// [register], [register+8], [symbol+8], [1024], and of textures [register, {x, y}]
bool OperandReader::address(ast::Operand& out) {
  if (reader_.is('[') || reader_.is('{') || reader_.is('(') || reader_.is('!'))
    return reader_.fail("expected an address");
  if (!operand(out)) return false;
  out.memory = true;
  while (reader_.is('+') || reader_.is('-')) {
    const bool minus = reader_.is('-');
    reader_.advance();
    if (!starts_expression(reader_)) return reader_.fail("expected an offset in an address");
    Constant offset;
    if (!read_term(reader_, offset)) return false;
    const auto before = static_cast<std::uint64_t>(out.offset);
    out.offset = static_cast<std::int64_t>(minus ? before - offset.bits : before + offset.bits);
  }
  while (reader_.accept(',')) {
    ast::Operand next;
    if (reader_.is('[') || !operand(next)) return reader_.fail("expected coordinates in an address");
    bracketed_.push_back(next);
  }
  return reader_.expect(']');
}

// The q of p|q, if there is one.
bool OperandReader::second_destination(int line, ast::Operand& out) {
  if (!reader_.accept('|')) return true;
  std::string_view second;
  if (!reader_.expect_name(second, "a register after '|'")) return false;
  if (second == "_" || scopes_.find_register(second, out.second)) return true;
  return reader_.fail_at(line, "register '" + std::string(second) + "' is not declared");
}

bool OperandReader::named(ast::Operand& out) {
  const Token name = reader_.token();
  reader_.advance();
  if (name.text == "_") return second_destination(name.line, out);
  if (scopes_.find_register(name.text, out.index)) {
    out.kind = ast::Operand::Kind::kRegister;
    if (reader_.is_dotted()) {  // the selector of a video instruction
      out.name = reader_.token().text;
      reader_.advance();
      return true;
    }
    return second_destination(name.line, out);
  }
  const LocalName* local = scopes_.find(name.text);
  if (local != nullptr && local->kind == LocalName::Kind::kVariable) {
    out.kind = ast::Operand::Kind::kVariable;
    out.index = local->index;
  } else if (local != nullptr && local->kind == LocalName::Kind::kModuleVariable) {
    out.kind = ast::Operand::Kind::kSymbol;
    out.name = local->module_name;
  } else if (is_special(name.text)) {
    out.kind = ast::Operand::Kind::kSpecial;
    out.name = name.text;
    if (reader_.is_dotted()) {  // %tid.x: one name in the text
      const auto length = static_cast<std::size_t>(reader_.token().text.end() - name.text.begin());
      out.name = std::string_view(name.text.data(), length);
      reader_.advance();
    }
    return true;
  } else {
    out.kind = ast::Operand::Kind::kSymbol;
    out.name = name.text;
  }
  const bool is_local = out.kind == ast::Operand::Kind::kVariable;
  return symbol_offset(out,
                       is_local ? &function_.variables[static_cast<std::size_t>(out.index)] : names_.find(out.name));
}

// What may follow a symbol: +8, or [2], which counts elements of an array.
bool OperandReader::symbol_offset(ast::Operand& out, const ast::Variable* variable) {
  if (variable != nullptr && reader_.accept('[')) return array_element(out, *variable);
  if (!reader_.is('+') && !reader_.is('-')) return true;
  const bool minus = reader_.is('-');
  reader_.advance();
  Constant offset;
  if (!read_term(reader_, offset)) return false;
  out.offset = static_cast<std::int64_t>(minus ? std::uint64_t{0} - offset.bits : offset.bits);
  return true;
}

// Behind `array[`: a constant, a register, or a register and a constant. The element of a load or store is what it
// accesses; that of any other instruction is an address.
bool OperandReader::array_element(ast::Operand& out, const ast::Variable& variable) {
  const bool accesses = opcode_ == "ld" || opcode_ == "ldu" || opcode_ == "st" || opcode_ == "atom" || opcode_ == "red";
  const std::size_t bytes = variable.element_bytes;
  int index = -1;
  if (reader_.is_name() && scopes_.find_register(reader_.token().text, index)) {
    const std::size_t index_bytes = size_of(register_type(index));
    if (index_bytes != 4 && index_bytes != 8) return reader_.fail("an index into an array is not 32 or 64 bits wide");
    reader_.advance();
    add_element_address(out, index, bytes);
  }
  Constant element;
  const bool has_constant = index < 0 || reader_.is('+') || reader_.is('-');
  if (index < 0 && !starts_expression(reader_)) return reader_.fail_expected("an offset");
  if (has_constant && !read_expression(reader_, element)) return false;
  out.offset = static_cast<std::int64_t>(static_cast<std::uint64_t>(out.offset) + element.bits * bytes);
  out.memory = accesses;
  return reader_.expect(']');
}

// `out` becomes a register with the address of element `index` of the variable that it names.
void OperandReader::add_element_address(ast::Operand& out, int index, std::size_t element_bytes) {
  ast::Operand number, size, address;
  number.kind = address.kind = ast::Operand::Kind::kRegister;
  number.index = index;
  size.kind = ast::Operand::Kind::kInteger;
  size.bits = element_bytes;
  address.index = static_cast<int>(function_.registers.size());
  function_.registers.push_back(Type::kU64);
  element_addresses_.push_back({address, number, size, out});
  out = address;
}

bool OperandReader::number(ast::Operand& out) {
  if (starts_expression(reader_)) {
    Constant value;
    if (!read_expression(reader_, value)) return false;
    out.kind = ast::Operand::Kind::kInteger;
    out.bits = value.bits;
    return true;
  }
  const bool negative = reader_.accept('-');
  out.bits = reader_.token().bits;
  switch (reader_.token().kind) {
    case Token::Kind::kFloat32:
      out.kind = ast::Operand::Kind::kFloat32;
      if (negative) out.bits ^= std::uint64_t{1} << 31;
      break;
    case Token::Kind::kFloat64:
      out.kind = ast::Operand::Kind::kFloat64;
      if (negative) out.bits ^= std::uint64_t{1} << 63;
      break;
    default: return reader_.fail_expected("an operand");
  }
  reader_.advance();
  return true;
}

}  // namespace softgpu::ptx
