// By the first token. Lists and addresses hold simple operands only, so that nothing here calls itself more than once.
#include "gpu/fence/operand_reader.h"

namespace fairlead::fence {
namespace {

class OperandReader {
 public:
  OperandReader(TokenReader& reader, Scopes& scopes) : reader_(reader), scopes_(scopes) {}
  bool read(Operand& out);

 private:
  bool signed_operand(Operand& out);
  bool named_operand(Operand& out);
  bool number_operand(Operand& out);
  bool list_operand(char closing, Operand& out);
  bool address_operand(Operand& out);
  bool offsets(Operand& out);

  TokenReader& reader_;
  Scopes& scopes_;
};

bool OperandReader::read(Operand& out) {
  if (reader_.is('!') || reader_.is('-')) return signed_operand(out);
  if (reader_.accept('[')) return address_operand(out);
  if (reader_.accept('{')) return list_operand('}', out);
  if (reader_.accept('(')) return list_operand(')', out);
  return reader_.token().kind == Token::Kind::kName ? named_operand(out) : number_operand(out);
}

bool OperandReader::signed_operand(Operand& out) {
  const bool is_not = reader_.is('!');
  reader_.advance();
  if (reader_.token().kind == Token::Kind::kName) {
    if (!named_operand(out)) return false;
    out.negated = true;
    return out.register_id >= 0 || reader_.fail("a sign before something that is no register");
  }
  if (is_not) return reader_.fail("expected a predicate behind '!'");
  out.negated = true;
  return number_operand(out);
}

bool OperandReader::number_operand(Operand& out) {
  if (reader_.token().kind != Token::Kind::kInteger && reader_.token().kind != Token::Kind::kFloat) {
    return reader_.fail(fmt::format("expected an operand before '{}'", reader_.token().text));
  }
  out.kind = Operand::Kind::kNumber;
  out.name = reader_.token().text;
  out.bits = reader_.token().bits;
  reader_.advance();
  return true;
}

bool OperandReader::named_operand(Operand& out) {
  if (!reader_.expect_name(out.name, "a name")) return false;
  scopes_.resolve(out);
  if (reader_.token().kind == Token::Kind::kDotted) {
    out.suffix = reader_.token().text;
    reader_.advance();
  }
  if (reader_.accept('|')) {
    if (!reader_.expect_name(out.second, "a register behind '|'")) return false;
    out.second_id = scopes_.register_of(out.second).value_or(-1);
    return out.second_id >= 0 || out.second == "_" || reader_.fail(fmt::format("'{}' is no register", out.second));
  }
  return out.register_id >= 0 || offsets(out);
}

// Lists hold simple operands: PTX has no list within a list, and an address in one would escape those who count addresses.
bool OperandReader::list_operand(char closing, Operand& out) {
  out.kind = Operand::Kind::kList;
  out.is_parenthesised = closing == ')';
  while (!reader_.is(closing)) {
    if (reader_.is('{') || reader_.is('(') || reader_.is('[') || reader_.is('!'))
      return reader_.fail("expected a simple operand in a list");
    out.elements.emplace_back();
    if (!read(out.elements.back())) return false;
    if (!reader_.accept(',')) break;
  }
  return reader_.expect(closing);
}

// [register+8], [symbol], [1024]
bool OperandReader::address_operand(Operand& out) {
  out.kind = Operand::Kind::kAddress;
  if (reader_.token().kind == Token::Kind::kInteger) {
    out.bits = reader_.token().bits;
    reader_.advance();
  } else {
    if (!reader_.expect_name(out.name, "an address")) return false;
    scopes_.resolve(out);
  }
  if (!offsets(out)) return false;
  while (reader_.accept(',')) {  // coordinates of a texture
    out.elements.emplace_back();
    if (reader_.is('[') || !read(out.elements.back())) return reader_.fail("expected coordinates in an address");
  }
  return reader_.expect(']');
}

bool OperandReader::offsets(Operand& out) {
  while (reader_.is('+') || reader_.is('-')) {
    bool minus = reader_.is('-');
    reader_.advance();
    if (reader_.accept('-')) minus = !minus;
    if (reader_.token().kind != Token::Kind::kInteger)
      return reader_.fail(fmt::format("expected an offset before '{}'", reader_.token().text));
    // Modulo 2^64, as the hardware adds.
    const std::uint64_t sum = static_cast<std::uint64_t>(out.offset) +
                              (minus ? std::uint64_t{0} - reader_.token().bits : reader_.token().bits);
    out.offset = static_cast<std::int64_t>(sum);
    out.has_offset = true;
    reader_.advance();
  }
  return true;
}

}  // namespace

bool read_operand(TokenReader& reader, Scopes& scopes, Operand& out) {
  return OperandReader(reader, scopes).read(out);
}

}  // namespace fairlead::fence
