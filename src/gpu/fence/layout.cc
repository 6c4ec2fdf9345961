// Variables, in the order of the text and by their alignment, from variables_address on:
//
//   .global .b8 a[3];  .global .align 8 .b64 b = a;        a at +0, b at +8; the image's bytes 8 to 15 are the address of a
//
// Functions get 16, 32, ...: numbers that are no addresses of anything, so that one in a kernel's hands leads nowhere but to
// the comparison that a call through an address has become.
//
// Frames follow each other in the arena as calls do, so that its size is the deepest chain's (call_graph.h), rounded up to a
// power of two because accesses are masked to it.
#include "gpu/fence/layout.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include "gpu/fence/call_graph.h"
#include "gpu/fence/instruction_set.h"
#include "gpu/fence/parser.h"

namespace fairlead::fence {
namespace {

// 0 is the null pointer in what compilers write, and must stay the address of no function.
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
    Status done = name_functions();
    if (!done) return tl::unexpected<Error>(done.error());
    number_functions();
    out_.consts_are_placed = takes_address_of_const();
    done = place_variables();
    out_.image.resize(done ? bytes_ : 0);
    if (done) done = fill_image();
    if (done) done = lay_out_frames();
    if (!done) return tl::unexpected<Error>(done.error());
    return std::move(out_);
  }

  Result<std::uint64_t> measure() {
    out_.consts_are_placed = takes_address_of_const();
    const Status placed = place_variables();
    if (!placed) return tl::unexpected<Error>(placed.error());
    return bytes_;
  }

 private:
  Status name_functions() {
    for (const Function& function : module_.functions) {
      const Function*& known = out_.functions[function.name];
      if (known != nullptr && known->has_body && function.has_body) {
        return fail(Errc::kInvalidArgument, "{}the module has two functions of that name",
                    at_line(function.name, function.line));
      }
      if (known == nullptr || function.has_body) known = &function;
    }
    for (const Alias& alias : module_.aliases) {
      Status named = name_alias(alias);
      if (!named) return named;
    }
    return {};
  }

  // Another name of a function that the module defines, and nothing else: calls go to what the name stands for, so a name
  // that stands for nothing, or has a body of its own, would leave a call without a target or give it two.
  Status name_alias(const Alias& alias) {
    const auto refuse = [&](std::string_view reason) {
      return fail(Errc::kInvalidArgument, "{}alias '{}' of '{}': {}", at_line({}, alias.line), alias.name, alias.target,
                  reason);
    };
    const Function* const target = out_.function(alias.target);
    if (target == nullptr || !target->has_body) return refuse("its target is no function with a body in this module");
    if (target->is_entry) return refuse("its target is a kernel, which nothing can call");
    const Function*& known = out_.functions[alias.name];
    if (known != nullptr && known->has_body) return refuse("there is a function with a body, or an alias, of its name");
    known = target;
    return {};
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
    for (const auto& [name, id] : out_.function_ids) {
      out_.functions_of_shape[shape_of(out_.function(name)->signature)].push_back(name);
    }
  }

  // Kernels have none: their address is of no use to a kernel.
  void number_function(std::string_view name) {
    const Function* function = out_.function(name);
    if (function == nullptr || function->is_entry || !function->has_body) return;
    out_.function_ids.try_emplace(name, kFunctionIdStep * (out_.function_ids.size() + 1));
  }

  // One address that is taken moves all of them: which variable such an address leads to cannot be told at its use.
  bool takes_address_of_const() const {
    bool found = false;
    for_each_instruction(module_, [&](const Function&, const Item& item) {
      found |= item.instruction.opcode == "cvta" && has_modifier(item.instruction, ".const");
    });
    std::set<std::string_view> consts;
    for (const Variable& variable : module_.variables) {
      if (variable.space == Space::kConst) consts.insert(variable.name);
    }
    for (const Variable& variable : module_.variables) {
      for (const Initialiser& value : variable.initialisers) {
        found |= !value.symbol.empty() && (variable.space == Space::kConst || consts.contains(value.symbol));
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
        note_shared(variable);
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

  void note_shared(const Variable& variable) {
    if (variable.space != Space::kShared) return;
    out_.has_shared = true;
    if (variable.bytes == 0) out_.dynamic_alignment = std::max(out_.dynamic_alignment, variable.alignment);
  }

  Status check_place() {
    // In this order, as a sum of numbers that strangers chose might wrap around.
    const std::uint64_t offset = options_.variables_address - options_.base;
    if (offset > options_.bytes || bytes_ > options_.bytes - offset) {
      return fail(Errc::kTooLarge, "variables_address is {:#x}: {} bytes from there leave the range {:#x} + {}",
                  options_.variables_address, bytes_, options_.base, options_.bytes);
    }
    // A declaration of one line may ask for any size; the image is made in memory.
    constexpr std::uint64_t kLargestImage = std::uint64_t{1} << 30;
    if (bytes_ > kLargestImage) {
      return fail(Errc::kTooLarge, "the module's variables take {} bytes, the limit is {}", bytes_, kLargestImage);
    }
    return {};
  }

  // Numbers as the hardware has them, little endian; addresses as the variables were placed.
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

  // A float may be written for a variable of 4 bytes or of 8, and as bits of either.
  static std::uint64_t number_bits(const Variable& variable, const Initialiser& value) {
    if (!value.is_float) return value.is_negative ? std::uint64_t{0} - value.bits : value.bits;
    if (value.is_single) return value.bits ^ (value.is_negative ? std::uint64_t{1} << 31 : 0);
    const double number = std::bit_cast<double>(value.bits) * (value.is_negative ? -1 : 1);
    if (variable.type == ".f32") return std::bit_cast<std::uint32_t>(static_cast<float>(number));
    return std::bit_cast<std::uint64_t>(number);
  }

  // Rounded up to 16 bytes, the widest access, so that the next frame is aligned for all types.
  Status lay_out_frames() {
    for (const Function& function : module_.functions) {
      if (!function.has_body) continue;
      Frame& frame = out_.frames[function.name];
      for (std::size_t i = 0; i < function.variables.size(); ++i) {
        const Variable& variable = function.variables[i];
        note_shared(variable);
        if (variable.space != Space::kLocal) continue;
        frame.bytes = align_up(frame.bytes, variable.alignment);
        frame.offsets[static_cast<int>(i)] = frame.bytes;
        frame.bytes += variable.bytes;
      }
      frame.bytes = align_up(frame.bytes, 16);
    }
    return size_arena();
  }

  // The arena holds the deepest stack of frames. One node of the graph stands for all calls through addresses: whoever
  // makes one reaches that node, and it reaches every function whose address is taken.
  Status size_arena() {
    CallGraph graph;
    std::map<std::string_view, std::size_t> numbers;
    for (const auto& [name, frame] : out_.frames) numbers[name] = graph.add(frame.bytes);
    const std::size_t indirect = graph.add(0);
    for (const auto& [name, id] : out_.function_ids) graph.add_call(indirect, numbers.at(out_.function(name)->name));
    for_each_instruction(module_, [&](const Function& caller, const Item& item) {
      if (item.instruction.opcode != "call") return;
      const CallParts parts = call_parts(item.instruction);
      if (parts.target == nullptr) return;
      if (is_indirect_call(item.instruction)) return graph.add_call(numbers.at(caller.name), indirect);
      const Function* const callee = out_.function(parts.target->name);
      if (callee != nullptr && callee->has_body) graph.add_call(numbers.at(caller.name), numbers.at(callee->name));
    });
    const CallGraph::Depth depth = graph.depth();
    if (depth.unbounded) return refuse_recursion(numbers, *depth.unbounded);
    if (depth.bytes > kLargestArena) {
      return fail(Errc::kTooLarge, "variables in .local take {} bytes of a thread, the limit is {}", depth.bytes,
                  kLargestArena);
    }
    out_.arena_bytes = depth.bytes == 0 ? 0 : std::bit_ceil(depth.bytes);
    return {};
  }

  Status refuse_recursion(const std::map<std::string_view, std::size_t>& numbers, std::size_t number) const {
    const auto found = std::ranges::find(numbers, number, [](const auto& entry) { return entry.second; });
    return fail(Errc::kInvalidArgument,
                "{}it calls itself and has variables in .local, so that the memory it needs is not bounded",
                at_line(found->first, out_.function(found->first)->line));
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

std::string name_in_output(const Function& function) {
  return (function.has_body ? "" : "__fence_") + std::string(function.name);
}

Result<Layout> lay_out(const Module& module, const FenceOptions& options) {
  return LayoutBuilder(module, options).run();
}

Shape shape_of(const Signature& signature) {
  Shape shape;
  for (const Variable& variable : signature.results) shape.first.push_back(variable.bytes);
  for (const Variable& variable : signature.parameters) shape.second.push_back(variable.bytes);
  return shape;
}

Result<std::uint64_t> variable_bytes(const Module& module, const FenceOptions& options) {
  return LayoutBuilder(module, options).measure();
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
