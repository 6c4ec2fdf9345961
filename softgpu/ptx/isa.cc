#include "softgpu/ptx/isa.h"

#include <string_view>

namespace softgpu::ptx {

namespace baseline {
const InstructionSet& instruction_set();
}
namespace v3 {
const InstructionSet& instruction_set();
}
namespace v4 {
const InstructionSet& instruction_set();
}

namespace {

bool has_v3() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2");
}

// Null: this processor, or this build, does not have it.
const InstructionSet* v4_set() {
#ifdef SOFTGPU_HAS_V4
  if (has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return &v4::instruction_set();
  }
#endif
  return nullptr;
}

const InstructionSet& best() {
  if (const InstructionSet* widest = v4_set()) return *widest;
  return has_v3() ? v3::instruction_set() : baseline::instruction_set();
}

// The best set, but nothing is compiled: what the machine does where executable memory is refused.
const InstructionSet& interpreter() {
  static const InstructionSet* set = [] {
    auto* copy = new InstructionSet(best());
    copy->name = "interpreter";
    copy->meanings.clear();
    return copy;
  }();
  return *set;
}

const InstructionSet*& chosen() {
  static const InstructionSet* set = &best();
  return set;
}

}  // namespace

const InstructionSet& instruction_set() {
  return *chosen();
}

bool choose_instruction_set(std::string_view name) {
  if (name == "baseline") chosen() = &baseline::instruction_set();
  if (name == "v3" && has_v3()) chosen() = &v3::instruction_set();
  if (name == "v4" && v4_set() != nullptr) chosen() = v4_set();
  if (name == "interpreter") chosen() = &interpreter();
  return chosen()->name == name;
}

}  // namespace softgpu::ptx
