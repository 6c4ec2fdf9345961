//   setp %p ..; @%p bra L; mov ..; L: ret;
//
//   0 ──> block 1 (setp, bra) ──> block 3 (mov) ──> block 4 (label, ret)
//               └──> node 2, the name L ────────────────┘
//
// The name L is a node of its own. A table of 1,000 labels that 1,000 branches use has 2,000 edges so, not a million.
#include "gpu/fence/flow_graph.h"

#include <map>
#include <string_view>

namespace fairlead::fence {
namespace {

class Builder {
 public:
  explicit Builder(const Function& function) : function_(function) {}

  FlowGraph run() {
    // Node 0 is before the first statement: nothing leads there, also where the text begins with a label.
    add_node(0);
    std::uint32_t at = begin_block(0, 0);
    for (std::size_t i = 0; i < function_.items.size(); ++i) {
      const Item& item = function_.items[i];
      if (item.kind == Item::Kind::kLabel) {
        at = end_block(at, i, true);
        add_edge(node_of(item.name), at);
      } else if (item.kind == Item::Kind::kBranchTargets) {
        for (const std::string_view target : item.targets) add_edge(node_of(item.name), node_of(target));
      } else if (item.kind == Item::Kind::kInstruction) {
        at = instruction(item.instruction, at, i);
      }
    }
    out_.blocks[at].end = function_.items.size();
    return std::move(out_);
  }

 private:
  std::uint32_t add_node(std::size_t begin) {
    out_.blocks.push_back({begin, begin});
    out_.next.emplace_back();
    return static_cast<std::uint32_t>(out_.next.size() - 1);
  }
  void add_edge(std::uint32_t from, std::uint32_t to) { out_.next[from].push_back(to); }
  std::uint32_t begin_block(std::uint32_t from, std::size_t begin) {
    const std::uint32_t node = add_node(begin);
    add_edge(from, node);
    return node;
  }

  std::uint32_t node_of(std::string_view name) {
    const auto [entry, inserted] = names_.try_emplace(name, 0);
    if (inserted) entry->second = add_node(0);
    return entry->second;
  }

  // The block ends before item `end`, where the next one begins.
  std::uint32_t end_block(std::uint32_t at, std::size_t end, bool goes_on) {
    out_.blocks[at].end = end;
    return goes_on ? begin_block(at, end) : add_node(end);
  }

  std::uint32_t instruction(const Instruction& instruction, std::uint32_t at, std::size_t index) {
    const std::string_view opcode = instruction.opcode;
    const bool is_branch = opcode == "bra" || opcode == "brx";
    if (!is_branch && opcode != "ret" && opcode != "exit") return at;
    // Of a table branch the last operand names the table, of a branch its label: both are nodes.
    if (is_branch && !instruction.operands.empty()) add_edge(at, node_of(instruction.operands.back().name));
    return end_block(at, index + 1, !instruction.guard.empty());
  }

  const Function& function_;
  FlowGraph out_;
  std::map<std::string_view, std::uint32_t> names_;
};

}  // namespace

FlowGraph flow_of(const Function& function) {
  return Builder(function).run();
}

}  // namespace fairlead::fence
