// Constant expressions: C's operators over 64-bit integers, as PTX has them in operands, offsets, extents and initial
// values. Arithmetic wraps; a value is unsigned when its literal says so or does not fit into 63 bits, and an operation is
// when one of its operands is.
#include <array>

#include "softgpu/ptx/text/parser_state.h"

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

}  // namespace

// The operator that begins at the current token, which is not taken. One of two characters is two tokens without anything
// between them.
std::string_view Parser::peek_operator(int& precedence) const {
  const bool is_percent = token_.kind == Token::Kind::kIdentifier && token_.text == "%";
  if (token_.kind != Token::Kind::kPunctuation && !is_percent) return {};
  Lexer ahead = lexer_;
  const Token next = ahead.next();
  const bool adjoins = next.kind == Token::Kind::kPunctuation && next.text.data() == token_.text.data() + 1;
  for (const Operator& known : kOperators) {
    if (known.text[0] != token_.text[0]) continue;
    if (known.text.size() == 2 && (!adjoins || next.text[0] != known.text[1])) continue;
    precedence = known.precedence;
    return known.text;
  }
  return {};
}

bool Parser::constant_expression(Constant& out) {
  return binary_expression(1, out) && conditional_rest(out);
}

// What is left of `sum` in `symbol + sum` and the like, where the signs belong to the surroundings.
bool Parser::constant_term(Constant& out) {
  return binary_expression(kAdditive + 1, out);
}

// `condition ? a : b`
bool Parser::conditional_rest(Constant& out) {
  if (!accept('?')) return true;
  Constant yes, no;
  if (!constant_expression(yes) || !expect(':') || !constant_expression(no)) return false;
  out = out.bits != 0 ? yes : no;
  return true;
}

bool Parser::binary_expression(int least_precedence, Constant& out) {
  if (!unary_expression(out)) return false;
  int precedence = 0;
  for (std::string_view op = peek_operator(precedence); !op.empty() && precedence >= least_precedence;
       op = peek_operator(precedence)) {
    const int line = token_.line, own_precedence = precedence;
    for (std::size_t i = 0; i < op.size(); ++i) advance();
    Constant right;
    if (!binary_expression(own_precedence + 1, right)) return false;
    if (!combine(op, out, right, out)) return fail_at(line, "division by zero in a constant expression");
  }
  return true;
}

bool Parser::unary_expression(Constant& out) {
  if (++expression_depth_ > kDeepestExpression) return fail("constant expression nested more than 64 deep");
  const bool ok = primary_expression(out);
  --expression_depth_;
  return ok;
}

bool Parser::primary_expression(Constant& out) {
  if (accept('+')) return unary_expression(out);
  if (accept('-')) {
    if (!unary_expression(out)) return false;
    out.bits = std::uint64_t{0} - out.bits;
    return true;
  }
  if (accept('~')) {
    if (!unary_expression(out)) return false;
    out.bits = ~out.bits;
    return true;
  }
  if (accept('!')) {
    if (!unary_expression(out)) return false;
    out = signed_value(out.bits == 0);
    return true;
  }
  if (accept('(')) {
    if (is_dotted("s64") || is_dotted("u64")) {
      const bool is_unsigned = is_dotted("u64");
      advance();
      if (!expect(')') || !unary_expression(out)) return false;
      out.is_unsigned = is_unsigned;
      return true;
    }
    return constant_expression(out) && expect(')');
  }
  if (token_.kind == Token::Kind::kIdentifier && token_.text == "WARP_SZ") {
    out = signed_value(32);
    advance();
    return true;
  }
  if (token_.kind != Token::Kind::kInteger) return fail("expected a number before '" + std::string(token_.text) + "'");
  out = {token_.bits, token_.is_unsigned || token_.bits >> 63 != 0};
  advance();
  return true;
}

}  // namespace softgpu::ptx
