// A body is a list of items, in the order of the text, with scopes as items that open and close: nothing is moved, so that the
// rewriter can write it again in one pass. A name is looked up from the innermost scope outwards, as the driver does:
//
//   .reg .b64 %a;  { .reg .b32 %a; mov.u32 %a, 1; }  mov.u64 %a, 2;        two registers, of which the inner has id 0
// Function bodies. Registers and variables of a body are resolved here, where its scopes are known; names of the module
// and labels stay names.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <utility>

#include "gpu/fence/parser.h"

namespace fairlead::fence {
namespace {

// Looking up a name takes as many steps, so that this is what keeps parsing linear.
constexpr std::size_t kDeepestScope = 64;
// A range is declared in a few bytes; its registers are made when they are named, not here.
constexpr std::uint64_t kMostRegisters = 1u << 20;

// Names may have $ and %, which no compiler has in a modifier.
bool is_modifier(std::string_view text) {
  return std::ranges::all_of(text,
                             [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == ':'; });
}

unsigned register_bits(std::string_view type) {
  if (type == ".pred") return 1;
  if (type == ".b16" || type == ".u16" || type == ".s16" || type == ".f16" || type == ".bf16") return 16;
  if (type == ".b32" || type == ".u32" || type == ".s32" || type == ".f32" || type == ".f16x2") return 32;
  if (type == ".b64" || type == ".u64" || type == ".s64" || type == ".f64") return 64;
  return type == ".b128" ? 128 : 0;
}

}  // namespace

Item& Parser::add_item(Item::Kind kind, int line, std::string_view name) {
  Item item;
  item.kind = kind;
  item.line = line;
  item.name = name;
  function_->items.push_back(std::move(item));
  return function_->items.back();
}

bool Parser::body() {
  if (!expect('{')) return false;
  function_->has_body = true;
  scopes_.assign(1, {});
  for (const auto* list : {&function_->signature.results, &function_->signature.parameters}) {
    for (const Variable& variable : *list) {
      scopes_.back()[variable.name] = Local{.variable = static_cast<int>(function_->variables.size()), .ids = {}};
      function_->variables.push_back(variable);
    }
  }
  while (!scopes_.empty()) {
    if (!body_item()) return false;
  }
  return true;
}

bool Parser::body_item() {
  const int line = token_.line;
  if (accept(';')) return true;
  if (accept('{')) {
    if (scopes_.size() >= kDeepestScope) return fail(fmt::format("scopes nested more than {} deep", kDeepestScope));
    scopes_.emplace_back();
    add_item(Item::Kind::kOpen, line);
    return true;
  }
  if (accept('}')) {
    scopes_.pop_back();
    if (!scopes_.empty()) add_item(Item::Kind::kClose, line);
    return true;
  }
  if (token_.kind == Token::Kind::kDotted) return directive_item();
  Instruction instruction;
  if (accept('@')) {
    instruction.guard_negated = accept('!');
    if (!expect_name(instruction.guard, "a predicate")) return false;
    const auto id = register_of(instruction.guard);
    if (!id || function_->registers[static_cast<std::size_t>(*id)].bits != 1) {
      return fail(fmt::format("guard '{}' is no predicate register", instruction.guard));
    }
    instruction.guard_id = *id;
  }
  std::string_view name;
  if (!expect_name(name, "an instruction")) return false;
  if (instruction.guard.empty() && accept(':')) return labelled_item(name, line);
  instruction.opcode = name;
  return instruction_item(std::move(instruction), line);
}

bool Parser::directive_item() {
  if (is_dotted(".loc") || is_dotted(".file")) return skip_line();
  if (is_dotted(".section")) return skip_section();
  if (accept_dotted(".reg")) return register_item();
  if (accept_dotted(".pragma")) {
    // A hint about loops is kept; others may let the compiler spill to shared memory.
    if (token_.text == "\"nounroll\"") add_item(Item::Kind::kText, token_.line).text = ".pragma \"nounroll\";";
    advance();
    return expect(';');
  }
  const auto space = space_named(token_.text);
  if (!space) return fail(fmt::format("directive {} in a function is not known to the fence", token_.text));
  advance();
  return variables(*space, {});
}

// `.reg .b32 %r<5>, %x;`
// Kept as text, too: the rewriter writes declarations as they were, and only what is named becomes a Register.
bool Parser::register_item() {
  const std::string_view type = token_.text;
  const unsigned bits = token_.kind == Token::Kind::kDotted ? register_bits(type) : 0;
  if (bits == 0) return fail(fmt::format("registers of type '{}' are not known to the fence", type));
  advance();
  std::string text = fmt::format(".reg {}", type);
  const char* separator = " ";
  do {
    std::string_view name;
    Local local{.bits = bits, .ids = {}};
    if (!expect_name(name, "a register")) return false;
    text += separator + std::string(name);
    if (accept('<')) {
      if (!expect_integer(local.count, "a number of registers") || !expect('>')) return false;
      if (local.count == 0 || local.count > kMostRegisters) {
        return fail(fmt::format("{} registers named '{}', must be 1 to {}", local.count, name, kMostRegisters));
      }
      text += fmt::format("<{}>", local.count);
    }
    if (!scopes_.back().emplace(name, std::move(local)).second) {
      return fail(fmt::format("'{}' is declared twice", name));
    }
    separator = ", ";
  } while (accept(','));
  add_item(Item::Kind::kRegisters, token_.line).text = text + ";";
  return expect(';');
}

bool Parser::labelled_item(std::string_view name, int line) {
  if (accept_dotted(".branchtargets")) return target_list(add_item(Item::Kind::kBranchTargets, line, name));
  if (accept_dotted(".calltargets")) return target_list(add_item(Item::Kind::kCallTargets, line, name));
  if (accept_dotted(".callprototype")) return prototype_item(name, line);
  add_item(Item::Kind::kLabel, line, name);
  return true;
}

// The targets of a table, or of a call: labels and functions are names here, since they may stand further down.
bool Parser::target_list(Item& item) {
  do {
    std::string_view name;
    if (!expect_name(name, "a target")) return false;
    item.targets.push_back(name);
  } while (accept(','));
  return expect(';');
}

bool Parser::prototype_item(std::string_view name, int line) {
  Signature signature;
  std::string_view underscore;
  if (is('(') && !parameter_list(signature.results)) return false;
  if (!expect_name(underscore, "_") || (is('(') && !parameter_list(signature.parameters))) return false;
  accept_dotted(".noreturn");
  add_item(Item::Kind::kPrototype, line, name).index = static_cast<int>(function_->prototypes.size());
  function_->prototypes.push_back(std::move(signature));
  return expect(';');
}

// Any operands, of any number: which of them an instruction may have is the rewriter's to know.
bool Parser::instruction_item(Instruction instruction, int line) {
  while (token_.kind == Token::Kind::kDotted) {
    if (!is_modifier(token_.text)) return fail(fmt::format("'{}' is no modifier", token_.text));
    instruction.modifiers.push_back(token_.text);
    advance();
  }
  if (!is(';')) {
    do {
      instruction.operands.emplace_back();
      if (!operand(instruction.operands.back())) return false;
    } while (accept(','));
  }
  if (!is(';')) return fail(fmt::format("expected ',' or ';' before '{}'", token_.text));
  advance();
  add_item(Item::Kind::kInstruction, line).instruction = std::move(instruction);
  return true;
}

bool Parser::operand(Operand& out) {
  if (is('!') || is('-')) return signed_operand(out);
  if (accept('[')) return address_operand(out);
  if (accept('{')) return list_operand('}', out);
  if (accept('(')) return list_operand(')', out);
  return token_.kind == Token::Kind::kName ? named_operand(out) : number_operand(out);
}

bool Parser::signed_operand(Operand& out) {
  const bool is_not = is('!');
  advance();
  if (token_.kind == Token::Kind::kName) {
    if (!named_operand(out)) return false;
    out.negated = true;
    return out.register_id >= 0 || fail("a sign before something that is no register");
  }
  if (is_not) return fail("expected a predicate behind '!'");
  out.negated = true;
  return number_operand(out);
}

bool Parser::number_operand(Operand& out) {
  if (token_.kind != Token::Kind::kInteger && token_.kind != Token::Kind::kFloat) {
    return fail(fmt::format("expected an operand before '{}'", token_.text));
  }
  out.kind = Operand::Kind::kNumber;
  out.name = token_.text;
  out.bits = token_.bits;
  advance();
  return true;
}

bool Parser::named_operand(Operand& out) {
  if (!expect_name(out.name, "a name")) return false;
  resolve(out);
  if (token_.kind == Token::Kind::kDotted) {
    out.suffix = token_.text;
    advance();
  }
  if (accept('|')) {
    if (!expect_name(out.second, "a register behind '|'")) return false;
    out.second_id = register_of(out.second).value_or(-1);
    return out.second_id >= 0 || out.second == "_" || fail(fmt::format("'{}' is no register", out.second));
  }
  return out.register_id >= 0 || offsets(out);
}

// Lists hold simple operands: PTX has no list within a list, and an address in one would escape those who count addresses.
bool Parser::list_operand(char closing, Operand& out) {
  out.kind = Operand::Kind::kList;
  out.is_parenthesised = closing == ')';
  while (!is(closing)) {
    if (is('{') || is('(') || is('[') || is('!')) return fail("expected a simple operand in a list");
    out.elements.emplace_back();
    if (!operand(out.elements.back())) return false;
    if (!accept(',')) break;
  }
  return expect(closing);
}

// [register+8], [symbol], [1024]
bool Parser::address_operand(Operand& out) {
  out.kind = Operand::Kind::kAddress;
  if (token_.kind == Token::Kind::kInteger) {
    out.bits = token_.bits;
    advance();
  } else {
    if (!expect_name(out.name, "an address")) return false;
    resolve(out);
  }
  if (!offsets(out)) return false;
  while (accept(',')) {  // coordinates of a texture
    out.elements.emplace_back();
    if (is('[') || !operand(out.elements.back())) return fail("expected coordinates in an address");
  }
  return expect(']');
}

bool Parser::offsets(Operand& out) {
  while (is('+') || is('-')) {
    bool minus = is('-');
    advance();
    if (accept('-')) minus = !minus;
    if (token_.kind != Token::Kind::kInteger) return fail(fmt::format("expected an offset before '{}'", token_.text));
    // Modulo 2^64, as the hardware adds.
    const std::uint64_t sum =
        static_cast<std::uint64_t>(out.offset) + (minus ? std::uint64_t{0} - token_.bits : token_.bits);
    out.offset = static_cast<std::int64_t>(sum);
    out.has_offset = true;
    advance();
  }
  return true;
}

// What is neither a register nor a variable of the body stays a name: of the module, a label, or a special register.
void Parser::resolve(Operand& out) {
  if (const auto id = register_of(out.name)) {
    out.register_id = *id;
    return;
  }
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->find(out.name);
    if (found != scope->end() && found->second.variable >= 0) {
      out.variable = found->second.variable;
      return;
    }
  }
}

// %r7 is declared as itself or, in the same or an outer scope, as one of %r<8>.
std::optional<int> Parser::register_of(std::string_view name) {
  const std::size_t stem = name.find_last_not_of("0123456789") + 1;
  const std::string_view digits = name.substr(stem);
  // %r007 is a name of its own, no member of %r<8>.
  const bool is_numbered = !digits.empty() && (digits.size() == 1 || digits[0] != '0') && digits.size() < 8;
  std::uint64_t number = 0;
  if (is_numbered) std::from_chars(digits.data(), digits.data() + digits.size(), number);
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    auto found = scope->find(name);
    if (found != scope->end() && found->second.variable >= 0) return std::nullopt;
    if (found == scope->end() || found->second.count > 0) {
      // A stem may itself end in digits: %a1<3> declares %a10 to %a12.
      found = scope->end();
      for (std::size_t cut = stem; cut < name.size() && is_numbered; ++cut) {
        const auto range = scope->find(name.substr(0, cut));
        if (range == scope->end() || range->second.count == 0) continue;
        std::uint64_t index = 0;
        const std::string_view rest = name.substr(cut);
        if (rest.size() > 1 && rest[0] == '0') continue;
        std::from_chars(rest.data(), rest.data() + rest.size(), index);
        if (index < range->second.count) found = range;
      }
    }
    if (found == scope->end()) continue;
    const auto [entry, inserted] = found->second.ids.try_emplace(name, static_cast<int>(function_->registers.size()));
    if (inserted) function_->registers.push_back({name, found->second.bits, std::next(scope) != scopes_.rend()});
    return entry->second;
  }
  return std::nullopt;
}

}  // namespace fairlead::fence
