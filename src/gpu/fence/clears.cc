// Facts travel against the calls, from who reads to who called it, until nobody learns anything new:
//
//   entry ──calls──> a ──calls──> b: ld.shared        b reads shared memory, so a does, so the entry does and must clear it
//
// Each function learns each of three facts once at most, so each call is looked at four times at most. All calls through
// addresses go by one node, which calls every function whose address is taken: a call site each would make their product.
#include "gpu/fence/clears.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <vector>

#include "gpu/fence/instruction_set.h"
#include "gpu/fence/parser.h"

namespace fairlead::fence {
namespace {

// What holds of a function holds of those that call it.
enum Fact : std::uint8_t { kReadsShared = 1, kReadsLocal = 2, kInCluster = 4 };

struct Node {
  const Function* function = nullptr;  // null: stands for all calls through addresses
  std::uint8_t facts = 0;
  std::vector<std::size_t> callers;
};

// Atomic operations give back what was there; reductions (red) and stores do not.
bool is_read(const Instruction& instruction) {
  return instruction.opcode == "ld" || instruction.opcode == "ldu" || instruction.opcode == "atom";
}

// Conservative where an address is generic: it may be any memory that the module has.
std::uint8_t facts_of(const Instruction& instruction, const Layout& layout) {
  const Family family = knowledge_of(instruction).family;
  const Space space = space_of(instruction);
  // A generic load may be of any of these memories, if the module has any.
  const bool is_generic = family == Family::kAccess && space == Space::kGeneric && is_read(instruction);
  const bool reads_shared = (family == Family::kAccess && space == Space::kShared && is_read(instruction)) ||
                            (family == Family::kMatrix && space == Space::kShared) ||
                            (family == Family::kSharedOnly && instruction.opcode != "stmatrix");
  const bool reads_local = is_generic || (space == Space::kLocal && is_read(instruction));
  const auto names_cluster = [](std::string_view modifier) { return modifier.ends_with("::cluster"); };
  std::uint8_t facts = 0;
  if (reads_shared || (is_generic && layout.has_shared)) facts |= kReadsShared;
  if (reads_local && layout.arena_bytes > 0) facts |= kReadsLocal;
  if (std::ranges::any_of(instruction.modifiers, names_cluster)) facts |= kInCluster;
  return facts;
}

class Planner {
 public:
  Planner(const Module& module, const Layout& layout) : module_(module), layout_(layout) {}

  Result<std::map<std::string_view, Clears>> run() {
    for (const auto& [name, frame] : layout_.frames) {
      numbers_[name] = nodes_.size();
      nodes_.push_back({.function = layout_.function(name), .callers = {}});
    }
    // All calls through addresses.
    nodes_.emplace_back();
    for (const auto& [name, id] : layout_.function_ids) {
      nodes_[numbers_.at(layout_.function(name)->name)].callers.push_back(nodes_.size() - 1);
    }
    for (std::size_t i = 0; i + 1 < nodes_.size(); ++i) look_at(i);
    spread();
    std::map<std::string_view, Clears> out;
    for (const Node& node : nodes_) {
      if (node.function == nullptr || !node.function->is_entry) continue;
      const Clears clears{.shared = (node.facts & kReadsShared) != 0,
                          .cluster = (node.facts & kInCluster) != 0,
                          .arena = (node.facts & kReadsLocal) != 0};
      const Status possible = clears.shared ? check_version(*node.function) : Status();
      if (!possible) return tl::unexpected<Error>(possible.error());
      if (clears.shared || clears.arena) out[node.function->name] = clears;
    }
    return out;
  }

 private:
  void look_at(std::size_t number) {
    for (const Item& item : nodes_[number].function->items) {
      if (item.kind != Item::Kind::kInstruction) continue;
      nodes_[number].facts |= facts_of(item.instruction, layout_);
      if (item.instruction.opcode == "call") look_at_call(number, item.instruction);
    }
  }

  void look_at_call(std::size_t caller, const Instruction& call) {
    const CallParts parts = call_parts(call);
    if (parts.target == nullptr) return;
    if (is_indirect_call(call)) return nodes_.back().callers.push_back(caller);
    const Function* const callee = layout_.function(parts.target->name);
    if (callee != nullptr && callee->has_body) nodes_[numbers_.at(callee->name)].callers.push_back(caller);
  }

  // From functions to their callers, each of which is looked at again only if it has learned something.
  void spread() {
    std::vector<std::size_t> waiting;
    for (std::size_t i = 0; i < nodes_.size(); ++i) waiting.push_back(i);
    while (!waiting.empty()) {
      const Node& node = nodes_[waiting.back()];
      waiting.pop_back();
      for (const std::size_t caller : node.callers) {
        const auto facts = static_cast<std::uint8_t>(nodes_[caller].facts | node.facts);
        if (facts == nodes_[caller].facts) continue;
        nodes_[caller].facts = facts;
        waiting.push_back(caller);
      }
    }
  }

  // The sizes of shared memory can be asked for since PTX 4.1.
  Status check_version(const Function& entry) const {
    const std::size_t at = module_.header.find(".version ");
    unsigned major = 0, minor = 0;
    const char* const end = module_.header.data() + module_.header.size();
    if (at != std::string::npos) {
      const auto point = std::from_chars(module_.header.data() + at + 9, end, major);
      if (point.ptr != end && *point.ptr == '.') std::from_chars(point.ptr + 1, end, minor);
    }
    if (major > 4 || (major == 4 && minor >= 1)) return {};
    return fail(Errc::kInvalidArgument,
                "{}it reads shared memory, which is cleared first; that needs .version 4.1, the module has {}.{}",
                at_line(entry.name, entry.line), major, minor);
  }

  const Module& module_;
  const Layout& layout_;
  std::map<std::string_view, std::size_t> numbers_;
  std::vector<Node> nodes_;  // the last one stands for all calls through addresses
};

}  // namespace

Result<std::map<std::string_view, Clears>> plan_clears(const Module& module, const Layout& layout) {
  return Planner(module, layout).run();
}

}  // namespace fairlead::fence
