#include "softgpu/ptx/text/body_parser.h"

#include <string>
#include <utility>

#include "softgpu/ptx/text/labels.h"
#include "softgpu/ptx/text/operand_reader.h"
#include "softgpu/ptx/text/variable_reader.h"

namespace softgpu::ptx {
namespace {

constexpr std::size_t kLargestRegisterCount = 1u << 20;

class BodyParser {
 public:
  BodyParser(TokenReader& reader, Scopes& scopes, ModuleNames& names, ast::Function& function)
      : reader_(reader),
        scopes_(scopes),
        names_(names),
        function_(function),
        operands_(reader, scopes, names, function) {}

  bool body();

 private:
  bool open_scope() { return scopes_.open() || reader_.fail("scopes nested more than 1,000 deep"); }
  bool statement();
  bool directive_statement();
  bool register_declaration();
  bool declare_register(Type type);
  void keep_local(const ast::Variable& variable);
  void keep_variable(ast::Variable variable);
  bool label_or_instruction();
  bool label_directive(std::string_view label);
  bool name_list(std::vector<std::string_view>& names);
  bool prototype();
  bool guard(int& index, bool& negated);
  bool instruction(int guard_index, bool guard_negated);
  void push_instruction(const ast::Instruction& instruction);
  void push_element_address(const ElementAddress& element);
  Type register_type(int index) const { return function_.registers[static_cast<std::size_t>(index)]; }

  TokenReader& reader_;
  Scopes& scopes_;
  ModuleNames& names_;
  ast::Function& function_;
  OperandReader operands_;
  Labels labels_;
};

bool BodyParser::body() {
  if (!reader_.expect('{')) return false;
  scopes_.clear();
  for (const auto* list : {&function_.returns, &function_.parameters}) {
    for (const ast::Variable& variable : *list) keep_local(variable);
  }
  if (!open_scope()) return false;
  while (scopes_.any_open()) {
    if (reader_.is_end()) return reader_.fail("end of text inside function '" + std::string(function_.name) + "'");
    if (reader_.accept('{')) {
      if (!open_scope()) return false;
    } else if (reader_.accept('}')) {
      scopes_.close();
    } else if (!statement()) {
      return false;
    }
  }
  return labels_.resolve(reader_, scopes_.parents(), names_, function_);
}

void BodyParser::keep_local(const ast::Variable& variable) {
  scopes_.declare(variable.name, {LocalName::Kind::kVariable, static_cast<int>(function_.variables.size()), 1});
  function_.variables.push_back(variable);
}

// Those of the module's spaces outlive the call.
void BodyParser::keep_variable(ast::Variable variable) {
  if (variable.space == Space::kLocal || variable.space == Space::kParam) return keep_local(variable);
  const std::string_view name = variable.name;
  LocalName local{LocalName::Kind::kModuleVariable, 0, 1};
  local.module_name = names_.add_scoped(function_.name, std::move(variable));
  scopes_.declare(name, local);
}

bool BodyParser::statement() {
  if (reader_.accept(';')) return true;
  if (reader_.is_dotted()) return directive_statement();
  if (reader_.is('@')) {
    reader_.advance();
    int index = -1;
    bool negated = false;
    return guard(index, negated) && instruction(index, negated);
  }
  return label_or_instruction();
}

bool BodyParser::directive_statement() {
  if (reader_.is_passing_directive()) return reader_.skip_directive();
  const std::string_view word = reader_.token().text;
  if (word == "reg") return register_declaration();
  if (word == "attribute") {
    while (!reader_.is_end() && !reader_.is(';')) reader_.advance();
    return reader_.expect(';');
  }
  const auto space = space_from_name(word);
  if (!space) {
    return reader_.fail("directive ." + std::string(word) + " is not supported in a function",
                        LoadError::Kind::kUnsupported);
  }
  reader_.advance();
  return read_variables(reader_, scopes_, names_, *space, false,
                        [this](ast::Variable variable) { keep_variable(std::move(variable)); });
}

bool BodyParser::register_declaration() {
  reader_.advance();
  const std::string_view word = reader_.token().text;
  const auto type = reader_.is_dotted() ? type_from_name(word) : std::nullopt;
  if (!type) {
    return reader_.fail("registers of type ." + std::string(word) + " are not supported",
                        LoadError::Kind::kUnsupported);
  }
  reader_.advance();
  do {
    if (!declare_register(*type)) return false;
  } while (reader_.accept(','));
  return reader_.expect(';');
}

bool BodyParser::declare_register(Type type) {
  std::string_view name;
  if (!reader_.expect_name(name, "a register name")) return false;
  const int index = static_cast<int>(function_.registers.size());
  if (!reader_.accept('<')) {
    function_.registers.push_back(type);
    scopes_.declare(name, {LocalName::Kind::kRegister, index, 1});
    return true;
  }
  std::size_t count = 0;
  if (!reader_.expect_count(count, "a register count") || !reader_.expect('>')) return false;
  if (function_.registers.size() + count > kLargestRegisterCount)
    return reader_.fail("more than 2^20 registers in a function");
  function_.registers.resize(function_.registers.size() + count, type);
  scopes_.declare(name, {LocalName::Kind::kFamily, index, static_cast<int>(count)});
  return true;
}

bool BodyParser::guard(int& index, bool& negated) {
  negated = reader_.accept('!');
  std::string_view name;
  const int line = reader_.token().line;
  if (!reader_.expect_name(name, "a predicate register")) return false;
  if (!scopes_.find_register(name, index) || register_type(index) != Type::kPred) {
    return reader_.fail_at(line, "'" + std::string(name) + "' is not a predicate register");
  }
  return true;
}

bool BodyParser::label_or_instruction() {
  if (!reader_.is_name()) return reader_.fail_expected("an instruction");
  // One token decides: a label is a name and a colon.
  const Token following = reader_.following();
  if (following.kind != Token::Kind::kPunctuation || following.text != ":") return instruction(-1, false);
  const Token label = reader_.token();
  reader_.advance();
  reader_.advance();
  if (reader_.is_dotted("branchtargets") || reader_.is_dotted("callprototype") || reader_.is_dotted("calltargets")) {
    return label_directive(label.text);
  }
  ast::Instruction mark;
  mark.line = label.line;
  mark.label = label.text;
  labels_.define(label.text, scopes_.current(), label.line);
  push_instruction(mark);
  return true;
}

void BodyParser::push_instruction(const ast::Instruction& instruction) {
  function_.instructions.push_back(instruction);
  labels_.note_instruction(scopes_.current());
}

bool BodyParser::name_list(std::vector<std::string_view>& names) {
  do {
    std::string_view name;
    if (!reader_.expect_name(name, "a name")) return false;
    names.push_back(name);
  } while (reader_.accept(','));
  return reader_.expect(';');
}

// `name: .branchtargets L1, L2;` and `name: .callprototype (.param .b32 _) _ (.param .b64 _);`
bool BodyParser::label_directive(std::string_view label) {
  const bool is_branch_table = reader_.is_dotted("branchtargets");
  const bool is_call_table = reader_.is_dotted("calltargets");
  reader_.advance();
  if (is_branch_table || is_call_table) {
    ast::BranchTable table{label, {}};
    if (!name_list(table.labels)) return false;
    // An indirect call checks its target when it is made.
    if (!is_branch_table) return true;
    labels_.define(label, scopes_.current(), reader_.token().line);
    function_.branch_tables.push_back(std::move(table));
    labels_.note_table(scopes_.current());
    return true;
  }
  return prototype();
}

// Indirect calls take the layout from their argument variables, so the prototype is only checked.
bool BodyParser::prototype() {
  std::vector<ast::Variable> returns, parameters;
  std::string_view underscore;
  if (reader_.is('(') && !read_parameters(reader_, scopes_, returns)) return false;
  if (!reader_.expect_name(underscore, "_") || (reader_.is('(') && !read_parameters(reader_, scopes_, parameters)))
    return false;
  while (reader_.is_dotted()) reader_.advance();  // .noreturn
  return reader_.expect(';');
}

bool BodyParser::instruction(int guard_index, bool guard_negated) {
  ast::Instruction out;
  out.line = reader_.token().line;
  out.guard = guard_index;
  out.guard_negated = guard_negated;
  if (!reader_.expect_name(out.opcode, "an instruction")) return false;
  out.first_modifier = static_cast<std::uint32_t>(function_.modifiers.size());
  while (reader_.is_dotted()) {
    function_.modifiers.push_back(reader_.token().text);
    reader_.advance();
  }
  out.modifier_count = static_cast<std::uint32_t>(function_.modifiers.size()) - out.first_modifier;
  // Operands of nested lists go to list_elements, so those of the instruction stay together.
  out.first_operand = static_cast<std::uint32_t>(function_.operands.size());
  if (!reader_.is(';') && !operands_.read(out.opcode)) return false;
  out.operand_count = static_cast<std::uint32_t>(function_.operands.size()) - out.first_operand;
  for (const ElementAddress& element : operands_.take_element_addresses()) push_element_address(element);
  push_instruction(out);
  return reader_.expect(';');
}

// mad.wide.s32 address, index, size, array
void BodyParser::push_element_address(const ElementAddress& element) {
  const Type type = register_type(element.index.index);
  ast::Instruction sum;
  sum.line = reader_.token().line;
  sum.opcode = "mad";
  sum.first_modifier = static_cast<std::uint32_t>(function_.modifiers.size());
  sum.modifier_count = 2;
  const bool is_wide = size_of(type) == 4;
  function_.modifiers.push_back(is_wide ? "wide" : "lo");
  function_.modifiers.push_back(!is_wide ? "u64" : is_signed(type) ? "s32" : "u32");
  sum.first_operand = static_cast<std::uint32_t>(function_.operands.size());
  sum.operand_count = 4;
  for (const ast::Operand& operand : {element.address, element.index, element.size, element.array}) {
    function_.operands.push_back(operand);
  }
  push_instruction(sum);
}

}  // namespace

bool read_body(TokenReader& reader, Scopes& scopes, ModuleNames& names, ast::Function& function) {
  return BodyParser(reader, scopes, names, function).body();
}

}  // namespace softgpu::ptx
