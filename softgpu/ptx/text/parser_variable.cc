#include <bit>
#include <utility>

#include "softgpu/ptx/text/parser_state.h"

namespace softgpu::ptx {
namespace {

std::uint64_t number_bits(const Token& token, bool negative, Type type) {
  if (token.kind == Token::Kind::kInteger) return negative ? std::uint64_t{0} - token.bits : token.bits;
  if (token.kind == Token::Kind::kFloat32) return token.bits ^ (negative ? std::uint64_t{1} << 31 : 0);
  const double value = std::bit_cast<double>(token.bits) * (negative ? -1 : 1);
  return type == Type::kF32 ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
                            : std::bit_cast<std::uint64_t>(value);
}

}  // namespace

// After the state space: `.align 4 .b8 name[16] = {...}, other;`
bool Parser::variable_list(Space space, bool is_extern) {
  ast::Variable type;
  type.is_extern = is_extern;
  if (!variable_type(space, type)) return false;
  const bool belongs_to_function = space == Space::kLocal || space == Space::kParam;
  do {
    ast::Variable declared = type;
    if (!declarator(declared)) return false;
    if (belongs_to_function) {
      declare(declared.name, {LocalName::Kind::kVariable, add_local_variable(declared), 1});
    } else {
      result_.module.variables.push_back(std::move(declared));
    }
  } while (accept(','));
  return expect(';');
}

bool Parser::variable(Space space, ast::Variable& out) {
  return variable_type(space, out) && declarator(out);
}

// What stands before the name: `.align 4 .v2 .b8`.
bool Parser::variable_type(Space space, ast::Variable& out) {
  out.space = space;
  out.line = token_.line;
  std::size_t width = 1;
  bool has_type = false, has_alignment = false;
  bool is_pointer_fact = false;  // `.param .u64 .ptr .global .align 4 p` states facts about what p points to
  while (token_.kind == Token::Kind::kDotted) {
    const std::string_view word = token_.text;
    advance();
    if (word == "align") {
      std::size_t alignment = 0;
      if (!expect_count(alignment, "an alignment")) return false;
      if (is_pointer_fact) continue;
      has_alignment = true;
      out.alignment = alignment;
    } else if (word == "v2" || word == "v4") {
      width = word == "v2" ? 2 : 4;
    } else if (word == "ptr") {
      is_pointer_fact = true;
    } else if (is_pointer_fact && space_from_name(word)) {
      continue;
    } else if (word == "attribute") {
      for (; token_.kind != Token::Kind::kEnd && !accept(')'); advance()) {
        if (token_.kind == Token::Kind::kDotted && token_.text == "managed") out.is_managed = true;
      }
    } else if (const auto type = type_from_name(word); type && *type != Type::kPred) {
      out.type = *type;
      has_type = true;
    } else {
      return fail("type ." + std::string(word) + " of a variable is not supported", LoadError::Kind::kUnsupported);
    }
  }
  if (out.is_managed && space != Space::kGlobal) return fail("only a variable in .global can be .managed");
  if (!has_type) return fail("expected the type of a variable before '" + std::string(token_.text) + "'");
  out.element_bytes = out.bytes = size_of(out.type) * width;
  if (!has_alignment) out.alignment = out.bytes;
  if (out.alignment == 0 || (out.alignment & (out.alignment - 1)) != 0 || out.alignment > 4096) {
    return fail("alignment " + std::to_string(out.alignment) + " is not a power of two up to 4096");
  }
  return true;
}

// `name[16] = {...}`
bool Parser::declarator(ast::Variable& out) {
  if (!expect_name(out.name, "the name of a variable")) return false;
  bool is_unsized = false;
  if (!dimensions(out, is_unsized)) return false;
  if (accept('=') && !initialiser(out)) return false;
  if (is_unsized) out.bytes = out.initialisers.size() * size_of(out.type);
  if (out.initialisers.size() * size_of(out.type) > out.bytes) {
    return fail("more initial values than variable '" + std::string(out.name) + "' has room for");
  }
  return true;
}

bool Parser::dimensions(ast::Variable& out, bool& is_unsized) {
  constexpr std::size_t kLargestVariable = std::size_t{1} << 40;
  while (accept('[')) {
    if (accept(']')) {
      is_unsized = true;
      continue;
    }
    std::size_t extent = 0;
    if (!expect_count(extent, "an array extent") || !expect(']')) return false;
    if (extent != 0 && out.bytes > kLargestVariable / extent) return fail("variable larger than 2^40 bytes");
    out.bytes *= extent;
  }
  return true;
}

bool Parser::initialiser(ast::Variable& out) {
  if (!accept('{')) return initialiser_value(out);
  if (accept('}')) return true;
  if (++depth_ > 16) return fail("initialiser nested more than 16 deep");
  do {
    if (!initialiser(out)) return false;
  } while (accept(','));
  --depth_;
  return expect('}');
}

bool Parser::initialiser_value(ast::Variable& out) {
  ast::Initialiser value;
  const bool negative = accept('-');
  if (token_.kind == Token::Kind::kInteger || token_.kind == Token::Kind::kFloat32 ||
      token_.kind == Token::Kind::kFloat64) {
    value.bits = number_bits(token_, negative, out.type);
    advance();
    out.initialisers.push_back(value);
    return true;
  }
  if (!expect_name(value.symbol, "an initial value")) return false;
  if (value.symbol == "generic" && accept('(')) {
    value.generic = true;
    if (!expect_name(value.symbol, "a symbol") || !expect(')')) return false;
  }
  if (is('(')) return fail("operator in an initial value is not supported", LoadError::Kind::kUnsupported);
  if (is('+') || is('-')) {
    const bool minus = is('-');
    advance();
    std::size_t offset = 0;
    if (!expect_count(offset, "an offset")) return false;
    value.bits = minus ? std::uint64_t{0} - offset : offset;
  }
  out.initialisers.push_back(value);
  return true;
}

bool Parser::parameter_list(std::vector<ast::Variable>& out) {
  if (!expect('(')) return false;
  if (accept(')')) return true;
  do {
    if (!is_dotted("param")) {
      return fail("parameter in ." + std::string(token_.text) + " space is not supported",
                  LoadError::Kind::kUnsupported);
    }
    advance();
    ast::Variable parameter;
    if (!variable(Space::kParam, parameter)) return false;
    out.push_back(std::move(parameter));
  } while (accept(','));
  return expect(')');
}

}  // namespace softgpu::ptx
