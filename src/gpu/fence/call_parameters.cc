// A set of bytes for each parameter of a call, filled by stores and asked by loads and calls:
//
//   { .param .align 8 .b8 s[16];
//   st.param.b32 [s], %r1;                  bytes 0 to 3
//   st.param.b64 [s+8], %rd1;               bytes 8 to 15
//   call f, (s); }                          reads 0 to 15: bytes 4 to 7, the padding, were never stored, so s needs zeros
//
// A parameter of more than 4096 bytes is not followed byte by byte, which would let a declaration of one line take gigabytes:
// such a parameter gets its zeros unless one call's result filled it.
#include "gpu/fence/call_parameters.h"

#include <algorithm>
#include <cstdint>

#include "gpu/fence/instruction_set.h"
#include "gpu/fence/layout.h"

namespace fairlead::fence {
namespace {

constexpr std::uint64_t kLargest = 4096;  // bytes that are looked at one by one

class Search {
 public:
  explicit Search(const Function& function) : function_(function), states_(function.variables.size()) {
    out_.needs_zeros.resize(function.variables.size());
  }

  CallParameters run() {
    for (const Item& item : function_.items) {
      item_ = &item;
      if (item.kind == Item::Kind::kLabel) ++stretch_;
      if (item.kind == Item::Kind::kVariable) declare(static_cast<std::size_t>(item.index));
      if (item.kind == Item::Kind::kInstruction) instruction(item.instruction);
    }
    return std::move(out_);
  }

 private:
  struct State {
    bool is_parameter = false;
    int declared_in = 0;  // stretch of code without a label
    int stored_in = 0;
    std::vector<bool> stored;  // by byte
    std::uint64_t bytes_stored = 0;
    bool is_result = false;  // of a call in stored_in: all of it is stored
  };

  // A declaration that is reached again is a new variable, with nothing in it.
  void declare(std::size_t variable) {
    if (function_.variables[variable].space != Space::kParam) return;
    states_[variable] = {.is_parameter = true, .declared_in = stretch_, .stored_in = stretch_, .stored = {}};
  }

  State* state_of(const Operand& operand) {
    if (operand.variable < 0) return nullptr;
    State& state = states_[static_cast<std::size_t>(operand.variable)];
    return state.is_parameter ? &state : nullptr;
  }

  void instruction(const Instruction& instruction) {
    if (instruction.opcode == "call") return call(instruction);
    const bool is_load = instruction.opcode == "ld", is_store = instruction.opcode == "st";
    if (!(is_load || is_store) || space_of(instruction) != Space::kParam) return;
    for (const Operand& operand : instruction.operands) {
      if (operand.kind != Operand::Kind::kAddress) continue;
      const auto begin = static_cast<std::uint64_t>(operand.offset);
      if (is_load) read(operand, begin, access_bytes(instruction));
      // A store under a predicate may not happen, so that it proves nothing.
      if (is_store && instruction.guard.empty()) store(operand, begin, access_bytes(instruction));
    }
  }

  // A call reads all of what it hands over, and fills all of what it is handed back.
  void call(const Instruction& call) {
    const CallParts parts = call_parts(call);
    if (parts.arguments != nullptr) {
      for (const Operand& argument : parts.arguments->elements) {
        if (state_of(argument) != nullptr) read(argument, 0, size_of(argument));
      }
    }
    if (parts.results == nullptr || !call.guard.empty()) return;
    for (const Operand& result : parts.results->elements) {
      State* const state = state_of(result);
      if (state == nullptr) continue;
      state->is_result = true;
      state->stored_in = stretch_;
    }
  }

  std::uint64_t size_of(const Operand& operand) const {
    return function_.variables[static_cast<std::size_t>(operand.variable)].bytes;
  }

  void store(const Operand& operand, std::uint64_t begin, std::uint64_t bytes) {
    // What was stored in another stretch is on another way, perhaps: only stores since the last label count.
    State* const state = state_of(operand);
    if (state == nullptr || state->stored_in != stretch_) return;
    const std::uint64_t size = std::min(size_of(operand), kLargest);
    if (begin >= size) return;
    state->stored.resize(size);
    for (std::uint64_t i = begin; i < size && i - begin < bytes; ++i) {
      state->bytes_stored += state->stored[i] ? 0 : 1;
      state->stored[i] = true;
    }
  }

  void read(const Operand& operand, std::uint64_t begin, std::uint64_t bytes) {
    const State* const state = state_of(operand);
    if (state == nullptr) return;
    const bool is_near = state->stored_in == stretch_;
    bool is_stored = is_near && (state->is_result || state->bytes_stored == size_of(operand));
    const bool is_part = bytes < size_of(operand);
    if (is_near && !is_stored && is_part && begin < state->stored.size() && bytes <= state->stored.size() - begin) {
      const auto first = state->stored.begin() + static_cast<std::ptrdiff_t>(begin);
      is_stored = std::all_of(first, first + static_cast<std::ptrdiff_t>(bytes), [](bool stored) { return stored; });
    }
    if (is_stored || bytes == 0) return;
    out_.needs_zeros[static_cast<std::size_t>(operand.variable)] = true;
    if (state->declared_in != stretch_ && out_.behind_label == nullptr) out_.behind_label = item_;
  }

  const Function& function_;
  std::vector<State> states_;
  CallParameters out_;
  const Item* item_ = nullptr;
  int stretch_ = 0;
};

}  // namespace

CallParameters parameters_read_before_written(const Function& function) {
  return Search(function).run();
}

}  // namespace fairlead::fence
