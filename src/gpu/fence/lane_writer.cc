// Instructions that read other lanes' registers. A lane that is not there (a block of 33 threads has 31 of them), has ended
// or is elsewhere has not written its own, and they hold what the last kernel left. PTX leaves undefined what comes of that;
// here a shuffle gets 0, and a matrix instruction, which needs all lanes of its warp, traps without them.
//
//   vote.sync.ballot  l, yes, mask      the lanes that will execute the shuffle
//   shfl.sync.down    d|q, a, b, c, mask
//   lane + b          is not in l, and q: the value came from nobody
#include <string>

#include "gpu/fence/function_writer.h"
#include "gpu/fence/instruction_set.h"

namespace fairlead::fence {
namespace {

// Behind such a jump other lanes may be here than before.
bool ends_stretch(std::string_view opcode) {
  return opcode == "bra" || opcode == "brx" || opcode == "call" || opcode == "ret" || opcode == "exit";
}

// Of the warp's lanes those that execute this, with the same mask where it has one, unless they are known already.
void write_lanes(const std::string& mask, const Instruction& instruction, FunctionWriter& to) {
  const std::string_view lanes = to.scratch.lanes(), yes = to.scratch.yes();
  if (!mask.empty() && to.lanes.known_for == mask) return;
  const bool is_certain = instruction.guard.empty();
  if (!is_certain) to.text.line("mov.u32 {}, 0;", lanes);
  if (mask.empty()) {
    to.text.guarded(instruction, "vote.ballot.b32 {}, {};", lanes, yes);
  } else {
    to.text.guarded(instruction, "vote.sync.ballot.b32 {}, {}, {};", lanes, yes, mask);
  }
  to.lanes.known_for = is_certain ? mask : "";
}

// Within a segment: the lane's upper bits are this lane's.
void write_lane_in_segment(std::string_view result, const Instruction& shuffle, FunctionWriter& to) {
  const std::string_view own = to.scratch.word(0), lane = to.scratch.lane();
  const std::string by = text_of(shuffle.operands[2]);
  to.text.line("xor.b32 {}, {}, {};", own, lane, by);
  to.text.line("shr.u32 {}, {}, 8;", result, text_of(shuffle.operands[3]));
  to.text.line("and.b32 {}, {}, {};", own, own, result);
  to.text.line("xor.b32 {}, {}, {};", result, own, by);
  to.text.line("and.b32 {}, {}, 31;", result, result);
}

// The lane that is read, where that is one at all.
void write_source_lane(Shuffle::Source source, std::string_view result, const Instruction& shuffle,
                       FunctionWriter& to) {
  using Source = Shuffle::Source;
  if (source == Source::kIndexInSegment) return write_lane_in_segment(result, shuffle, to);
  to.text.line("and.b32 {}, {}, 31;", result, text_of(shuffle.operands[2]));
  if (source == Source::kIndex) return;
  const std::string_view way = source == Source::kUp ? "sub.u32" : source == Source::kDown ? "add.u32" : "xor.b32";
  to.text.line("{} {}, {}, {};", way, result, to.scratch.lane(), result);
}

}  // namespace

// Once for a stretch of code without label or jump, as within one the lanes stay together.
void write_lane_check(const Instruction& instruction, FunctionWriter& to) {
  if (ends_stretch(instruction.opcode)) to.lanes = {};
  const bool is_due = needs_whole_warp(instruction) && !to.lanes.is_whole_warp && to.facts.options.clears_leftovers;
  if (!is_due) return;
  write_lanes("-1", instruction, to);
  const std::string_view is_missing = to.scratch.predicate(2);
  to.text.line("setp.ne.u32 {}, {}, -1;", is_missing, to.scratch.lanes());
  const bool is_certain = instruction.guard.empty();
  if (!is_certain) {
    to.text.line("and.pred {}, {}, {}{};", is_missing, is_missing, instruction.guard_negated ? "!" : "",
                 instruction.guard);
  }
  to.text.line("@{} trap;", is_missing);
  to.lanes.is_whole_warp = is_certain;
}

void write(const Shuffle& plan, const Instruction& instruction, FunctionWriter& to) {
  const std::string_view source = to.scratch.word(1);
  write_lanes(plan.mask == nullptr ? "" : text_of(*plan.mask), instruction, to);
  // A mask in a register may be written anew.
  if (plan.mask != nullptr && plan.mask->kind != Operand::Kind::kNumber) to.lanes.known_for.clear();
  write_source_lane(plan.source, source, instruction, to);
  to.text.line("bfe.u32 {}, {}, {}, 1;", source, to.scratch.lanes(), source);
  Instruction shuffle = instruction;
  Operand& result = shuffle.operands[0];
  if (result.second_id < 0) {
    result.second = to.scratch.predicate(2);
    if (!instruction.guard.empty()) to.text.line("mov.pred {}, 0;", result.second);
  }
  to.text.line(shuffle);
  if (result.register_id < 0) return;
  const std::string_view is_nobodys = to.scratch.predicate(1);
  to.text.line("setp.eq.and.u32 {}, {}, 0, {};", is_nobodys, source, result.second);
  to.text.guarded(instruction, "selp.b32 {0}, 0, {0}, {1};", result.name, is_nobodys);
}

}  // namespace fairlead::fence
