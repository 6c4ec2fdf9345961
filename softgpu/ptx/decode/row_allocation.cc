// Linear scan over intervals of instruction indices. A register is alive from its first to its last mention; if it is
// mentioned in more than one basic block, or read before it is written, also in the whole of every loop its interval
// touches, because its value may come round the loop. Two registers of one size share a row when their intervals are
// disjoint.
//
// Lanes that have diverged are at different instructions and may hold different registers in one row: each lane has its
// own element, and only rows of one element size are shared.
//
// Example: %f1 is written at 3 and read at 5, %f2 written at 6 and read at 9 of the same block: one row. Had a loop
// from 4 to 8 read %f1, too, its interval would be 3 to 8.
#include "softgpu/ptx/decode/row_allocation.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "softgpu/ptx/program.h"

namespace softgpu::ptx {
namespace {

struct Interval {
  int first = -1, last = -1;
  int block = 0;            // of the first mention
  bool is_carried = false;  // a value may outlive its basic block
};

struct Loop {
  int first = 0, last = 0;
};

class Allocator {
 public:
  explicit Allocator(const ast::Function& function) : function_(function), intervals_(function.registers.size()) {}

  RowAllocation run() {
    find_mentions();
    find_loops();
    for (Interval& interval : intervals_) {
      if (interval.is_carried) extend_over_loops(interval);
    }
    scan();
    return std::move(out_);
  }

 private:
  void find_mentions();
  void mention(const ast::Operand& operand, bool writes);
  void mention_register(int index, bool writes);
  void find_loops();
  void add_loop(std::string_view label, int from);
  void extend_over_loops(Interval& interval) const;
  void scan();

  const ast::Function& function_;
  std::vector<Interval> intervals_;
  std::vector<Loop> loops_;
  std::unordered_map<std::string_view, int> labels_;
  int at_ = 0, block_ = 0;
  RowAllocation out_;
};

bool ends_block(std::string_view opcode) {
  return opcode == "bra" || opcode == "brx" || opcode == "ret" || opcode == "exit" || opcode == "trap";
}

// Whether the first operand is a destination. Stores have their address first, which is marked as memory.
bool writes_first_operand(const ast::Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  return instruction.guard < 0 && !ends_block(opcode) && opcode != "bar" && opcode != "barrier" &&
         opcode != "nanosleep" && opcode != "call" && opcode != "st" && opcode != "red";
}

void Allocator::mention_register(int index, bool writes) {
  if (index < 0) return;
  Interval& interval = intervals_[static_cast<std::size_t>(index)];
  if (interval.first < 0) {
    interval.first = at_;
    interval.block = block_;
    interval.is_carried = !writes;
  }
  interval.last = at_;
  if (interval.block != block_) interval.is_carried = true;
}

void Allocator::mention(const ast::Operand& operand, bool writes) {
  if (operand.kind == ast::Operand::Kind::kRegister) {
    mention_register(operand.index, writes && !operand.memory);
  }
  mention_register(operand.second, writes);
  if (operand.kind != ast::Operand::Kind::kList) return;
  for (const ast::Operand& element : function_.elements_of(operand)) mention(element, writes);
}

// Sources before the destination: `add %r, %r, 1` reads %r first.
void Allocator::find_mentions() {
  for (const ast::Instruction& instruction : function_.instructions) {
    if (instruction.opcode.empty()) {
      labels_.emplace(instruction.label, at_);
      ++block_;
    } else {
      const auto operands = function_.operands_of(instruction);
      mention_register(instruction.guard, false);
      for (std::size_t i = 1; i < operands.size(); ++i) mention(operands[i], false);
      if (!operands.empty()) mention(operands[0], writes_first_operand(instruction));
      if (ends_block(instruction.opcode)) ++block_;
    }
    ++at_;
  }
}

void Allocator::add_loop(std::string_view label, int from) {
  const auto to = labels_.find(label);
  if (to != labels_.end() && to->second <= from) loops_.push_back({to->second, from});
}

void Allocator::find_loops() {
  int at = 0;
  for (const ast::Instruction& instruction : function_.instructions) {
    for (const ast::Operand& operand : function_.operands_of(instruction)) {
      if (operand.kind != ast::Operand::Kind::kSymbol || !ends_block(instruction.opcode)) continue;
      add_loop(operand.name, at);
      for (const ast::BranchTable& table : function_.branch_tables) {
        if (table.name != operand.name) continue;
        for (const std::string_view label : table.labels) add_loop(label, at);
      }
    }
    ++at;
  }
}

void Allocator::extend_over_loops(Interval& interval) const {
  for (bool changed = true; changed;) {
    changed = false;
    for (const Loop& loop : loops_) {
      if (loop.last < interval.first || loop.first > interval.last) continue;
      if (loop.first >= interval.first && loop.last <= interval.last) continue;
      interval.first = std::min(interval.first, loop.first);
      interval.last = std::max(interval.last, loop.last);
      changed = true;
    }
  }
}

void Allocator::scan() {
  struct Row {
    std::int32_t offset;
    int last;
  };
  // By logarithm of the element size, 0 to 4; predicates come last.
  std::array<std::vector<Row>, 6> rows;
  std::vector<std::size_t> order;
  for (std::size_t index = 0; index < intervals_.size(); ++index) {
    if (intervals_[index].first >= 0) order.push_back(index);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return intervals_[a].first < intervals_[b].first; });
  out_.rows.assign(intervals_.size(), kNoRow);
  for (const std::size_t index : order) {
    const Interval& interval = intervals_[index];
    const Type type = function_.registers[index];
    const std::size_t bytes = type == Type::kPred ? sizeof(std::uint32_t) : size_of(type) * kLanes;
    auto& candidates = rows[static_cast<std::size_t>(__builtin_ctzll(size_of(type) | 32))];
    // The most recently freed row is the likeliest to be in the cache.
    auto best = candidates.end();
    for (auto row = candidates.begin(); row != candidates.end(); ++row) {
      if (row->last < interval.first && (best == candidates.end() || row->last > best->last)) best = row;
    }
    if (best == candidates.end()) {
      const std::size_t begin = align_up(out_.frame_bytes, type == Type::kPred ? sizeof(std::uint32_t) : kRowAlignment);
      out_.frame_bytes = begin + bytes;
      out_.peak_words += static_cast<unsigned>((size_of(type) + 3) / 4);
      best = candidates.insert(candidates.end(), {static_cast<std::int32_t>(begin), 0});
    }
    best->last = interval.last;
    out_.rows[index] = best->offset;
    out_.lives.push_back({best->offset, interval.first, interval.last});
  }
}

}  // namespace

RowAllocation allocate_rows(const ast::Function& function) {
  return Allocator(function).run();
}

}  // namespace softgpu::ptx
