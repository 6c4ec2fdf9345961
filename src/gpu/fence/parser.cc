// Modules, their variables and functions' heads. Whatever the parser does not know it refuses, with two exceptions that are
// skipped, debug information and hints: they never reach the driver, because the text is written anew from the tree.
#include "gpu/fence/parser.h"

#include <algorithm>
#include <array>
#include <utility>

namespace fairlead::fence {
namespace {

// More than any device has for one variable, and small enough that sizes of several do not wrap around.
constexpr std::uint64_t kLargestVariable = std::uint64_t{1} << 32;

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

// Directives of a function that cost or promise nothing but registers and launch sizes. `.noreturn` is not among them:
// code behind a call that returns although it promised not to would be whatever lies there.
constexpr std::array<std::string_view, 9> kDirectives = {
    ".maxntid",           ".reqntid",         ".minnctapersm",   ".maxnctapersm",      ".maxnreg",
    ".reqnctapercluster", ".explicitcluster", ".maxclusterrank", ".blocksareclusters",
};

}  // namespace

std::string at_line(std::string_view function, int line) {
  if (function.empty()) return fmt::format("line {}: ", line);
  return fmt::format("function '{}', line {}: ", function, line);
}

std::optional<Space> space_named(std::string_view dotted) {
  if (dotted == ".global") return Space::kGlobal;
  if (dotted == ".const") return Space::kConst;
  if (dotted == ".local") return Space::kLocal;
  if (dotted.starts_with(".shared") && (dotted.size() == 7 || dotted[7] == ':')) return Space::kShared;
  if (dotted.starts_with(".param") && (dotted.size() == 6 || dotted[6] == ':')) return Space::kParam;
  return std::nullopt;
}

unsigned type_bytes(std::string_view dotted) {
  const auto found = std::ranges::find(kTypes, dotted, &TypeSize::name);
  return found == kTypes.end() ? 0 : found->bytes;
}

Result<Module> parse_ptx(std::string_view text, Names names) {
  return Parser(text, names).run();
}

Result<Module> Parser::run() {
  while (!error_ && token_.kind != Token::Kind::kEnd) module_item();
  if (!error_ && module_.header.find(".address_size 64") == std::string::npos) {
    fail("'.address_size 64' is missing, which is the only size that is fenced");
  }
  if (error_) return tl::unexpected<Error>(*error_);
  return std::move(module_);
}

bool Parser::fail(const std::string& reason) {
  const std::string_view name = function_ == nullptr ? std::string_view() : function_->name;
  if (!error_) error_ = Error{Errc::kInvalidArgument, at_line(name, token_.line) + reason};
  return false;
}

bool Parser::is(char punctuation) const {
  return token_.kind == Token::Kind::kPunctuation && token_.text[0] == punctuation;
}

bool Parser::accept(char punctuation) {
  if (!is(punctuation)) return false;
  advance();
  return true;
}

bool Parser::accept_dotted(std::string_view word) {
  if (!is_dotted(word)) return false;
  advance();
  return true;
}

bool Parser::expect(char punctuation) {
  return accept(punctuation) || fail(fmt::format("expected '{}' before '{}'", punctuation, token_.text));
}

// Every name of a tenant comes through here, also as a label, a register or a target: so that none can be one of the fence.
bool Parser::expect_name(std::string_view& name, const char* what) {
  if (token_.kind != Token::Kind::kName) return fail(fmt::format("expected {} before '{}'", what, token_.text));
  if (names_ == Names::kOfSource && token_.text.find("__fence") != std::string_view::npos) {
    return fail(fmt::format("'{}' is a name the fence keeps for itself; give the source, not what was fenced already",
                            token_.text));
  }
  name = token_.text;
  advance();
  return true;
}

bool Parser::expect_integer(std::uint64_t& value, const char* what) {
  if (token_.kind != Token::Kind::kInteger || token_.bits > kLargestVariable) {
    return fail(fmt::format("expected {}, at most 2^32, before '{}'", what, token_.text));
  }
  value = token_.bits;
  advance();
  return true;
}

bool Parser::module_item() {
  if (accept(';')) return true;
  if (token_.kind != Token::Kind::kDotted) return fail(fmt::format("expected a directive before '{}'", token_.text));
  const std::string_view word = token_.text;
  if (word == ".version" || word == ".target" || word == ".address_size") return header_item();
  if (word == ".file" || word == ".loc" || word == ".pragma") return skip_line();
  if (word == ".section") return skip_section();
  if (word == ".alias") return alias();
  return linked_item();
}

// `.version 8.4`, `.target sm_90, debug`, `.address_size 64`, and nothing else: what is kept here reaches the driver.
bool Parser::header_item() {
  const std::string_view word = token_.text;
  advance();
  module_.header += word;
  const char* separator = " ";
  do {
    const bool is_value = word == ".target"    ? token_.kind == Token::Kind::kName
                          : word == ".version" ? token_.kind == Token::Kind::kFloat
                                               : token_.kind == Token::Kind::kInteger && token_.text == "64";
    if (!is_value) return fail(fmt::format("'{}' is no value of {}", token_.text, word));
    module_.header += separator + std::string(token_.text);
    separator = ", ";
    advance();
  } while (word == ".target" && accept(','));
  module_.header += '\n';
  return true;
}

// Debug information has no terminator but the end of its line; none of it is kept.
bool Parser::skip_line() {
  const int line = token_.line;
  while (token_.kind != Token::Kind::kEnd && token_.line == line) advance();
  return true;
}

bool Parser::skip_section() {
  while (token_.kind != Token::Kind::kEnd && !is('{')) advance();
  while (token_.kind != Token::Kind::kEnd && !is('}')) advance();
  return expect('}');
}

bool Parser::alias() {
  Alias alias;
  alias.line = token_.line;
  advance();
  if (!expect_name(alias.name, "the name of an alias") || !expect(',')) return false;
  if (!expect_name(alias.target, "the name of a function") || !expect(';')) return false;
  module_.aliases.push_back(alias);
  return true;
}

bool Parser::linked_item() {
  std::string_view linkage;
  for (const std::string_view word : {".visible", ".extern", ".weak", ".common"}) {
    if (is_dotted(word)) linkage = word;
  }
  if (!linkage.empty()) advance();
  if (is_dotted(".entry") || is_dotted(".func")) {
    const bool is_entry = is_dotted(".entry");
    advance();
    return function(is_entry, linkage);
  }
  const auto space = token_.kind == Token::Kind::kDotted ? space_named(token_.text) : std::nullopt;
  if (!space || *space == Space::kParam || *space == Space::kLocal) {
    return fail(fmt::format("'{}' at the level of the module cannot be fenced", token_.text));
  }
  advance();
  return variables(*space, linkage);
}

// Registered by name in layout.h, not here: a function may be declared as often as its author likes.
bool Parser::function(bool is_entry, std::string_view linkage) {
  module_.functions.emplace_back();
  Function& function = module_.functions.back();
  function.line = token_.line;
  function.is_entry = is_entry;
  function.linkage = linkage;
  if (is('(') && !parameter_list(function.signature.results)) return false;
  if (!expect_name(function.name, "the name of a function")) return false;
  function_ = &function;
  if (is('(') && !parameter_list(function.signature.parameters)) return false;
  const bool ok = directives() && (accept(';') || body());
  function_ = nullptr;
  return ok;
}

bool Parser::directives() {
  while (token_.kind == Token::Kind::kDotted) {
    const std::string_view word = token_.text;
    if (word == ".pragma") {
      advance();
      if (token_.kind != Token::Kind::kString) return fail("expected a string behind .pragma");
      advance();
      if (!expect(';')) return false;
      continue;
    }
    advance();
    if (word == ".noreturn") continue;
    if (std::ranges::find(kDirectives, word) == kDirectives.end()) {
      return fail(fmt::format("directive {} of a function is not known to the fence", word));
    }
    function_->directives += " " + std::string(word);
    const char* separator = " ";
    while (token_.kind == Token::Kind::kInteger) {
      function_->directives += separator + std::string(token_.text);
      separator = ", ";
      advance();
      if (!accept(',')) break;
    }
  }
  return true;
}

// Only .param: registers as parameters are of PTX 1.x, which no compiler writes.
bool Parser::parameter_list(std::vector<Variable>& out) {
  if (!expect('(')) return false;
  if (accept(')')) return true;
  do {
    Variable parameter;
    parameter.space = Space::kParam;
    if (!accept_dotted(".param")) return fail(fmt::format("expected .param before '{}'", token_.text));
    if (!variable_type(parameter) || !declarator(parameter)) return false;
    out.push_back(std::move(parameter));
  } while (accept(','));
  return expect(')');
}

// What follows the state space: `.align 4 .b8 name[16] = {...}, other;`
bool Parser::variables(Space space, std::string_view linkage) {
  Variable type;
  type.space = space;
  type.linkage = linkage;
  if (!variable_type(type)) return false;
  do {
    Variable declared = type;
    if (!declarator(declared) || !keep_variable(std::move(declared))) return false;
  } while (accept(','));
  return expect(';');
}

// Statics of a function are the module's: PTX lets a body declare them, and their memory outlives the call.
bool Parser::keep_variable(Variable variable) {
  const bool is_static = variable.space == Space::kGlobal || variable.space == Space::kConst;
  if (function_ == nullptr || is_static) {
    if (!variable_names_.insert(variable.name).second) {
      return fail(fmt::format("variable '{}' is declared twice", variable.name));
    }
    module_.variables.push_back(std::move(variable));
    return true;
  }
  const int index = static_cast<int>(function_->variables.size());
  scopes_.back()[variable.name] = Local{.variable = index, .ids = {}};
  function_->variables.push_back(std::move(variable));
  add_item(Item::Kind::kVariable, token_.line).index = index;
  return true;
}

// What stands before the name: `.align 4 .v2 .b8`, or of a parameter `.u64 .ptr .global .align 4`, whose facts are the
// program's word only and dropped.
bool Parser::variable_type(Variable& out) {
  bool is_pointer = false;
  out.line = token_.line;
  while (token_.kind == Token::Kind::kDotted) {
    bool is_known = false;
    if (!variable_facts(out, is_pointer, is_known)) return false;
    if (!is_known) return fail(fmt::format("'{}' of a variable is not known to the fence", token_.text));
  }
  if (out.scalar_bytes == 0) return fail(fmt::format("expected the type of a variable before '{}'", token_.text));
  if (out.alignment < out.scalar_bytes) out.alignment = out.scalar_bytes;
  return true;
}

bool Parser::variable_facts(Variable& out, bool& is_pointer, bool& is_known) {
  const std::string_view word = token_.text;
  const auto type = std::ranges::find(kTypes, word, &TypeSize::name);
  is_known = true;
  if (accept_dotted(".align")) {
    std::uint64_t alignment = 0;
    if (!expect_integer(alignment, "an alignment")) return false;
    const bool is_power = alignment != 0 && (alignment & (alignment - 1)) == 0 && alignment <= 4096;
    if (!is_power) return fail(fmt::format("alignment {} is no power of two up to 4096", alignment));
    if (!is_pointer) out.alignment = alignment;
  } else if (accept_dotted(".v2") || accept_dotted(".v4")) {
    out.width = word;
    out.alignment = std::max<std::uint64_t>(out.alignment, 1);
  } else if (accept_dotted(".ptr")) {
    is_pointer = true;
  } else if (is_pointer && space_named(word)) {
    advance();
  } else if (accept_dotted(".attribute")) {
    // .managed: to a kernel a variable like any other.
    if (!expect('(') || !accept_dotted(".managed")) return fail("only .attribute(.managed) is known to the fence");
    return expect(')');
  } else if (type != kTypes.end()) {
    out.type = type->name;
    out.scalar_bytes = type->bytes;
    advance();
  } else {
    is_known = false;
  }
  return true;
}

// `name[16][4] = {...}`
// An extent that is not stated comes from the initial values, or makes a variable of no size: dynamic shared memory.
bool Parser::declarator(Variable& out) {
  if (!expect_name(out.name, "the name of a variable")) return false;
  const unsigned width = out.width == ".v2" ? 2 : out.width == ".v4" ? 4 : 1;
  out.alignment = std::max(out.alignment, out.scalar_bytes * width);
  std::uint64_t count = width;
  bool is_unsized = false;
  while (accept('[')) {
    std::uint64_t extent = 0;
    if (!is(']') && !expect_integer(extent, "an array extent")) return false;
    if (!expect(']')) return false;
    out.extents.push_back(extent);
    is_unsized |= extent == 0;
    if (extent != 0) count *= extent;
    if (count > kLargestVariable) return fail(fmt::format("variable '{}' has more than 2^32 elements", out.name));
  }
  if (accept('=') && !initialiser(out)) return false;
  if (is_unsized) count = out.initialisers.size();
  out.bytes = count * out.scalar_bytes;
  if (out.initialisers.size() <= count) return true;
  return fail(
      fmt::format("variable '{}' has {} initial values and room for {}", out.name, out.initialisers.size(), count));
}

bool Parser::initialiser(Variable& out) {
  if (!accept('{')) return initialiser_value(out);
  out.initialiser_text += '{';
  // The parser calls itself here, so that text may not say how deep.
  if (++depth_ > 16) return fail("initial values nested more than 16 deep");
  while (!is('}')) {
    if (!initialiser(out)) return false;
    if (!accept(',')) break;
    out.initialiser_text += ", ";
  }
  --depth_;
  out.initialiser_text += '}';
  return expect('}');
}

// An address is kept by name: where it leads is decided when variables are placed.
bool Parser::initialiser_value(Variable& out) {
  Initialiser value;
  value.is_negative = accept('-');
  if (value.is_negative) out.initialiser_text += '-';
  if (token_.kind == Token::Kind::kInteger || token_.kind == Token::Kind::kFloat) {
    value.bits = token_.bits;
    value.is_float = token_.kind == Token::Kind::kFloat;
    value.is_single = token_.is_single;
    out.initialiser_text += token_.text;
    advance();
    out.initialisers.push_back(value);
    return true;
  }
  // A variable with the address of a symbol is placed by the fence, so its text is not needed.
  if (!expect_name(value.symbol, "an initial value")) return false;
  if (value.symbol == "generic" && accept('(')) {
    if (!expect_name(value.symbol, "a symbol") || !expect(')')) return false;
  }
  if (is('+') || is('-')) {
    const bool minus = is('-');
    advance();
    if (!expect_integer(value.bits, "an offset")) return false;
    if (minus) value.bits = std::uint64_t{0} - value.bits;
  }
  out.initialisers.push_back(value);
  return true;
}

}  // namespace fairlead::fence
