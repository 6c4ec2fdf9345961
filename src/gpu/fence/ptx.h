// What the parser makes of PTX text: a tree that can be written again. Names are views into the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fairlead::fence {

// Where an address leads. Generic: global, shared or local memory, told apart by the address.
enum class Space : std::uint8_t { kGeneric, kGlobal, kConst, kShared, kLocal, kParam };

struct Operand {
  enum class Kind : std::uint8_t {
    kName,     // a register, variable, function, label or special register, + offset
    kNumber,   // text, with its sign in `negated`
    kAddress,  // [name + offset], or [number] when name is empty
    kList,     // {a, b} or (a, b)
  };
  Kind kind = Kind::kName;
  bool negated = false;           // !p, -r, -1
  bool is_parenthesised = false;  // a list in ()
  std::string_view name;          // of the number: its text
  std::string_view suffix;        // .x of %tid.x
  std::string_view second;        // q of p|q
  std::uint64_t bits = 0;         // of an integer, without its sign; of [number] the address
  std::int64_t offset = 0;
  bool has_offset = false;
  int register_id = -1;  // index of Function::registers
  int second_id = -1;    // likewise, of `second`
  int variable = -1;     // index of Function::variables
  std::vector<Operand> elements;
};

// Nothing about what it does: that is instruction_set.h, and the verifier's own list.
struct Instruction {
  std::string_view guard;  // the predicate of @p, or empty
  int guard_id = -1;       // index of Function::registers
  bool guard_negated = false;
  std::string_view opcode;
  std::vector<std::string_view> modifiers;  // with their dots
  std::vector<Operand> operands;
};

// One scalar of an initialiser: a number, or the address of a symbol plus an offset.
struct Initialiser {
  std::uint64_t bits = 0;
  std::string_view symbol;
  bool is_float = false, is_single = false, is_negative = false;
};

// `.global .align 4 .b32 name[16] = {1, 2};`, and a parameter likewise: its space is kParam.
struct Variable {
  int line = 0;
  Space space = Space::kGlobal;
  std::string_view linkage;  // .visible, .weak, ... or empty
  std::uint64_t alignment = 1;
  std::string_view width;  // .v2, .v4 or empty
  std::string_view type;   // with its dot
  std::string_view name;
  std::vector<std::uint64_t> extents;  // 0: not stated
  std::uint64_t scalar_bytes = 0, bytes = 0;
  std::vector<Initialiser> initialisers;
  std::string initialiser_text;
};

// One of the body, once it is named: %r<1000> makes none by itself.
struct Register {
  std::string_view name;
  unsigned bits = 0;       // 1 for a predicate
  bool is_nested = false;  // declared in a scope within the body
};

// One statement of a function's body.
struct Item {
  enum class Kind : std::uint8_t {
    kInstruction,
    kLabel,          // name
    kOpen,           // {
    kClose,          // }
    kText,           // text: a pragma
    kRegisters,      // text: declarations of registers
    kVariable,       // index of Function::variables
    kBranchTargets,  // name: targets
    kCallTargets,    // name: targets
    kPrototype,      // name: parameters and results as in Function::prototypes[index]
  };
  Kind kind = Kind::kText;
  int line = 0;
  std::string_view name;
  std::string text;
  int index = -1;
  std::vector<std::string_view> targets;
  Instruction instruction;
};

// What a function takes and gives, each a variable in .param.
struct Signature {
  std::vector<Variable> results, parameters;
};

// A declaration has no body, and items and registers are empty.
struct Function {
  int line = 0;
  std::string_view name;
  std::string_view linkage;
  bool is_entry = false;
  bool has_body = false;
  Signature signature;
  std::string directives;  // .maxntid 256 and the like, as written
  std::vector<Register> registers;
  std::vector<Variable> variables;  // of its body, all scopes; begins with results, then parameters
  std::vector<Signature> prototypes;
  std::vector<Item> items;
};

// `.alias name, target;`: another name of a function that the module defines.
struct Alias {
  int line = 0;
  std::string_view name, target;
};

// In the order of the text. Where the fence needs another it makes one of its own (layout.h).
struct Module {
  std::string header;               // .version, .target, .address_size
  std::vector<Variable> variables;  // of the module, and .global and .const ones of functions
  std::vector<Function> functions;
  std::vector<Alias> aliases;
};

// Whose text it is: names that the fence keeps for itself are refused in a tenant's, and are what its own consists of.
enum class Names : std::uint8_t { kOfSource, kOfFence };

// The tree of the text, or the line and the word that cannot be read.
Result<Module> parse_ptx(std::string_view text, Names names = Names::kOfSource);

// Writing.
std::string offset_text(std::int64_t offset);  // "+8", or "+-8": NVIDIA's compiler reads no "-8"
std::string text_of(const Operand& operand);
std::string text_of(const Instruction& instruction);
// The same behind `text`, and of its predicate alone: "@!%p1 ", or nothing.
void append_text(std::string& text, const Instruction& instruction);
void append_guard(std::string& text, const Instruction& instruction);
std::string text_of(const Variable& variable);
std::string text_of(const Signature& signature, std::string_view name);

}  // namespace fairlead::fence
