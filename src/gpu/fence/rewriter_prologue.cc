// What stands before a function's body: declarations that the body turned out to need, and the clearing of what the function
// could read before it has written it. Labels of the body stand behind it, so nothing jumps back to here. Where registers
// have short names they are those of a scope in which nothing of the module is named.
//
// In this order, because each needs what stands before it, and because the verifier takes for proved at every label only what is
// done before the first:
//
//   .reg ...;                                              the function's own, companions, scratch registers
//   mov.b64 arena, __fence_arena;                          or from the parameters, in a function that is called
//   mov.b64 a0, base;                                      companions that may be used before they are set
//   clear shared memory, barrier; clear the arena          labels of ours from here on
//   mov.b32 %r7, 0;                                        registers, the carry and results that may be read first
#include <algorithm>

#include "gpu/fence/parser.h"
#include "gpu/fence/rewriter.h"

namespace fairlead::fence {
namespace {

// The widest store to local memory. The arena is as much longer, so that an access at its last byte stays inside.
constexpr std::uint64_t kStoreBytes = 16;
constexpr std::uint64_t kMostStoresInARow = 8;  // beyond that a loop

std::string type_of(unsigned bits) {
  return bits == 1 ? ".pred" : fmt::format(".b{}", bits);
}

}  // namespace

void FunctionRewriter::begin(const std::string& line) {
  start_ += line + "\n";
  report_.prologue += line.starts_with('.') || !line.ends_with(';') ? 0 : 1;
}

std::string FunctionRewriter::prologue() {
  begin_registers();
  begin_arena();
  set_companions();
  if (uses_lanes_) {
    begin("mov.u32 %__fence_lane, %laneid;");
    begin("mov.pred %__fence_yes, -1;");
  }
  if (clears_.shared) clear_shared();
  if (clears_.arena) clear_arena();
  set_registers();
  return std::move(start_);
}

void FunctionRewriter::begin_registers() {
  start_ += declarations_;
  if (!companions_.empty()) begin(fmt::format(".reg .b64 %__fence_a<{}>;", companions_.size()));
  if (uses_temporaries_) {
    begin(".reg .b64 %__fence_t<3>;");
    begin(".reg .b32 %__fence_w<2>;");
    begin(".reg .pred %__fence_p<3>;");
  }
  if (uses_lanes_) {
    begin(".reg .b32 %__fence_lane, %__fence_lanes;");
    begin(".reg .pred %__fence_yes;");
  }
  for (const auto& [id, name] : register_names_) {
    begin(fmt::format(".reg {} {};", type_of(function_.registers[static_cast<std::size_t>(id)].bits), name));
  }
}

// A function is handed where the arena and its frame begin; an entry has the arena and its frame is at its beginning.
void FunctionRewriter::begin_arena() {
  const bool has_arena = layout_.arena_bytes > 0;
  if (has_arena && function_.is_entry) {
    begin(fmt::format(".local .align 16 .b8 __fence_arena[{}];", layout_.arena_bytes + kStoreBytes));
  }
  if (has_arena && (uses_arena_ || uses_generic_arena_)) {
    begin(".reg .b64 %__fence_arena, %__fence_frame, %__fence_generic_arena;");
    begin(function_.is_entry ? "mov.b64 %__fence_arena, __fence_arena;"
                             : "ld.param.b64 %__fence_arena, [__fence_arena];");
    begin(function_.is_entry ? "mov.b64 %__fence_frame, %__fence_arena;"
                             : "ld.param.b64 %__fence_frame, [__fence_frame];");
  }
  if (uses_generic_arena_) begin("cvta.local.u64 %__fence_generic_arena, %__fence_arena;");
}

// All of the block's shared memory, variables or not, by all of its threads. It ends where the hardware's unit of allocation
// does that holds the last byte of dynamic memory, and has %total_smem_size bytes. That is a multiple of the unit, so its
// lowest set bit is one, too. It begins at 0 or, on sm_90, at 1024, behind what the system has for itself, in either case
// with the block's number in its cluster from bit 24; should that not come out, only dynamic memory is cleared.
//
//   c0: this thread, c1: threads, c2: the end, c3: the beginning, then 0, c4: where to store, c5: step, c6: whole 16 bytes
void FunctionRewriter::clear_shared() {
  constexpr std::string_view kText = R"({
.reg .b32 %c<7>;
.reg .pred %q;
mov.u32 %c0, %tid.z;
mov.u32 %c1, %ntid.y;
mov.u32 %c2, %tid.y;
mad.lo.u32 %c0, %c0, %c1, %c2;
mov.u32 %c2, %ntid.x;
mov.u32 %c3, %tid.x;
mad.lo.u32 %c0, %c0, %c2, %c3;
mul.lo.u32 %c1, %c1, %c2;
mov.u32 %c2, %ntid.z;
mul.lo.u32 %c1, %c1, %c2;
mov.u32 %c3, __fence_dynamic;
mov.u32 %c2, %dynamic_smem_size;
add.u32 %c2, %c2, %c3;
mov.u32 %c6, %total_smem_size;
or.b32 %c4, %c6, 1024;
neg.s32 %c5, %c4;
and.b32 %c4, %c4, %c5;
neg.s32 %c5, %c4;
add.u32 %c2, %c2, %c4;
sub.u32 %c2, %c2, 1;
and.b32 %c2, %c2, %c5;
sub.u32 %c4, %c2, %c6;
add.u32 %c4, %c4, 1023;
and.b32 %c4, %c4, -1024;
and.b32 %c5, %c4, 0xffffff;
setp.le.u32 %q, %c5, 1024;
selp.b32 %c3, %c4, %c3, %q;
mad.lo.u32 %c4, %c0, 16, %c3;
shl.b32 %c5, %c1, 4;
and.b32 %c6, %c2, -16;
mov.u32 %c3, 0;
setp.ge.u32 %q, %c4, %c6;
@%q bra __fence_whole;
__fence_next:
st.shared.v4.b32 [%c4], {%c3, %c3, %c3, %c3};
add.u32 %c4, %c4, %c5;
setp.lt.u32 %q, %c4, %c6;
@%q bra __fence_next;
__fence_whole:
add.u32 %c4, %c6, %c0;
setp.ge.u32 %q, %c4, %c2;
@%q bra __fence_cleared;
__fence_byte:
st.shared.b8 [%c4], %c3;
add.u32 %c4, %c4, %c1;
setp.lt.u32 %q, %c4, %c2;
@%q bra __fence_byte;
__fence_cleared:
)";
  for (std::size_t at = 0; at < kText.size();) {
    const std::size_t end = kText.find('\n', at);
    begin(std::string(kText.substr(at, end - at)));
    at = end + 1;
  }
  // Nobody reads before everybody has stored: of the block or, where blocks read each other's memory, of the cluster.
  if (clears_.cluster) begin("barrier.cluster.arrive;");
  begin(clears_.cluster ? "barrier.cluster.wait;" : "bar.sync 0;");
  begin("}");
}

// Once for each thread, in 16 bytes at a time: up to 8 stores in a row, else a loop.
void FunctionRewriter::clear_arena() {
  const std::uint64_t bytes = layout_.arena_bytes + kStoreBytes;
  begin("{");
  begin(".reg .b32 %c;");
  begin("mov.u32 %c, 0;");
  if (bytes <= kMostStoresInARow * kStoreBytes) {
    for (std::uint64_t at = 0; at < bytes; at += kStoreBytes) {
      begin(fmt::format("st.local.v4.b32 [__fence_arena+{}], {{%c, %c, %c, %c}};", at));
    }
    return begin("}");
  }
  // Masked like any access through a register, though this one cannot leave: the verifier believes no loop's bounds.
  begin(".reg .b64 %__fence_l<3>;");
  begin(".reg .pred %q;");
  begin("mov.b64 %__fence_l0, 0;");
  begin("__fence_local:");
  begin("mov.b64 %__fence_l1, __fence_arena;");
  begin(fmt::format("and.b64 %__fence_l2, %__fence_l0, 0x{:x};", layout_.arena_bytes - 1));
  begin("add.s64 %__fence_l2, %__fence_l2, %__fence_l1;");
  begin("st.local.v4.b32 [%__fence_l2], {%c, %c, %c, %c};");
  begin("add.s64 %__fence_l0, %__fence_l0, 16;");
  begin(fmt::format("setp.lt.u64 %q, %__fence_l0, {};", layout_.arena_bytes));
  begin("@%q bra __fence_local;");
  begin(fmt::format("st.local.v4.b32 [__fence_arena+{}], {{%c, %c, %c, %c}};", layout_.arena_bytes));
  begin("}");
}

// Registers, the carry and results that may be read before anything is written to them.
void FunctionRewriter::set_registers() {
  const auto is_wide = [&](int id) { return function_.registers[static_cast<std::size_t>(id)].bits == 128; };
  if (std::ranges::any_of(read_first_.registers, is_wide)) {
    begin(".reg .b64 %__fence_zero;");
    begin("mov.b64 %__fence_zero, 0;");
  }
  for (const int id : read_first_.registers) {
    const auto index = static_cast<std::size_t>(id);
    const char* const zero = is_wide(id) ? "{%__fence_zero, %__fence_zero}" : "0";
    begin(fmt::format("mov{} {}, {};", type_of(function_.registers[index].bits), name_of_register(index), zero));
  }
  if (read_first_.carry) {
    begin(".reg .b32 %__fence_carry;");
    begin("mov.b32 %__fence_carry, 0;");
    begin("add.cc.u32 %__fence_carry, %__fence_carry, %__fence_carry;");
  }
  for (const int result : read_first_.results) {
    const std::size_t before = emitted_;
    if (!store_zeros(function_.variables[static_cast<std::size_t>(result)], start_)) return;
    report_.prologue += emitted_ - before;
  }
}

// Companions without a definition on every way to their uses begin as the range's base.
void FunctionRewriter::set_companions() {
  for (const auto& [id, number] : companions_) {
    if (!plan_.needs_start[static_cast<std::size_t>(id)]) continue;
    begin(fmt::format("mov.b64 %__fence_a{}, 0x{:x};", number, options_.base));
  }
}

// In steps that alignment allows, the last ones smaller.
bool FunctionRewriter::store_zeros(const Variable& parameter, std::string& text) {
  std::uint64_t step = std::min<std::uint64_t>(8, parameter.alignment);
  for (std::uint64_t at = 0; at < parameter.bytes; at += step) {
    while (step > parameter.bytes - at) step /= 2;
    text += fmt::format("st.param.b{} [{}+{}], 0;\n", 8 * step, parameter.name, at);
    ++emitted_;
    if (text.size() <= most_bytes_) continue;
    if (!error_) error_ = Error{Errc::kTooLarge, at_line(function_.name, parameter.line) + too_large()};
    return false;
  }
  return true;
}

std::string_view FunctionRewriter::name_of_register(std::size_t id) const {
  const auto found = register_names_.find(static_cast<int>(id));
  return found == register_names_.end() ? function_.registers[id].name : found->second;
}

// A register of an inner scope cannot be named at the function's start, and to set it where it is declared would set it
// again whenever the scope is entered. So it becomes one of the function.
void FunctionRewriter::name_anew() {
  for (const int id : read_first_.registers) {
    if (!function_.registers[static_cast<std::size_t>(id)].is_nested) continue;
    register_names_[id] = fmt::format("%__fence_r{}", register_names_.size());
  }
}

void FunctionRewriter::mention(const std::vector<Operand>& operands) {
  for (const Operand& operand : operands) {
    if (operand.variable >= 0) mentioned_[static_cast<std::size_t>(operand.variable)] = true;
    mention(operand.elements);
  }
}

void FunctionRewriter::apply_names(std::vector<Operand>& operands) const {
  if (register_names_.empty()) return;
  const auto apply = [&](int id, std::string_view& name) {
    if (const auto found = register_names_.find(id); found != register_names_.end()) name = found->second;
  };
  for (Operand& operand : operands) {
    apply(operand.register_id, operand.name);
    apply(operand.second_id, operand.second);
    apply_names(operand.elements);
  }
}

}  // namespace fairlead::fence
