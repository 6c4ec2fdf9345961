// Types and sizes. An extent or a value is a stranger's number: sizes are bounded before they are multiplied, and values nested
// 16 deep at most, as reading them calls itself.
#include "gpu/fence/variable_reader.h"

#include <algorithm>
#include <array>

#include "gpu/fence/parser.h"

namespace fairlead::fence {
namespace {

constexpr int kDeepestInitialiser = 16;

struct TypeSize {
  std::string_view name;
  unsigned bytes;
};
constexpr std::array<TypeSize, 18> kTypes = {{{".b8", 1},
                                              {".u8", 1},
                                              {".s8", 1},
                                              {".b16", 2},
                                              {".u16", 2},
                                              {".s16", 2},
                                              {".f16", 2},
                                              {".bf16", 2},
                                              {".b32", 4},
                                              {".u32", 4},
                                              {".s32", 4},
                                              {".f32", 4},
                                              {".f16x2", 4},
                                              {".b64", 8},
                                              {".u64", 8},
                                              {".s64", 8},
                                              {".f64", 8},
                                              {".b128", 16}}};

bool read_fact(TokenReader& reader, Variable& out, bool& is_pointer, bool& is_known) {
  const std::string_view word = reader.token().text;
  const auto type = std::ranges::find(kTypes, word, &TypeSize::name);
  is_known = true;
  if (reader.accept_dotted(".align")) {
    std::uint64_t alignment = 0;
    if (!reader.expect_integer(alignment, "an alignment")) return false;
    const bool is_power = alignment != 0 && (alignment & (alignment - 1)) == 0 && alignment <= 4096;
    if (!is_power) return reader.fail(fmt::format("alignment {} is no power of two up to 4096", alignment));
    if (!is_pointer) out.alignment = alignment;
  } else if (reader.accept_dotted(".v2") || reader.accept_dotted(".v4")) {
    out.width = word;
    out.alignment = std::max<std::uint64_t>(out.alignment, 1);
  } else if (reader.accept_dotted(".ptr")) {
    is_pointer = true;
  } else if (is_pointer && space_named(word)) {
    reader.advance();
  } else if (reader.accept_dotted(".attribute")) {
    // .managed: to a kernel a variable like any other.
    if (!reader.expect('(') || !reader.accept_dotted(".managed"))
      return reader.fail("only .attribute(.managed) is known to the fence");
    return reader.expect(')');
  } else if (type != kTypes.end()) {
    out.type = type->name;
    out.scalar_bytes = type->bytes;
    reader.advance();
  } else {
    is_known = false;
  }
  return true;
}

// An address is kept by name: where it leads is decided when variables are placed.
bool read_value(TokenReader& reader, Variable& out) {
  Initialiser value;
  value.is_negative = reader.accept('-');
  if (value.is_negative) out.initialiser_text += '-';
  if (reader.token().kind == Token::Kind::kInteger || reader.token().kind == Token::Kind::kFloat) {
    value.bits = reader.token().bits;
    value.is_float = reader.token().kind == Token::Kind::kFloat;
    value.is_single = reader.token().is_single;
    out.initialiser_text += reader.token().text;
    reader.advance();
    out.initialisers.push_back(value);
    return true;
  }
  // A variable with the address of a symbol is placed by the fence, so its text is not needed.
  if (!reader.expect_name(value.symbol, "an initial value")) return false;
  if (value.symbol == "generic" && reader.accept('(')) {
    if (!reader.expect_name(value.symbol, "a symbol") || !reader.expect(')')) return false;
  }
  if (reader.is('+') || reader.is('-')) {
    const bool minus = reader.is('-');
    reader.advance();
    if (!reader.expect_integer(value.bits, "an offset")) return false;
    if (minus) value.bits = std::uint64_t{0} - value.bits;
  }
  out.initialisers.push_back(value);
  return true;
}

bool read_initialiser(TokenReader& reader, Variable& out, int depth) {
  if (!reader.accept('{')) return read_value(reader, out);
  out.initialiser_text += '{';
  // The parser calls itself here, so that text may not say how deep.
  if (depth >= kDeepestInitialiser) return reader.fail("initial values nested more than 16 deep");
  while (!reader.is('}')) {
    if (!read_initialiser(reader, out, depth + 1)) return false;
    if (!reader.accept(',')) break;
    out.initialiser_text += ", ";
  }
  out.initialiser_text += '}';
  return reader.expect('}');
}

}  // namespace

unsigned type_bytes(std::string_view dotted) {
  const auto found = std::ranges::find(kTypes, dotted, &TypeSize::name);
  return found == kTypes.end() ? 0 : found->bytes;
}

bool read_variable_type(TokenReader& reader, Variable& out) {
  bool is_pointer = false;
  out.line = reader.token().line;
  while (reader.token().kind == Token::Kind::kDotted) {
    bool is_known = false;
    if (!read_fact(reader, out, is_pointer, is_known)) return false;
    if (!is_known) return reader.fail(fmt::format("'{}' of a variable is not known to the fence", reader.token().text));
  }
  if (out.scalar_bytes == 0)
    return reader.fail(fmt::format("expected the type of a variable before '{}'", reader.token().text));
  if (out.alignment < out.scalar_bytes) out.alignment = out.scalar_bytes;
  return true;
}

// An extent that is not stated comes from the initial values, or makes a variable of no size: dynamic shared memory.
bool read_declarator(TokenReader& reader, Variable& out) {
  if (!reader.expect_name(out.name, "the name of a variable")) return false;
  const unsigned width = out.width == ".v2" ? 2 : out.width == ".v4" ? 4 : 1;
  out.alignment = std::max(out.alignment, out.scalar_bytes * width);
  std::uint64_t count = width;
  bool is_unsized = false;
  while (reader.accept('[')) {
    std::uint64_t extent = 0;
    if (!reader.is(']') && !reader.expect_integer(extent, "an array extent")) return false;
    if (!reader.expect(']')) return false;
    out.extents.push_back(extent);
    is_unsized |= extent == 0;
    if (extent == 0) continue;
    // Asked before it is multiplied: 2^32 times 2^32 would be 0.
    if (extent > TokenReader::kLargestCount / count) {
      return reader.fail(fmt::format("variable '{}' has more than 2^32 elements", out.name));
    }
    count *= extent;
  }
  if (reader.accept('=') && !read_initialiser(reader, out, 0)) return false;
  if (is_unsized) count = out.initialisers.size();
  out.bytes = count * out.scalar_bytes;
  if (out.initialisers.size() <= count) return true;
  return reader.fail(
      fmt::format("variable '{}' has {} initial values and room for {}", out.name, out.initialisers.size(), count));
}

// Only .param: registers as parameters are of PTX 1.x, which no compiler writes.
bool read_parameters(TokenReader& reader, std::vector<Variable>& out) {
  if (!reader.expect('(')) return false;
  if (reader.accept(')')) return true;
  do {
    Variable parameter;
    parameter.space = Space::kParam;
    if (!reader.accept_dotted(".param"))
      return reader.fail(fmt::format("expected .param before '{}'", reader.token().text));
    if (!read_variable_type(reader, parameter) || !read_declarator(reader, parameter)) return false;
    out.push_back(std::move(parameter));
  } while (reader.accept(','));
  return reader.expect(')');
}

}  // namespace fairlead::fence
