// What is known of a function before a word of it is written anew, and does not change while it is: a value that plans of
// instructions (instruction_plan.h) are made from.
//
//   { .local .b8 a[32];                        variable 0
//     mov.u64 %rd1, a;  add.s64 %rd2, %rd1, 8;   %rd2 is 8 bytes into it, and never anything else
//     t: .branchtargets A, B;  A: ...            table t: two labels, both there
//
// Near linear in the function's length. Pure. Threads: none of its own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/fence/address_plan.h"
#include "gpu/fence/call_parameters.h"
#include "gpu/fence/definitions.h"
#include "gpu/fence/fence.h"
#include "gpu/fence/layout.h"
#include "gpu/fence/ptx.h"

namespace fairlead::fence {

// A .local variable, by its index in Function::variables, and an offset in it.
struct LocalPlace {
  int variable = -1;
  std::int64_t offset = 0;
};

// A .branchtargets, .calltargets or .callprototype. Looked through once, however many branches and calls name it.
struct Table {
  const Item* item = nullptr;
  std::string_view stray;                              // of branches: the first target that is no label; empty: none
  std::vector<std::string_view> functions;             // of calls: the targets whose address is taken
  const std::vector<std::string_view>* all = nullptr;  // of a prototype: all functions of its shape; null: none

  const std::vector<std::string_view>& possible_targets() const { return all == nullptr ? functions : *all; }
};

// Names are views into the text, and pointers lead into function and layout: both must outlive the facts.
struct FunctionFacts {
  const Function& function;
  const Layout& layout;
  const FenceOptions& options;
  AddressPlan addresses;
  ReadFirst read_first;
  CallParameters call_parameters;
  std::set<std::string_view> labels;
  std::map<std::string_view, Table> tables;               // of a name that two tables have: the last
  std::vector<bool> mentioned;                            // by variable: an instruction names it
  std::vector<std::optional<LocalPlace>> local_pointers;  // by register: what it points to whenever it is set
  std::map<int, std::string> new_names;                   // of registers of inner scopes that the function's start sets
};

FunctionFacts facts_of(const Function& function, const Layout& layout, const FenceOptions& options);

// Whether an item is one of the three kinds of Table.
bool is_table(const Item& item);
// Of a table of branches: why it does not lead to labels of its function alone.
Status leads_to_labels(const Table& table);
// Of the operand's register; 0: it is none.
unsigned bits_of(const FunctionFacts& facts, const Operand& operand);
// The variable of the body that the operand names, or null.
const Variable* variable_of(const FunctionFacts& facts, const Operand& operand);
// Where in a .local variable the operand leads, if that is a constant.
std::optional<LocalPlace> local_place(const FunctionFacts& facts, const Operand& operand);
// Of such a place, from the beginning of the function's frame on.
std::uint64_t offset_in_frame(const FunctionFacts& facts, const LocalPlace& place);
// The name by which the fenced function knows a register.
std::string_view name_of_register(const FunctionFacts& facts, int id);
// The instruction with those names.
Instruction with_new_names(const FunctionFacts& facts, Instruction instruction);

}  // namespace fairlead::fence
