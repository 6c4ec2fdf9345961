// Registers of the fence's own in one function. To ask for one is to have it declared at the function's start (prologue.h):
// nothing is declared that no line names, and no line names what is not declared.
//
//   scratch.companion(7)   %__fence_a0      of the first register that asks, a1 of the second
//   scratch.address(0)     %__fence_t0      64 bits: 0 the address as written, 1 as fenced, 2 the way between
//   scratch.frame()        %__fence_frame   where the function's part of the arena begins
//
// The temporaries hold nothing from one instruction of the module to the next; companions do (address_plan.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace fairlead::fence {

class ScratchRegisters {
 public:
  // Of a function with so many registers.
  explicit ScratchRegisters(std::size_t registers) : companions_(registers, kNone) {}

  std::string_view address(std::size_t number) { return temporary(kAddresses, number); }
  std::string_view word(std::size_t number) { return temporary(kWords, number); }
  std::string_view predicate(std::size_t number) { return temporary(kPredicates, number); }

  // Which holds fenced addresses only. Numbered in the order of their first use, so that the same text gives the same text.
  std::string companion(int register_id) {
    int& number = companions_[static_cast<std::size_t>(register_id)];
    if (number == kNone) number = companion_count_++;
    return fmt::format("%__fence_a{}", number);
  }

  // The arena, the frame in it, and the arena as a generic address.
  std::string_view arena() { return uses_arena_ = true, "%__fence_arena"; }
  std::string_view frame() { return uses_arena_ = true, "%__fence_frame"; }
  std::string_view generic_arena() { return uses_generic_arena_ = true, "%__fence_generic_arena"; }

  // This lane's number, the lanes that are here, and a predicate that is true.
  std::string_view lane() { return uses_lanes_ = true, "%__fence_lane"; }
  std::string_view lanes() { return uses_lanes_ = true, "%__fence_lanes"; }
  std::string_view yes() { return uses_lanes_ = true, "%__fence_yes"; }

  // What was asked for.
  int companion_count() const { return companion_count_; }
  // Visits register and number of each companion, in the order of the registers.
  template <class Visit>
  void for_each_companion(Visit visit) const {
    for (std::size_t id = 0; id < companions_.size(); ++id) {
      if (companions_[id] != kNone) visit(id, companions_[id]);
    }
  }
  bool uses_temporaries() const { return uses_temporaries_; }
  bool uses_arena() const { return uses_arena_ || uses_generic_arena_; }
  bool uses_generic_arena() const { return uses_generic_arena_; }
  bool uses_lanes() const { return uses_lanes_; }

  // How many there are of each kind of temporary, once one of any is used.
  static constexpr std::array<std::string_view, 3> kAddresses = {"%__fence_t0", "%__fence_t1", "%__fence_t2"};
  static constexpr std::array<std::string_view, 2> kWords = {"%__fence_w0", "%__fence_w1"};
  static constexpr std::array<std::string_view, 3> kPredicates = {"%__fence_p0", "%__fence_p1", "%__fence_p2"};

 private:
  static constexpr int kNone = -1;

  template <std::size_t kCount>
  std::string_view temporary(const std::array<std::string_view, kCount>& names, std::size_t number) {
    uses_temporaries_ = true;
    return names[number];
  }

  std::vector<int> companions_;  // by register: its number
  int companion_count_ = 0;
  bool uses_temporaries_ = false, uses_arena_ = false, uses_generic_arena_ = false, uses_lanes_ = false;
};

}  // namespace fairlead::fence
