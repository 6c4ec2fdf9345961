// How. First each block alone: what it reads before it writes it, what it writes. Then the tree of dominators, once, with a
// count for each register of the blocks above that write it: a read with a count above 0 is covered by one block that all ways
// pass. What is left was written, if at all, on several ways, none of which is on all:
//
//   @%p bra A;  mov %r1, 1;  bra B;  A: mov %r1, 2;  B: add %r2, %r1, 1;
//
// No block dominates B and writes %r1. So a search goes backwards from B, and ends at blocks that write %r1. Should it come to
// the entry instead, %r1 may be read first. In what compilers write these searches are short; 64 steps for each statement of
// the function bound them all together, and whatever is not decided by then counts as read first.
#include "gpu/fence/definitions.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "gpu/fence/flow_graph.h"
#include "gpu/fence/instruction_set.h"

namespace fairlead::fence {
namespace {

// PTX allows any number of results, and each return reads all of them: without a bound a function of n results and n returns
// would take n * n steps.
constexpr std::size_t kMostResults = 4;        // that are looked at; PTX as compilers write it has one
constexpr std::size_t kStepsForEachItem = 64;  // of the search backwards

// The registers, the carry and the results of a function are slots, numbered in this order.
struct Slots {
  explicit Slots(const Function& function)
      : carry(static_cast<std::uint32_t>(function.registers.size())),
        count(carry + 1 + function.signature.results.size()) {}
  std::uint32_t carry;
  std::size_t count;
};

// Each block alone.
struct Accesses {
  Edges read, written;   // by block: slots that it reads before it writes them, and slots that it writes
  Edges blocks_writing;  // by slot
};

class AccessFinder {
 public:
  AccessFinder(const Function& function, const FlowGraph& graph)
      : function_(function),
        graph_(graph),
        slots_(function),
        read_in_(slots_.count, kUnreached),
        written_in_(read_in_) {
    out_.read.resize(graph.blocks.size());
    out_.written.resize(graph.blocks.size());
    out_.blocks_writing.resize(slots_.count);
  }

  // Registers of blocks that no way leads to stay out of it: what is never run reads nothing.
  Accesses find(const std::vector<std::uint32_t>& dominator) {
    for (std::uint32_t block = 0; block < graph_.blocks.size(); ++block) {
      if (dominator[block] != kUnreached) look_at(block);
    }
    return std::move(out_);
  }

 private:
  // Once for each block: the second read of a register in a block tells nothing new, and lists stay linear in the text.
  void read(std::uint32_t slot) {
    if (written_in_[slot] == block_ || read_in_[slot] == block_) return;
    read_in_[slot] = block_;
    out_.read[block_].push_back(slot);
  }
  void write(std::uint32_t slot) {
    if (written_in_[slot] == block_) return;
    written_in_[slot] = block_;
    out_.written[block_].push_back(slot);
    out_.blocks_writing[slot].push_back(block_);
  }

  // What a block reads that it has not written itself, and what it writes.
  void look_at(std::uint32_t block) {
    block_ = block;
    const FlowGraph::Block& range = graph_.blocks[block];
    for (std::size_t i = range.begin; i < range.end; ++i) {
      if (function_.items[i].kind == Item::Kind::kInstruction) look_at(function_.items[i].instruction);
    }
    // The end of a body is a return.
    if (range.end == function_.items.size()) read_results();
  }

  void look_at(const Instruction& instruction) {
    if (instruction.guard_id >= 0) read(static_cast<std::uint32_t>(instruction.guard_id));
    const Operand* destination = destination_of(instruction);
    for (const Operand& operand : instruction.operands) {
      if (&operand != destination) read_operand(operand);
    }
    if (instruction.opcode == "ret") read_results();
    if (reads_carry(instruction)) read(slots_.carry);
    // Under a predicate it may keep what it held: that is read.
    const bool is_certain = instruction.guard.empty();
    const auto reached = [&](int slot) {
      is_certain ? write(static_cast<std::uint32_t>(slot)) : read(static_cast<std::uint32_t>(slot));
    };
    if (destination != nullptr) {
      for_each_register(*destination, reached);
    }
    if (writes_carry(instruction)) reached(static_cast<int>(slots_.carry));
    if (const auto result = result_stored(instruction)) reached(static_cast<int>(slots_.carry + 1 + *result));
  }

  template <class Visit>
  static void for_each_register(const Operand& operand, Visit visit) {
    if (operand.register_id >= 0) visit(operand.register_id);
    if (operand.second_id >= 0) visit(operand.second_id);
    for (const Operand& element : operand.elements) for_each_register(element, visit);
  }
  void read_operand(const Operand& operand) {
    for_each_register(operand, [&](int slot) { read(static_cast<std::uint32_t>(slot)); });
  }

  // A return reads all results, as the caller will.
  void read_results() {
    if (function_.signature.results.size() > kMostResults) return;
    for (std::uint32_t slot = slots_.carry + 1; slot < slots_.count; ++slot) read(slot);
  }

  // The result that an st.param stores whole.
  std::optional<std::uint32_t> result_stored(const Instruction& instruction) const {
    if (instruction.opcode != "st" || space_of(instruction) != Space::kParam || instruction.operands.empty()) return {};
    const Operand& address = instruction.operands[0];
    const auto variable = static_cast<std::size_t>(address.variable);
    const auto& results = function_.signature.results;
    if (address.variable < 0 || variable >= results.size() || address.offset != 0) return {};
    if (access_bytes(instruction) < results[variable].bytes) return {};
    return static_cast<std::uint32_t>(variable);
  }

  const Function& function_;
  const FlowGraph& graph_;
  const Slots slots_;
  std::uint32_t block_ = 0;                          // that is looked at
  std::vector<std::uint32_t> read_in_, written_in_;  // by slot: the last block that does
  Accesses out_;
};

// All blocks together.
class Search {
 public:
  explicit Search(const Function& function)
      : function_(function),
        slots_(function),
        graph_(flow_of(function)),
        dominator_(immediate_dominators(graph_.next)),
        accesses_(AccessFinder(function, graph_).find(dominator_)),
        steps_left_(kStepsForEachItem * (function.items.size() + 64)),
        undominated_(slots_.count),
        written_by_(graph_.blocks.size(), kUnreached),
        seen_for_(written_by_) {}

  ReadFirst run() {
    find_undominated();
    find_previous();
    ReadFirst out;
    for (std::uint32_t slot = 0; slot < slots_.count; ++slot) {
      const bool is_unsearched = slot > slots_.carry && function_.signature.results.size() > kMostResults;
      if (!is_unsearched && !may_be_read_first(slot)) continue;
      if (slot < slots_.carry) out.registers.push_back(static_cast<int>(slot));
      if (slot == slots_.carry) out.carry = true;
      // Variables begin with results.
      if (slot > slots_.carry) out.results.push_back(static_cast<int>(slot - slots_.carry - 1));
    }
    return out;
  }

 private:
  // Walks the tree of dominators with what the blocks above write: a block's reads of anything else are undominated.
  void find_undominated() {
    Edges children(graph_.blocks.size());
    for (std::uint32_t block = 1; block < graph_.blocks.size(); ++block) {
      if (dominator_[block] != kUnreached) children[dominator_[block]].push_back(block);
    }
    // With a stack of its own, as the tree is as deep as a stranger likes.
    std::vector<std::uint32_t> above(slots_.count);  // by slot: how many blocks on the path write it
    std::vector<std::pair<std::uint32_t, std::size_t>> path;
    const auto enter = [&](std::uint32_t block) {
      for (const std::uint32_t slot : accesses_.read[block]) {
        if (above[slot] == 0) undominated_[slot].push_back(block);
      }
      for (const std::uint32_t slot : accesses_.written[block]) ++above[slot];
      path.emplace_back(block, 0);
    };
    enter(0);
    while (!path.empty()) {
      auto& [block, child] = path.back();
      if (child < children[block].size()) {
        enter(children[block][child++]);
        continue;
      }
      for (const std::uint32_t slot : accesses_.written[block]) --above[slot];
      path.pop_back();
    }
  }

  void find_previous() {
    previous_.resize(graph_.blocks.size());
    for (std::uint32_t block = 0; block < graph_.blocks.size(); ++block) {
      if (dominator_[block] == kUnreached) continue;
      for (const std::uint32_t to : graph_.next[block]) previous_[to].push_back(block);
    }
  }

  // Backwards from the reads that no single block's writing covers, until all ways have met one, or one has met none.
  bool may_be_read_first(std::uint32_t slot) {
    std::vector<std::uint32_t>& waiting = undominated_[slot];
    if (waiting.empty()) return false;
    // Marks by slot number, so that nothing has to be wiped between searches.
    for (const std::uint32_t block : accesses_.blocks_writing[slot]) written_by_[block] = slot;
    for (const std::uint32_t block : waiting) seen_for_[block] = slot;
    while (!waiting.empty()) {
      const std::uint32_t block = waiting.back();
      waiting.pop_back();
      if (block == 0 || steps_left_ < previous_[block].size()) return true;
      steps_left_ -= previous_[block].size();
      for (const std::uint32_t from : previous_[block]) {
        if (written_by_[from] == slot || seen_for_[from] == slot) continue;
        seen_for_[from] = slot;
        waiting.push_back(from);
      }
    }
    return false;
  }

  const Function& function_;
  const Slots slots_;
  const FlowGraph graph_;
  const std::vector<std::uint32_t> dominator_;
  const Accesses accesses_;
  std::size_t steps_left_;
  Edges undominated_;                      // by slot: blocks whose reads no single block's writing covers
  Edges previous_;                         // by block
  std::vector<std::uint32_t> written_by_;  // by block: the last slot that was searched for and is written there
  std::vector<std::uint32_t> seen_for_;    // by block: the last slot for which the search came by
};

}  // namespace

ReadFirst read_before_written(const Function& function) {
  return Search(function).run();
}

}  // namespace fairlead::fence
