// What the parser makes of PTX text. Names are views into the text, which must outlive the tree. Registers and
// function-local variables are resolved by the parser, everything else by the decoder.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "softgpu/ptx/types.h"

namespace softgpu::ptx::ast {

struct Operand {
  enum class Kind : std::uint8_t {
    kRegister,  // index; second: the q of p|q, or -1; name: the selector of r.b0, or empty
    kInteger,   // bits
    kFloat32,   // bits
    kFloat64,   // bits
    kSymbol,    // name + offset: a variable, function or label of the module
    kVariable,  // index of a .param or .local variable of the function, + offset
    kSpecial,   // name: a special register, with its .x suffix
    kList,      // {a, b} or (a, b): index is the first of count elements in Function::list_elements
    kSink,      // _
  };
  Kind kind = Kind::kSink;
  bool negated = false;  // !p, or -r
  bool memory = false;   // written in brackets
  int index = -1;
  int second = -1;
  int count = 0;
  std::uint64_t bits = 0;
  std::int64_t offset = 0;
  std::string_view name;
};

struct Instruction {
  int line = 0;
  int guard = -1;  // predicate register of @p, or -1
  bool guard_negated = false;
  std::string_view opcode;  // empty for a label, whose name is in `label`
  std::string_view label;
  std::uint32_t first_modifier = 0, modifier_count = 0;
  std::uint32_t first_operand = 0, operand_count = 0;
};

// One scalar of an initialiser: a number, or the address of a symbol plus an offset.
struct Initialiser {
  std::uint64_t bits = 0;
  std::string_view symbol;
  bool generic = false;  // generic(symbol)
};

struct Variable {
  int line = 0;
  std::string_view name;
  Space space = Space::kGlobal;
  Type type = Type::kB8;
  std::size_t alignment = 1;
  std::size_t element_bytes = 0;  // of an array; a vector is one element
  std::size_t bytes = 0;
  bool is_extern = false;
  bool is_managed = false;
  std::vector<Initialiser> initialisers;
};

struct BranchTable {
  std::string_view name;
  std::vector<std::string_view> labels;
};

struct Function {
  int line = 0;
  std::string_view name;
  bool is_entry = false;
  bool has_body = false;
  unsigned max_threads = 0;  // 0: not stated
  std::vector<Variable> returns, parameters;
  std::vector<Variable> variables;  // .local and .param variables; begins with returns, then parameters
  std::vector<Type> registers;
  std::vector<Instruction> instructions;
  std::vector<Operand> operands;
  std::vector<Operand> list_elements;
  std::vector<std::string_view> modifiers;
  std::vector<BranchTable> branch_tables;

  std::span<const Operand> operands_of(const Instruction& instruction) const {
    return std::span(operands).subspan(instruction.first_operand, instruction.operand_count);
  }
  std::span<const std::string_view> modifiers_of(const Instruction& instruction) const {
    return std::span(modifiers).subspan(instruction.first_modifier, instruction.modifier_count);
  }
  std::span<const Operand> elements_of(const Operand& list) const {
    return std::span(list_elements).subspan(static_cast<std::size_t>(list.index), static_cast<std::size_t>(list.count));
  }
};

// `.alias name, target;`: another name of a function.
struct Alias {
  int line = 0;
  std::string_view name, target;
};

struct Module {
  std::vector<Alias> aliases;
  std::vector<Variable> variables;  // .global, .const and .shared, of the module and of its functions
  std::vector<Function> functions;
};

}  // namespace softgpu::ptx::ast
