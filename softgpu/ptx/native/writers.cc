#include "softgpu/ptx/native/writers.h"

namespace softgpu::ptx::native {

void write_instruction(Emission& e, const Step& step) {
  const Meaning& meaning = step.meaning;
  if (is_sum(meaning.action) && e.patterns.find(step.at->dst) != nullptr) return write_pattern(e, step);
  if (meaning.action == Action::kLoad || meaning.action == Action::kStore) return write_access(e, step);
  for (const std::int32_t row : rows_of(step).reads) e.bring_row(row);
  switch (meaning.action) {
    case Action::kFused:
    case Action::kMultiplyAdd: return write_fused(e, step);
    case Action::kWiden:
    case Action::kMultiplyWide:
    case Action::kShift64: return write_widening(e, step);
    case Action::kCompareFloat:
    case Action::kCompareSigned:
    case Action::kCompareUnsigned: return write_compare(e, step);
    case Action::kNarrow: return write_narrowing(e, step);
    case Action::kPredicate: return write_predicate(e, step);
    case Action::kSelect: return write_select(e, step);
    case Action::kParameter: return write_parameter(e, step);
    case Action::kThreadIndex: return write_thread_index(e, step);
    case Action::kSpecial: return write_special(e, step);
    default: return meaning.bytes == 4 ? write_narrow(e, step) : write_wide(e, step);
  }
}

}  // namespace softgpu::ptx::native
