#include "fence/layout.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "fence/instruction_set.h"
#include "fence/parser.h"

namespace fairlead::fence {
namespace {

constexpr std::uint64_t kFunctionIdStep = 16;
constexpr std::uint64_t kLargestArena = 512 << 10;  // what a thread may have of local memory

std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

template <class Visit>
void for_each_instruction(const Module& module, Visit visit) {
  for (const Function& function : module.functions) {
    for (const Item& item : function.items) {
      if (item.kind == Item::Kind::kInstruction) visit(function, item);
    }
  }
}

class LayoutBuilder {
 public:
  LayoutBuilder(const Module& module, const FenceOptions& options) : module_(module), options_(options) {}

  Result<Layout> run() {
    name_functions();
    number_functions();
    out_.consts_are_placed = takes_address_of_const();
    Status done = place_variables();
    if (done) done = fill_image();
    if (done) done = lay_out_frames();
    if (!done) return tl::unexpected<Error>(done.error());
    return std::move(out_);
  }

 private:
  void name_functions() {
    for (const Function& function : module_.functions) {
      const Function*& known = out_.functions[function.name];
      if (known == nullptr || function.has_body) known = &function;
    }
    for (const Alias& alias : module_.aliases) out_.functions[alias.name] = out_.function(alias.target);
  }

  // Every function that is named where it is not called.
  void number_functions() {
    for_each_instruction(module_, [&](const Function&, const Item& item) {
      if (item.instruction.opcode == "call") return;
      for (const Operand& operand : item.instruction.operands) number_function(operand.name);
    });
    for (const Variable& variable : module_.variables) {
      for (const Initialiser& value : variable.initialisers) number_function(value.symbol);
    }
  }

  void number_function(std::string_view name) {
    const Function* function = out_.function(name);
    if (function == nullptr || function->is_entry || !function->has_body) return;
    out_.function_ids.try_emplace(name, kFunctionIdStep * (out_.function_ids.size() + 1));
  }

  bool takes_address_of_const() const {
    bool found = false;
    for_each_instruction(module_, [&](const Function&, const Item& item) {
      found |= item.instruction.opcode == "cvta" && has_modifier(item.instruction, ".const");
    });
    const auto is_const = [&](std::string_view name) {
      return std::ranges::any_of(module_.variables, [&](const Variable& variable) {
        return variable.name == name && variable.space == Space::kConst;
      });
    };
    for (const Variable& variable : module_.variables) {
      for (const Initialiser& value : variable.initialisers) {
        found |= !value.symbol.empty() && (variable.space == Space::kConst || is_const(value.symbol));
      }
    }
    return found;
  }

  Status place_variables() {
    std::uint64_t end = 0;
    for (const Variable& variable : module_.variables) {
      const bool is_placed =
          variable.space == Space::kGlobal || (variable.space == Space::kConst && out_.consts_are_placed);
      if (!is_placed) {
        out_.kept[variable.name] = &variable;
        continue;
      }
      if (variable.linkage == ".extern") {
        return fail(Errc::kInvalidArgument, "{}variable '{}' is .extern: nothing of this module defines it",
                    at_line({}, variable.line), variable.name);
      }
      const std::uint64_t offset = align_up(end, variable.alignment);
      end = offset + variable.bytes;
      if (end > options_.bytes) {
        return fail(Errc::kTooLarge, "{}variable '{}' ends at byte {} of the module's variables, the range has {}",
                    at_line({}, variable.line), variable.name, end, options_.bytes);
      }
      out_.placed[variable.name] = {std::string(variable.name), options_.variables_address + offset, variable.bytes};
    }
    bytes_ = end;
    return check_place();
  }

  Status check_place() {
    const std::uint64_t offset = options_.variables_address - options_.base;
    if (offset > options_.bytes || bytes_ > options_.bytes - offset) {
      return fail(Errc::kTooLarge, "variables_address is {:#x}: {} bytes from there leave the range {:#x} + {}",
                  options_.variables_address, bytes_, options_.base, options_.bytes);
    }
    constexpr std::uint64_t kLargestImage = std::uint64_t{1} << 30;
    if (bytes_ > kLargestImage) {
      return fail(Errc::kTooLarge, "the module's variables take {} bytes, the limit is {}", bytes_, kLargestImage);
    }
    out_.image.resize(bytes_);
    return {};
  }

  Status fill_image() {
    for (const Variable& variable : module_.variables) {
      const auto place = out_.placed.find(variable.name);
      if (place == out_.placed.end()) continue;
      std::byte* at = out_.image.data() + (place->second.address - options_.variables_address);
      for (const Initialiser& value : variable.initialisers) {
        const Result<std::uint64_t> bits = bits_of(variable, value);
        if (!bits) return tl::unexpected<Error>(bits.error());
        std::memcpy(at, &*bits, std::min<std::size_t>(variable.scalar_bytes, sizeof *bits));
        at += variable.scalar_bytes;
      }
    }
    return {};
  }

  Result<std::uint64_t> bits_of(const Variable& variable, const Initialiser& value) const {
    if (value.symbol.empty()) return number_bits(variable, value);
    if (variable.scalar_bytes < sizeof(std::uint64_t)) {
      return fail(Errc::kInvalidArgument, "{}variable '{}' holds the address of '{}' in {} bytes, it needs 8",
                  at_line({}, variable.line), variable.name, value.symbol, variable.scalar_bytes);
    }
    const auto place = out_.placed.find(value.symbol);
    if (place != out_.placed.end()) return place->second.address + value.bits;
    const auto id = out_.function_ids.find(value.symbol);
    if (id != out_.function_ids.end() && value.bits == 0) return id->second;
    return fail(Errc::kInvalidArgument,
                "{}variable '{}' holds the address of '{}', which is no variable in memory and no "
                "function with a body",
                at_line({}, variable.line), variable.name, value.symbol);
  }

  static std::uint64_t number_bits(const Variable& variable, const Initialiser& value) {
    if (!value.is_float) return value.is_negative ? std::uint64_t{0} - value.bits : value.bits;
    if (value.is_single) return value.bits ^ (value.is_negative ? std::uint64_t{1} << 31 : 0);
    const double number = std::bit_cast<double>(value.bits) * (value.is_negative ? -1 : 1);
    if (variable.type == ".f32") return std::bit_cast<std::uint32_t>(static_cast<float>(number));
    return std::bit_cast<std::uint64_t>(number);
  }

  Status lay_out_frames() {
    for (const Function& function : module_.functions) {
      if (!function.has_body) continue;
      Frame& frame = out_.frames[function.name];
      for (std::size_t i = 0; i < function.variables.size(); ++i) {
        const Variable& variable = function.variables[i];
        if (variable.space != Space::kLocal) continue;
        frame.bytes = align_up(frame.bytes, variable.alignment);
        frame.offsets[static_cast<int>(i)] = frame.bytes;
        frame.bytes += variable.bytes;
      }
      frame.bytes = align_up(frame.bytes, 16);
    }
    return size_arena();
  }

  // The deepest stack of frames: the longest path in the graph of calls, by relaxation. A cycle that takes memory never
  // settles: recursion, whose depth nobody knows.
  Status size_arena() {
    std::map<std::string_view, std::uint64_t> depths;
    std::vector<std::pair<std::string_view, std::string_view>> calls = calls_made();
    for (const auto& [name, frame] : out_.frames) depths[name] = frame.bytes;
    bool changed = true;
    for (std::size_t round = 0; changed; ++round) {
      changed = false;
      for (const auto& [caller, callee] : calls) {
        const std::uint64_t depth = out_.frames[caller].bytes + depths[callee];
        if (depth <= depths[caller]) continue;
        depths[caller] = depth;
        changed = true;
        if (round <= out_.frames.size()) continue;
        return fail(Errc::kInvalidArgument,
                    "{}it calls itself and has variables in .local, so that the memory it needs "
                    "is not bounded",
                    at_line(caller, out_.function(caller)->line));
      }
    }
    std::uint64_t deepest = 0;
    for (const auto& [name, depth] : depths) deepest = std::max(deepest, depth);
    if (deepest > kLargestArena) {
      return fail(Errc::kTooLarge, "variables in .local take {} bytes of a thread, the limit is {}", deepest,
                  kLargestArena);
    }
    out_.arena_bytes = deepest == 0 ? 0 : std::bit_ceil(deepest);
    return {};
  }

  std::vector<std::pair<std::string_view, std::string_view>> calls_made() const {
    std::vector<std::pair<std::string_view, std::string_view>> calls;
    for_each_instruction(module_, [&](const Function& caller, const Item& item) {
      if (item.instruction.opcode != "call") return;
      const CallParts parts = call_parts(item.instruction);
      if (parts.target == nullptr) return;
      if (is_indirect_call(item.instruction)) {
        for (const auto& [callee, id] : out_.function_ids) calls.emplace_back(caller.name, out_.function(callee)->name);
      } else if (const Function* callee = out_.function(parts.target->name); callee != nullptr) {
        calls.emplace_back(caller.name, callee->name);
      }
    });
    std::ranges::sort(calls);
    const auto duplicates = std::ranges::unique(calls);
    calls.erase(duplicates.begin(), duplicates.end());
    return calls;
  }

  const Module& module_;
  const FenceOptions& options_;
  Layout out_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

const Function* Layout::function(std::string_view name) const {
  const auto found = functions.find(name);
  return found == functions.end() ? nullptr : found->second;
}

Result<Layout> lay_out(const Module& module, const FenceOptions& options) {
  return LayoutBuilder(module, options).run();
}

CallParts call_parts(const Instruction& call) {
  CallParts parts;
  const auto is_list = [](const Operand& operand) { return operand.kind == Operand::Kind::kList; };
  for (const Operand& operand : call.operands) {
    if (parts.target == nullptr && is_list(operand) && parts.results == nullptr) {
      parts.results = &operand;
    } else if (parts.target == nullptr) {
      parts.target = &operand;
    } else if (is_list(operand) && parts.arguments == nullptr) {
      parts.arguments = &operand;
    } else {
      parts.prototype = operand.name;
    }
  }
  return parts;
}

bool is_indirect_call(const Instruction& instruction) {
  if (instruction.opcode != "call") return false;
  const CallParts parts = call_parts(instruction);
  return parts.target != nullptr && parts.target->register_id >= 0;
}

}  // namespace fairlead::fence
