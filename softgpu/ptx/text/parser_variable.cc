#include <bit>
#include <utility>

#include "softgpu/ptx/text/parser_state.h"

namespace softgpu::ptx {
namespace {

std::uint64_t number_bits(const Token& token, bool negative, Type type) {
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
  do {
    ast::Variable declared = type;
    std::size_t family = 0;
    if (!declarator(declared, family)) return false;
    if (!(family != 0 ? declare_family(declared, family) : declare_variable(std::move(declared)))) return false;
  } while (accept(','));
  return expect(';');
}

bool Parser::declare_variable(ast::Variable variable) {
  const bool belongs_to_function = variable.space == Space::kLocal || variable.space == Space::kParam;
  if (belongs_to_function) {
    declare(variable.name, {LocalName::Kind::kVariable, add_local_variable(variable), 1});
  } else if (function_ != nullptr) {
    add_scoped_variable(std::move(variable));
  } else {
    add_module_variable(std::move(variable));
  }
  return true;
}

// `.param .u64 p<2>` declares p0 and p1.
bool Parser::declare_family(const ast::Variable& variable, std::size_t count) {
  constexpr std::size_t kLargestFamily = 4096;
  if (count > kLargestFamily) return fail("more than 4,096 variables in a declaration");
  for (std::size_t i = 0; i < count; ++i) {
    ast::Variable member = variable;
    member.name = keep_name(std::string(variable.name) + std::to_string(i));
    if (!declare_variable(std::move(member))) return false;
  }
  return true;
}

bool Parser::variable(Space space, ast::Variable& out) {
  std::size_t family = 0;
  if (!variable_type(space, out) || !declarator(out, family)) return false;
  return family == 0 || fail("several parameters in one declaration are not supported", LoadError::Kind::kUnsupported);
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

// `name[16] = {...}`, or `name<4>`, a family of four
bool Parser::declarator(ast::Variable& out, std::size_t& family) {
  if (!expect_name(out.name, "the name of a variable")) return false;
  if (accept('<') && (!expect_count(family, "how many variables") || !expect('>'))) return false;
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
    Constant extent_value;
    if (!constant_expression(extent_value) || !expect(']')) return false;
    const std::size_t extent = extent_value.bits;
    if (extent > kLargestVariable) return fail("an array extent of more than 2^40");
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
  if (starts_expression()) {
    Constant number;
    if (!constant_expression(number)) return false;
    value.bits = number.bits;
    out.initialisers.push_back(value);
    return true;
  }
  const bool negative = accept('-');
  if (token_.kind == Token::Kind::kFloat32 || token_.kind == Token::Kind::kFloat64) {
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
  const LocalName* local = find_local(value.symbol);
  if (local != nullptr && local->kind == LocalName::Kind::kModuleVariable) value.symbol = local->module_name;
  if (is('(')) return fail("operator in an initial value is not supported", LoadError::Kind::kUnsupported);
  if (is('+') || is('-')) {
    const bool minus = is('-');
    advance();
    Constant offset;
    if (!constant_term(offset)) return false;
    value.bits = minus ? std::uint64_t{0} - offset.bits : offset.bits;
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
