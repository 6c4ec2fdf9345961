#include "softgpu/ptx/native/pattern_rows.h"

#include <cstring>

namespace softgpu::ptx::native {

TrackedRow describe(const TrackedRows& rows, std::int32_t row) {
  const auto entry = row == kNoRow ? rows.end() : rows.find(row);
  if (entry == rows.end()) return {row, -1, 8, false};
  return {row, entry->second.pattern, entry->second.bytes, entry->second.is_stale};
}

PatternRows::PatternRows(Assembler& assembler, const Segment& segment,
                         std::span<const std::pair<std::int32_t, std::uint8_t>> tracked)
    : as_(assembler) {
  for (const auto& [row, bytes] : tracked) {
    rows_.emplace(row, TrackedPattern{static_cast<int>(rows_.size()), bytes, false});
  }
  if (!segment.is_loop) return;
  // In a loop a row may come round as a pattern.
  for (const Step& step : segment.steps) {
    TrackedPattern* written = find(rows_of(step).write);
    if (written != nullptr) written->is_stale = true;
  }
}

TrackedPattern* PatternRows::find(std::int32_t row) {
  const auto entry = rows_.find(row);
  return entry == rows_.end() ? nullptr : &entry->second;
}

void PatternRows::prepare(const Program& program) {
  for (const auto& [row, tracked] : rows_) {
    if (row >= 0) {
      as_.store(tracked.memory() + kPatternState, static_cast<std::int32_t>(PatternState::kUnknown));
      continue;
    }
    std::uint64_t value = 0;
    std::memcpy(&value, program.constants_end + row, tracked.bytes);
    as_.move(rax, value);
    store_uniform(tracked.memory(), rax);
  }
}

void PatternRows::store_uniform(Memory pattern, Register value) {
  as_.store(pattern + kPatternFirst, value);
  as_.store(pattern + kPatternSecond, value);
  as_.store(pattern + kPatternStride, 0);
  as_.store(pattern + kPatternState, static_cast<std::int32_t>(PatternState::kKnown));
}

void PatternRows::set_uniform(TrackedPattern& row, Register value) {
  store_uniform(row.memory(), value);
  row.is_stale = true;
}

void PatternRows::changed(std::int32_t row) {
  TrackedPattern* entry = find(row);
  if (entry == nullptr) return;
  as_.store(entry->memory() + kPatternState, static_cast<std::int32_t>(PatternState::kUnknown));
  entry->is_stale = false;
}

}  // namespace softgpu::ptx::native
