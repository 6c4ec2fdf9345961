#include "softgpu/ptx/text/expression_reader.h"

#include <array>

namespace softgpu::ptx {
namespace {

constexpr int kDeepestExpression = 64;

struct Operator {
  std::string_view text;
  int precedence;  // higher binds closer
};

// The longer of two that begin alike stands first.
constexpr std::array<Operator, 18> kOperators = {{{"||", 1},
                                                  {"&&", 2},
                                                  {"==", 6},
                                                  {"!=", 6},
                                                  {"<=", 7},
                                                  {">=", 7},
                                                  {"<<", 8},
                                                  {">>", 8},
                                                  {"|", 3},
                                                  {"^", 4},
                                                  {"&", 5},
                                                  {"<", 7},
                                                  {">", 7},
                                                  {"+", 9},
                                                  {"-", 9},
                                                  {"*", 10},
                                                  {"/", 10},
                                                  {"%", 10}}};

constexpr int kAdditive = 9;

Constant signed_value(std::int64_t value) {
  return {static_cast<std::uint64_t>(value), false};
}

std::uint64_t shift_right(const Constant& a, std::uint64_t by) {
  if (by > 63) return !a.is_unsigned && static_cast<std::int64_t>(a.bits) < 0 ? ~std::uint64_t{0} : 0;
  return a.is_unsigned ? a.bits >> by : static_cast<std::uint64_t>(static_cast<std::int64_t>(a.bits) >> by);
}

bool is_less(const Constant& a, const Constant& b, bool is_unsigned) {
  return is_unsigned ? a.bits < b.bits : static_cast<std::int64_t>(a.bits) < static_cast<std::int64_t>(b.bits);
}

// Division by zero gives nothing.
bool divide(const Constant& a, const Constant& b, bool is_unsigned, bool wants_rest, std::uint64_t& out) {
  if (b.bits == 0) return false;
  if (is_unsigned) {
    out = wants_rest ? a.bits % b.bits : a.bits / b.bits;
    return true;
  }
  if (b.bits == ~std::uint64_t{0}) {  // the smallest number has no positive counterpart
    out = wants_rest ? 0 : std::uint64_t{0} - a.bits;
    return true;
  }
  const auto left = static_cast<std::int64_t>(a.bits), right = static_cast<std::int64_t>(b.bits);
  out = static_cast<std::uint64_t>(wants_rest ? left % right : left / right);
  return true;
}

bool combine(std::string_view op, const Constant& a, const Constant& b, Constant& out) {
  const bool is_unsigned = a.is_unsigned || b.is_unsigned;
  out.is_unsigned = is_unsigned;
  if (op == "/" || op == "%") return divide(a, b, is_unsigned, op == "%", out.bits);
  if (op == "+") out.bits = a.bits + b.bits;
  if (op == "-") out.bits = a.bits - b.bits;
  if (op == "*") out.bits = a.bits * b.bits;
  if (op == "&") out.bits = a.bits & b.bits;
  if (op == "|") out.bits = a.bits | b.bits;
  if (op == "^") out.bits = a.bits ^ b.bits;
  if (op == "<<") out = {b.bits > 63 ? 0 : a.bits << b.bits, a.is_unsigned};
  if (op == ">>") out = {shift_right(a, b.bits), a.is_unsigned};
  if (op == "==") out = signed_value(a.bits == b.bits);
  if (op == "!=") out = signed_value(a.bits != b.bits);
  if (op == "<") out = signed_value(is_less(a, b, is_unsigned));
  if (op == ">") out = signed_value(is_less(b, a, is_unsigned));
  if (op == "<=") out = signed_value(!is_less(b, a, is_unsigned));
  if (op == ">=") out = signed_value(!is_less(a, b, is_unsigned));
  if (op == "&&") out = signed_value(a.bits != 0 && b.bits != 0);
  if (op == "||") out = signed_value(a.bits != 0 || b.bits != 0);
  return true;
}

// One expression. `depth_` counts what is nested in it.
class Expression {
 public:
  explicit Expression(TokenReader& reader) : reader_(reader) {}
  bool whole(Constant& out);
  bool term(Constant& out) { return binary(kAdditive + 1, out); }

 private:
  bool conditional_rest(Constant& out);
  bool binary(int least_precedence, Constant& out);
  bool unary(Constant& out);
  bool primary(Constant& out);
  std::string_view peek_operator(int& precedence) const;

  TokenReader& reader_;
  int depth_ = 0;
};

// The operator that begins at the current token, which is not taken. One of two characters is two tokens without anything
// between them.
std::string_view Expression::peek_operator(int& precedence) const {
  const bool is_percent = reader_.is_name() && reader_.token().text == "%";
  if (reader_.token().kind != Token::Kind::kPunctuation && !is_percent) return {};
  const Token next = reader_.following();
  const bool adjoins = next.kind == Token::Kind::kPunctuation && next.text.data() == reader_.token().text.data() + 1;
  for (const Operator& known : kOperators) {
    if (known.text[0] != reader_.token().text[0]) continue;
    if (known.text.size() == 2 && (!adjoins || next.text[0] != known.text[1])) continue;
    precedence = known.precedence;
    return known.text;
  }
  return {};
}

bool Expression::whole(Constant& out) {
  return binary(1, out) && conditional_rest(out);
}

// `condition ? a : b`
bool Expression::conditional_rest(Constant& out) {
  if (!reader_.accept('?')) return true;
  Constant yes, no;
  if (!whole(yes) || !reader_.expect(':') || !whole(no)) return false;
  out = out.bits != 0 ? yes : no;
  return true;
}

bool Expression::binary(int least_precedence, Constant& out) {
  if (!unary(out)) return false;
  int precedence = 0;
  for (std::string_view op = peek_operator(precedence); !op.empty() && precedence >= least_precedence;
       op = peek_operator(precedence)) {
    const int line = reader_.token().line, own_precedence = precedence;
    for (std::size_t i = 0; i < op.size(); ++i) reader_.advance();
    Constant right;
    if (!binary(own_precedence + 1, right)) return false;
    if (!combine(op, out, right, out)) return reader_.fail_at(line, "division by zero in a constant expression");
  }
  return true;
}

bool Expression::unary(Constant& out) {
  if (++depth_ > kDeepestExpression) return reader_.fail("constant expression nested more than 64 deep");
  const bool ok = primary(out);
  --depth_;
  return ok;
}

bool Expression::primary(Constant& out) {
  if (reader_.accept('+')) return unary(out);
  if (reader_.accept('-')) {
    if (!unary(out)) return false;
    out.bits = std::uint64_t{0} - out.bits;
    return true;
  }
  if (reader_.accept('~')) {
    if (!unary(out)) return false;
    out.bits = ~out.bits;
    return true;
  }
  if (reader_.accept('!')) {
    if (!unary(out)) return false;
    out = signed_value(out.bits == 0);
    return true;
  }
  if (reader_.accept('(')) {
    if (reader_.is_dotted("s64") || reader_.is_dotted("u64")) {
      const bool is_unsigned = reader_.is_dotted("u64");
      reader_.advance();
      if (!reader_.expect(')') || !unary(out)) return false;
      out.is_unsigned = is_unsigned;
      return true;
    }
    return whole(out) && reader_.expect(')');
  }
  if (reader_.is_name() && reader_.token().text == "WARP_SZ") {
    out = signed_value(32);
    reader_.advance();
    return true;
  }
  if (reader_.token().kind != Token::Kind::kInteger) return reader_.fail_expected("a number");
  out = {reader_.token().bits, reader_.token().is_unsigned || reader_.token().bits >> 63 != 0};
  reader_.advance();
  return true;
}

}  // namespace

bool starts_expression(const TokenReader& reader) {
  const bool is_sign = reader.is('-') || reader.is('+') || reader.is('~') || reader.is('!');
  const bool is_constant = reader.is_name() && reader.token().text == "WARP_SZ";
  if (!is_sign) return reader.token().kind == Token::Kind::kInteger || is_constant || reader.is('(');
  const Token next = reader.following();
  return next.kind == Token::Kind::kInteger || (next.kind == Token::Kind::kPunctuation && next.text != "[");
}

bool read_expression(TokenReader& reader, Constant& out) {
  return Expression(reader).whole(out);
}

bool read_term(TokenReader& reader, Constant& out) {
  return Expression(reader).term(out);
}

}  // namespace softgpu::ptx
