#include "softgpu/ptx/text/variable_reader.h"

#include <bit>
#include <string>
#include <utility>

#include "softgpu/ptx/text/expression_reader.h"

namespace softgpu::ptx {
namespace {

constexpr int kDeepestInitialiser = 16;

std::uint64_t number_bits(const Token& token, bool negative, Type type) {
  if (token.kind == Token::Kind::kFloat32) return token.bits ^ (negative ? std::uint64_t{1} << 31 : 0);
  const double value = std::bit_cast<double>(token.bits) * (negative ? -1 : 1);
  return type == Type::kF32 ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
                            : std::bit_cast<std::uint64_t>(value);
}

// What stands before the name: `.align 4 .v2 .b8`.
bool variable_type(TokenReader& reader, Space space, ast::Variable& out) {
  out.space = space;
  out.line = reader.token().line;
  std::size_t width = 1;
  bool has_type = false, has_alignment = false;
  bool is_pointer_fact = false;  // `.param .u64 .ptr .global .align 4 p` states facts about what p points to
  while (reader.is_dotted()) {
    const std::string_view word = reader.token().text;
    reader.advance();
    if (word == "align") {
      std::size_t alignment = 0;
      if (!reader.expect_count(alignment, "an alignment")) return false;
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
      for (; !reader.is_end() && !reader.accept(')'); reader.advance()) {
        if (reader.is_dotted() && reader.token().text == "managed") out.is_managed = true;
      }
    } else if (const auto type = type_from_name(word); type && *type != Type::kPred) {
      out.type = *type;
      has_type = true;
    } else {
      return reader.fail("type ." + std::string(word) + " of a variable is not supported",
                         LoadError::Kind::kUnsupported);
    }
  }
  if (out.is_managed && space != Space::kGlobal) return reader.fail("only a variable in .global can be .managed");
  if (!has_type) return reader.fail_expected("the type of a variable");
  out.element_bytes = out.bytes = size_of(out.type) * width;
  if (!has_alignment) out.alignment = out.bytes;
  if (out.alignment == 0 || (out.alignment & (out.alignment - 1)) != 0 || out.alignment > 4096) {
    return reader.fail("alignment " + std::to_string(out.alignment) + " is not a power of two up to 4096");
  }
  return true;
}

bool dimensions(TokenReader& reader, ast::Variable& out, bool& is_unsized) {
  constexpr std::size_t kLargestVariable = std::size_t{1} << 40;
  while (reader.accept('[')) {
    if (reader.accept(']')) {
      is_unsized = true;
      continue;
    }
    Constant extent_value;
    if (!read_expression(reader, extent_value) || !reader.expect(']')) return false;
    const std::size_t extent = extent_value.bits;
    if (extent > kLargestVariable) return reader.fail("an array extent of more than 2^40");
    if (extent != 0 && out.bytes > kLargestVariable / extent) return reader.fail("variable larger than 2^40 bytes");
    out.bytes *= extent;
  }
  return true;
}

bool initialiser_value(TokenReader& reader, const Scopes& scopes, ast::Variable& out) {
  ast::Initialiser value;
  if (starts_expression(reader)) {
    Constant number;
    if (!read_expression(reader, number)) return false;
    value.bits = number.bits;
    out.initialisers.push_back(value);
    return true;
  }
  const bool negative = reader.accept('-');
  if (reader.token().kind == Token::Kind::kFloat32 || reader.token().kind == Token::Kind::kFloat64) {
    value.bits = number_bits(reader.token(), negative, out.type);
    reader.advance();
    out.initialisers.push_back(value);
    return true;
  }
  if (!reader.expect_name(value.symbol, "an initial value")) return false;
  if (value.symbol == "generic" && reader.accept('(')) {
    value.generic = true;
    if (!reader.expect_name(value.symbol, "a symbol") || !reader.expect(')')) return false;
  }
  const LocalName* local = scopes.find(value.symbol);
  if (local != nullptr && local->kind == LocalName::Kind::kModuleVariable) value.symbol = local->module_name;
  if (reader.is('('))
    return reader.fail("operator in an initial value is not supported", LoadError::Kind::kUnsupported);
  if (reader.is('+') || reader.is('-')) {
    const bool minus = reader.is('-');
    reader.advance();
    Constant offset;
    if (!read_term(reader, offset)) return false;
    value.bits = minus ? std::uint64_t{0} - offset.bits : offset.bits;
  }
  out.initialisers.push_back(value);
  return true;
}

// `depth`: how many lists are around it.
bool initialiser(TokenReader& reader, const Scopes& scopes, int depth, ast::Variable& out) {
  if (!reader.accept('{')) return initialiser_value(reader, scopes, out);
  if (reader.accept('}')) return true;
  if (depth >= kDeepestInitialiser) return reader.fail("initialiser nested more than 16 deep");
  do {
    if (!initialiser(reader, scopes, depth + 1, out)) return false;
  } while (reader.accept(','));
  return reader.expect('}');
}

// `name[16] = {...}`, or `name<4>`, a family of four
bool declarator(TokenReader& reader, const Scopes& scopes, ast::Variable& out, std::size_t& family) {
  if (!reader.expect_name(out.name, "the name of a variable")) return false;
  if (reader.accept('<') && (!reader.expect_count(family, "how many variables") || !reader.expect('>'))) return false;
  bool is_unsized = false;
  if (!dimensions(reader, out, is_unsized)) return false;
  if (reader.accept('=') && !initialiser(reader, scopes, 0, out)) return false;
  if (is_unsized) out.bytes = out.initialisers.size() * size_of(out.type);
  if (out.initialisers.size() * size_of(out.type) > out.bytes) {
    return reader.fail("more initial values than variable '" + std::string(out.name) + "' has room for");
  }
  return true;
}

bool read_parameter(TokenReader& reader, const Scopes& scopes, ast::Variable& out) {
  std::size_t family = 0;
  if (!variable_type(reader, Space::kParam, out) || !declarator(reader, scopes, out, family)) return false;
  return family == 0 ||
         reader.fail("several parameters in one declaration are not supported", LoadError::Kind::kUnsupported);
}

// `.param .u64 p<2>` declares p0 and p1.
bool keep_family(TokenReader& reader, ModuleNames& names, const ast::Variable& variable, std::size_t count,
                 const std::function<void(ast::Variable)>& keep) {
  constexpr std::size_t kLargestFamily = 4096;
  if (count > kLargestFamily) return reader.fail("more than 4,096 variables in a declaration");
  for (std::size_t i = 0; i < count; ++i) {
    ast::Variable member = variable;
    member.name = names.keep(std::string(variable.name) + std::to_string(i));
    keep(std::move(member));
  }
  return true;
}

}  // namespace

bool read_variables(TokenReader& reader, const Scopes& scopes, ModuleNames& names, Space space, bool is_extern,
                    const std::function<void(ast::Variable)>& keep) {
  ast::Variable type;
  type.is_extern = is_extern;
  if (!variable_type(reader, space, type)) return false;
  do {
    ast::Variable declared = type;
    std::size_t family = 0;
    if (!declarator(reader, scopes, declared, family)) return false;
    if (family == 0) {
      keep(std::move(declared));
    } else if (!keep_family(reader, names, declared, family, keep)) {
      return false;
    }
  } while (reader.accept(','));
  return reader.expect(';');
}

bool read_parameters(TokenReader& reader, const Scopes& scopes, std::vector<ast::Variable>& out) {
  if (!reader.expect('(')) return false;
  if (reader.accept(')')) return true;
  do {
    if (!reader.is_dotted("param")) {
      return reader.fail("parameter in ." + std::string(reader.token().text) + " space is not supported",
                         LoadError::Kind::kUnsupported);
    }
    reader.advance();
    ast::Variable parameter;
    if (!read_parameter(reader, scopes, parameter)) return false;
    out.push_back(std::move(parameter));
  } while (reader.accept(','));
  return reader.expect(')');
}

}  // namespace softgpu::ptx
