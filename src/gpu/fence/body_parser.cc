// Registers and variables of a body are resolved here, where its scopes are known; names of the module and labels stay names, as
// they may be declared further down.
#include "gpu/fence/body_parser.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "gpu/fence/operand_reader.h"
#include "gpu/fence/parser.h"
#include "gpu/fence/scopes.h"
#include "gpu/fence/variable_reader.h"

namespace fairlead::fence {
namespace {

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

class BodyParser {
 public:
  BodyParser(TokenReader& reader, Function& function, StaticVariables& statics)
      : reader_(reader), function_(function), statics_(statics), scopes_(function) {}
  bool run();

 private:
  bool body_item();
  bool directive_item();
  bool register_item();
  bool keep(Variable variable);
  bool labelled_item(std::string_view name, int line);
  bool prototype_item(std::string_view name, int line);
  bool target_list(Item& item);
  bool instruction_item(Instruction instruction, int line);
  Item& add_item(Item::Kind kind, int line, std::string_view name = {});

  TokenReader& reader_;
  Function& function_;
  StaticVariables& statics_;
  Scopes scopes_;
};

Item& BodyParser::add_item(Item::Kind kind, int line, std::string_view name) {
  Item item;
  item.kind = kind;
  item.line = line;
  item.name = name;
  function_.items.push_back(std::move(item));
  return function_.items.back();
}

bool BodyParser::run() {
  if (!reader_.expect('{')) return false;
  function_.has_body = true;
  scopes_.open();
  for (const auto* list : {&function_.signature.results, &function_.signature.parameters}) {
    for (const Variable& variable : *list) {
      scopes_.declare_variable(variable.name, static_cast<int>(function_.variables.size()));
      function_.variables.push_back(variable);
    }
  }
  while (scopes_.depth() > 0) {
    if (!body_item()) return false;
  }
  return true;
}

bool BodyParser::body_item() {
  const int line = reader_.token().line;
  if (reader_.accept(';')) return true;
  if (reader_.accept('{')) {
    if (scopes_.depth() >= Scopes::kDeepest) {
      return reader_.fail(fmt::format("scopes nested more than {} deep", Scopes::kDeepest));
    }
    scopes_.open();
    add_item(Item::Kind::kOpen, line);
    return true;
  }
  if (reader_.accept('}')) {
    scopes_.close();
    if (scopes_.depth() > 0) add_item(Item::Kind::kClose, line);
    return true;
  }
  if (reader_.is_dotted()) return directive_item();
  Instruction instruction;
  if (reader_.accept('@')) {
    instruction.guard_negated = reader_.accept('!');
    if (!reader_.expect_name(instruction.guard, "a predicate")) return false;
    const auto id = scopes_.register_of(instruction.guard);
    if (!id || function_.registers[static_cast<std::size_t>(*id)].bits != 1) {
      return reader_.fail(fmt::format("guard '{}' is no predicate register", instruction.guard));
    }
    instruction.guard_id = *id;
  }
  std::string_view name;
  if (!reader_.expect_name(name, "an instruction")) return false;
  if (instruction.guard.empty() && reader_.accept(':')) return labelled_item(name, line);
  instruction.opcode = name;
  return instruction_item(std::move(instruction), line);
}

bool BodyParser::directive_item() {
  if (reader_.is_dotted(".loc") || reader_.is_dotted(".file")) return reader_.skip_line();
  if (reader_.is_dotted(".section")) return reader_.skip_section();
  if (reader_.accept_dotted(".reg")) return register_item();
  if (reader_.accept_dotted(".pragma")) {
    // A hint about loops is kept; others may let the compiler spill to shared memory.
    if (reader_.token().text == "\"nounroll\"")
      add_item(Item::Kind::kText, reader_.token().line).text = ".pragma \"nounroll\";";
    reader_.advance();
    return reader_.expect(';');
  }
  const auto space = space_named(reader_.token().text);
  if (!space)
    return reader_.fail(fmt::format("directive {} in a function is not known to the fence", reader_.token().text));
  reader_.advance();
  return read_variables(reader_, *space, {}, [this](Variable variable) { return keep(std::move(variable)); });
}

// `.reg .b32 %r<5>, %x;`
// Kept as text, too: the rewriter writes declarations as they were, and only what is named becomes a Register.
bool BodyParser::register_item() {
  const std::string_view type = reader_.token().text;
  const unsigned bits = reader_.is_dotted() ? register_bits(type) : 0;
  if (bits == 0) return reader_.fail(fmt::format("registers of type '{}' are not known to the fence", type));
  reader_.advance();
  std::string text = fmt::format(".reg {}", type);
  const char* separator = " ";
  do {
    std::string_view name;
    std::uint64_t count = 0;
    if (!reader_.expect_name(name, "a register")) return false;
    text += separator + std::string(name);
    if (reader_.accept('<')) {
      if (!reader_.expect_integer(count, "a number of registers") || !reader_.expect('>')) return false;
      if (count == 0 || count > kMostRegisters) {
        return reader_.fail(fmt::format("{} registers named '{}', must be 1 to {}", count, name, kMostRegisters));
      }
      text += fmt::format("<{}>", count);
    }
    if (!scopes_.declare_registers(name, bits, count)) {
      return reader_.fail(fmt::format("'{}' is declared twice", name));
    }
    separator = ", ";
  } while (reader_.accept(','));
  add_item(Item::Kind::kRegisters, reader_.token().line).text = text + ";";
  return reader_.expect(';');
}

bool BodyParser::keep(Variable variable) {
  if (variable.space == Space::kGlobal || variable.space == Space::kConst) {
    return statics_.keep(reader_, std::move(variable));
  }
  const int index = static_cast<int>(function_.variables.size());
  scopes_.declare_variable(variable.name, index);
  function_.variables.push_back(std::move(variable));
  add_item(Item::Kind::kVariable, reader_.token().line).index = index;
  return true;
}

bool BodyParser::labelled_item(std::string_view name, int line) {
  if (reader_.accept_dotted(".branchtargets")) return target_list(add_item(Item::Kind::kBranchTargets, line, name));
  if (reader_.accept_dotted(".calltargets")) return target_list(add_item(Item::Kind::kCallTargets, line, name));
  if (reader_.accept_dotted(".callprototype")) return prototype_item(name, line);
  add_item(Item::Kind::kLabel, line, name);
  return true;
}

// The targets of a table, or of a call: labels and functions are names here, since they may stand further down.
bool BodyParser::target_list(Item& item) {
  do {
    std::string_view name;
    if (!reader_.expect_name(name, "a target")) return false;
    item.targets.push_back(name);
  } while (reader_.accept(','));
  return reader_.expect(';');
}

bool BodyParser::prototype_item(std::string_view name, int line) {
  Signature signature;
  std::string_view underscore;
  if (reader_.is('(') && !read_parameters(reader_, signature.results)) return false;
  if (!reader_.expect_name(underscore, "_") || (reader_.is('(') && !read_parameters(reader_, signature.parameters)))
    return false;
  reader_.accept_dotted(".noreturn");
  add_item(Item::Kind::kPrototype, line, name).index = static_cast<int>(function_.prototypes.size());
  function_.prototypes.push_back(std::move(signature));
  return reader_.expect(';');
}

// Any operands, of any number: which of them an instruction may have is the rewriter's to know.
bool BodyParser::instruction_item(Instruction instruction, int line) {
  while (reader_.is_dotted()) {
    if (!is_modifier(reader_.token().text))
      return reader_.fail(fmt::format("'{}' is no modifier", reader_.token().text));
    instruction.modifiers.push_back(reader_.token().text);
    reader_.advance();
  }
  if (!reader_.is(';')) {
    do {
      instruction.operands.emplace_back();
      if (!read_operand(reader_, scopes_, instruction.operands.back())) return false;
    } while (reader_.accept(','));
  }
  if (!reader_.is(';')) return reader_.fail(fmt::format("expected ',' or ';' before '{}'", reader_.token().text));
  reader_.advance();
  add_item(Item::Kind::kInstruction, line).instruction = std::move(instruction);
  return true;
}

}  // namespace

bool StaticVariables::keep(TokenReader& reader, Variable variable) {
  if (!names.insert(variable.name).second) {
    return reader.fail(fmt::format("variable '{}' is declared twice", variable.name));
  }
  variables.push_back(std::move(variable));
  return true;
}

bool read_body(TokenReader& reader, Function& function, StaticVariables& statics) {
  return BodyParser(reader, function, statics).run();
}

}  // namespace fairlead::fence
