// What the lines of a function prove about its registers, one line after the other, for the verifier (verifier.h).
//
// A fact is about a value, and a register is written again: so a fact that mentions another register (this predicate says
// whether %a is in shared memory) names the write of it that it is about, and is worth nothing after the next.
//
//   isspacep.shared %p, %a;              %p is about write 3 of %a
//   selp.b64 %b, %a, %c, %p;             write 3 of %a is in shared memory, or this is %c
//
// What is proved at a label is said in verifier.h; everything else is forgotten there, in constant time: facts carry the
// number of the stretch between two labels in which they hold.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "gpu/fence/fence.h"
#include "gpu/fence/ptx.h"

namespace fairlead::fence {

// One write of a register.
struct Written {
  int id = -1;
  unsigned count = 0;
  bool operator==(const Written&) const = default;
};

struct Proven {
  enum class Kind : std::uint8_t {
    kNothing,
    kAtMost,          // `number`
    kInRange,         // an address of the tenant's range
    kMayBeAccessed,   // a generic address: in the range, of shared memory, or in the arena
    kArena,           // where the thread's arena begins, in .local
    kGenericArena,    // the same place as a generic address
    kInArena,         // at most `number` bytes behind that, in .local
    kInGenericArena,  // likewise, generic
    kFrame,           // `number` bytes behind the beginning of this function's frame
    kIsShared,        // a predicate: whether write `of` is a generic address of shared memory
    // A fragment's last row must begin in the range: three steps to a stride that is safe with one address.
    kProduct,   // write `of` of a stride, times `number`
    kLastRow,   // that, and write `from` of an address in the range
    kIsBeyond,  // a predicate: whether that is behind the range
    kStride,    // `number` times this, and write `from` of an address, is in the range
  };
  Kind kind = Kind::kNothing;
  std::uint64_t number = 0;
  Written of, from;

  // Of the register alone, so that it may be known at a label.
  bool stands_alone() const { return of.id < 0 && from.id < 0; }
};

class Proofs {
 public:
  Proofs(const Function& function, const FenceOptions& options);

  Proven of(const Operand& operand) const;  // nothing, if it is no whole register
  // Of the register in an address, whatever the offset: of 64 bits, and with a name of the fence's own.
  Proven of_address(const Operand& address) const;
  // Of a variable in .param, whose 8 bytes a register was stored to.
  Proven of_parameter(int variable) const;
  Written latest_write(const Operand& operand) const { return {operand.register_id, writes_of(operand.register_id)}; }

  void add(const Instruction& instruction);
  // The first of these ends the function's head.
  void pass_label();
  void pass_branch();

 private:
  struct State {
    Proven now, head;
    unsigned stretch = 0;  // in which `now` holds
    unsigned writes = 0;   // so far
    unsigned all_writes = 0;
    bool is_companion = true;  // every write is half a fence, or a constant in the range
  };

  void count_writes();
  bool is_mask_of_pair(std::size_t item, int id) const;
  bool is_base_of_pair(std::size_t item, int id) const;
  bool is_constant_in_range(const Instruction& instruction, int id) const;

  Proven at(int id) const;
  unsigned writes_of(int id) const { return id < 0 ? 0 : states_[static_cast<std::size_t>(id)].writes; }
  void note_parameter(const Instruction& instruction);
  Proven result_of(const Instruction& instruction) const;
  Proven moved(const Operand& from) const;
  Proven sum(const Operand& left, const Operand& right) const;
  Proven chosen(const Operand& yes, const Operand& no, const Operand& predicate) const;
  Proven stride(const Operand& no, const Operand& predicate) const;
  Proven loaded(const Operand& address) const;
  bool is_in_range(std::uint64_t address) const;

  const Function& function_;
  const FenceOptions& options_;
  std::vector<State> states_;  // by register
  std::map<int, Proven> parameters_;
  unsigned stretch_ = 1;
  bool is_head_ = true;
};

// A number as the fence writes it, 0x1f or 31: not octal, no float, no sign.
std::optional<std::uint64_t> plain_number(const Operand& operand);

// Registers that an instruction may write: all that its first operand names, unless that is an address.
std::vector<int> may_be_written(const Instruction& instruction);

// The names of what a function is handed: the arena, and where in it its frame begins.
constexpr std::string_view kArenaName = "__fence_arena";
constexpr std::string_view kFrameName = "__fence_frame";

}  // namespace fairlead::fence
