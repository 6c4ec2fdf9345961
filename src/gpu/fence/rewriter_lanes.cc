// Instructions that read other lanes' registers. A lane that is not there (a block of 33 threads has 31 of them), has ended
// or is elsewhere has not written its own, and they hold what the last kernel left. PTX leaves undefined what comes of that;
// here a shuffle gets 0, and a matrix instruction, which needs all lanes of its warp, traps without them.
//
//   vote.sync.ballot  l, yes, mask      the lanes that will execute the shuffle
//   shfl.sync.down    d|q, a, b, c, mask
//   lane + b          is not in l, and q: the value came from nobody
#include "gpu/fence/instruction_set.h"
#include "gpu/fence/rewriter.h"

namespace fairlead::fence {
namespace {

bool ends_stretch(std::string_view opcode) {
  return opcode == "bra" || opcode == "brx" || opcode == "call" || opcode == "ret" || opcode == "exit";
}

}  // namespace

// Behind a label or a jump other lanes may be here than before.
void FunctionRewriter::forget_lanes() {
  whole_warp_is_known_ = false;
  lanes_known_for_.clear();
}

// Once for a stretch of code without label or jump, as within one the lanes stay together.
void FunctionRewriter::look_for_lanes() {
  if (ends_stretch(now_.opcode)) forget_lanes();
  if (!needs_whole_warp(now_) || whole_warp_is_known_ || !options_.clears_leftovers) return;
  find_lanes("-1");
  emit("setp.ne.u32 %__fence_p2, %__fence_lanes, -1;");
  if (!now_.guard.empty()) {
    emit("and.pred %__fence_p2, %__fence_p2, {}{};", now_.guard_negated ? "!" : "", now_.guard);
  }
  emit("@%__fence_p2 trap;");
  whole_warp_is_known_ = now_.guard.empty();
}

// Of the warp's lanes those that execute this, with the same mask where it has one, unless they are known already.
void FunctionRewriter::find_lanes(const std::string& mask) {
  uses_lanes_ = uses_temporaries_ = true;
  if (!mask.empty() && lanes_known_for_ == mask) return;
  if (!now_.guard.empty()) emit("mov.u32 %__fence_lanes, 0;");
  emit_guarded(mask.empty() ? "vote.ballot.b32 %__fence_lanes, %__fence_yes;"
                            : fmt::format("vote.sync.ballot.b32 %__fence_lanes, %__fence_yes, {};", mask));
  lanes_known_for_ = now_.guard.empty() ? mask : "";
}

// w1 = the lane that is read, where that is one at all.
bool FunctionRewriter::find_source_lane(const Operand& lane, const Operand& segment) {
  const std::string by = text_of(lane);
  const bool is_whole = segment.kind == Operand::Kind::kNumber && (segment.bits >> 8 & 31) == 0;
  if (has_modifier(now_, ".idx") && !is_whole) {  // within a segment: its upper bits are this lane's
    emit("xor.b32 %__fence_w0, %__fence_lane, {};", by);
    emit("shr.u32 %__fence_w1, {}, 8;", text_of(segment));
    emit("and.b32 %__fence_w0, %__fence_w0, %__fence_w1;");
    emit("xor.b32 %__fence_w1, %__fence_w0, {};", by);
    emit("and.b32 %__fence_w1, %__fence_w1, 31;");
    return true;
  }
  emit("and.b32 %__fence_w1, {}, 31;", by);
  if (has_modifier(now_, ".idx")) return true;
  const char* const way = has_modifier(now_, ".up")     ? "sub.u32"
                          : has_modifier(now_, ".down") ? "add.u32"
                          : has_modifier(now_, ".bfly") ? "xor.b32"
                                                        : nullptr;
  if (way == nullptr) return refuse("its direction is not known to the fence");
  emit("{} %__fence_w1, %__fence_lane, %__fence_w1;", way);
  return true;
}

bool FunctionRewriter::shuffle() {
  if (!options_.clears_leftovers) return plain();
  const bool is_sync = has_modifier(now_, ".sync");
  if (now_.operands.size() != (is_sync ? 5u : 4u)) return refuse("it has another number of operands than is known");
  if (!operands_are_plain(now_.operands)) return false;
  Operand& to = now_.operands[0];
  if (to.negated || (to.register_id < 0 && to.name != "_")) return refuse("its result goes to no register");
  const Operand* const mask = is_sync ? &now_.operands[4] : nullptr;
  find_lanes(is_sync ? text_of(*mask) : "");
  if (is_sync && mask->kind != Operand::Kind::kNumber) lanes_known_for_.clear();  // it may be written anew
  if (!find_source_lane(now_.operands[2], now_.operands[3])) return false;
  emit("bfe.u32 %__fence_w1, %__fence_lanes, %__fence_w1, 1;");
  if (to.second_id < 0) {
    if (!now_.guard.empty()) emit("mov.pred %__fence_p2, 0;");
    to.second = "%__fence_p2";
  }
  emit("{}", text_of(now_));
  if (to.register_id < 0) return true;
  emit("setp.eq.and.u32 %__fence_p1, %__fence_w1, 0, {};", to.second);
  emit_guarded(fmt::format("selp.b32 {0}, 0, {0}, %__fence_p1;", to.name));
  return true;
}

}  // namespace fairlead::fence
