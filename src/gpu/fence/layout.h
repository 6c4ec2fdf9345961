// Where a fenced module's variables and functions are: variables of .global (and of .const, when their addresses are
// taken) leave the module for the tenant's range; functions whose addresses are taken get a number each; the .local
// variables of all functions of a thread share one array, the arena, so that one mask bounds stores to them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/fence/fence.h"
#include "gpu/fence/ptx.h"

namespace fairlead::fence {

// What a function has of the arena, behind what its callers have.
struct Frame {
  std::uint64_t bytes = 0;
  std::map<int, std::uint64_t> offsets;  // of the .local variables, by their index in Function::variables
};

// The sizes of a function's results and parameters: what a call through an address goes by.
using Shape = std::pair<std::vector<std::uint64_t>, std::vector<std::uint64_t>>;
Shape shape_of(const Signature& signature);

struct Layout {
  std::map<std::string_view, PlacedVariable> placed;
  std::map<std::string_view, const Variable*> kept;  // .const and .shared variables of the module
  bool consts_are_placed = false;
  std::vector<std::byte> image;
  std::map<std::string_view, const Function*> functions;  // definitions before declarations; aliases, too
  std::map<std::string_view, std::uint64_t> function_ids;
  std::map<Shape, std::vector<std::string_view>> functions_of_shape;  // those of function_ids
  std::map<std::string_view, Frame> frames;                           // by function
  std::uint64_t arena_bytes = 0;         // a power of two; 0: the module has no .local variable
  bool has_shared = false;               // the module, or a function, has a .shared variable
  std::uint64_t dynamic_alignment = 16;  // of the variables in dynamic shared memory the largest

  const Function* function(std::string_view name) const;
};

// The name a function has in the fenced module: one that the module declares and the fence stands in for is replaced.
std::string name_in_output(const Function& function);

Result<Layout> lay_out(const Module& module, const FenceOptions& options);
// The size of Layout::image, without making it.
Result<std::uint64_t> variable_bytes(const Module& module, const FenceOptions& options);

// `call (results), target, (arguments), prototype;`: the operands of a call, which stand in a list or not at all.
struct CallParts {
  const Operand* results = nullptr;
  const Operand* target = nullptr;
  const Operand* arguments = nullptr;
  std::string_view prototype;
};
CallParts call_parts(const Instruction& call);
bool is_indirect_call(const Instruction& instruction);

}  // namespace fairlead::fence
