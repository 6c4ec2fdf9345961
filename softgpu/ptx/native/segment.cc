#include "softgpu/ptx/native/segment.h"

#include <algorithm>
#include <climits>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace softgpu::ptx::native {
namespace {

constexpr std::size_t kLongest = 320;  // handlers: about 32 KiB of code, the size of a first-level cache
constexpr std::size_t kShortest = 2;

// What the meanings promise only for some operands.
bool has_plain_operands(const Step& step) {
  const Instruction& at = *step.at;
  switch (step.meaning.action) {
    case Action::kCompareFloat:
    case Action::kCompareSigned:
    case Action::kCompareUnsigned: return at.mode == 0 && at.d == kNoRow;
    case Action::kSpecial: return at.mode <= 2;
    default: return true;
  }
}

// Where some lanes leave a segment the others go on behind the branch: what follows is a segment, too.
void add_behind_exits(const Code& code, const Segment& whole, std::vector<Segment>& segments) {
  const auto end = whole.steps.end() - (whole.is_loop ? 1 : 0);
  const auto is_exit = [](const Step& step) { return step.meaning.action == Action::kBranchIf; };
  for (auto exit = std::find_if(whole.steps.begin(), end, is_exit); exit != end;) {
    const auto next = std::find_if(exit + 1, end, is_exit);
    if (next - exit > static_cast<std::ptrdiff_t>(kShortest)) {
      const auto first = static_cast<std::size_t>((exit + 1)->at - code.instructions.data());
      segments.push_back({first, {exit + 1, next}, false});
    }
    exit = next;
  }
}

}  // namespace

RowUse rows_of(const Step& step) {
  const Instruction& at = *step.at;
  switch (step.meaning.action) {
    case Action::kThreadIndex:
    case Action::kSpecial:
    case Action::kParameter: return {{kNoRow, kNoRow, kNoRow}, at.dst};
    case Action::kUnary:
    case Action::kMove:
    case Action::kWiden:
    case Action::kNarrow:
    case Action::kLoad: return {{at.a, kNoRow, kNoRow}, at.dst};
    case Action::kBranch: return {};
    case Action::kBranchIf: return {{at.a, kNoRow, kNoRow}, kNoRow};
    case Action::kStore: return {{at.a, at.b, kNoRow}, kNoRow};
    case Action::kMultiplyAdd:
    case Action::kFused:
    case Action::kSelect: return {{at.a, at.b, at.c}, at.dst};
    default: return {{at.a, at.b, kNoRow}, at.dst};
  }
}

std::vector<Segment> find_segments(const Code& code, const Meanings& meanings, Handler label) {
  std::vector<Segment> segments;
  Segment current;
  const auto close = [&] {
    if (current.steps.size() >= kShortest) {
      add_behind_exits(code, current, segments);
      segments.push_back(std::move(current));
    }
    current = {};
  };
  const std::vector<Instruction>& all = code.instructions;
  std::vector<Step> steps;  // of one PTX instruction
  for (std::size_t i = 0; i < all.size();) {
    // All handlers of one PTX instruction, or none.
    std::size_t end = i + 1;
    while (end < all.size() && all[end].counted == 0 && all[end].run != label) ++end;
    steps.clear();
    for (std::size_t k = i; k < end; ++k) {
      const auto meaning = meanings.find(all[k].run);
      if (meaning == meanings.end()) break;
      steps.push_back({&all[k], meaning->second});
      if (!has_plain_operands(steps.back())) steps.pop_back();
    }
    const bool is_whole = steps.size() == end - i && all[i].counted == 1;
    if (!is_whole) {
      close();
    } else if (steps.back().meaning.action == Action::kBranchIf || steps.back().meaning.action == Action::kBranch) {
      const bool is_inside = !current.steps.empty() && steps.size() == 1;
      const bool may_leave = steps.back().meaning.action == Action::kBranchIf && all[i].target > &all[i];
      current.is_loop = is_inside && all[i].target == current.steps.front().at;
      if (current.is_loop || (is_inside && may_leave)) current.steps.push_back(steps.front());
      if (current.is_loop || !is_inside || !may_leave) close();
    } else {
      if (current.steps.size() + steps.size() > kLongest) close();
      if (current.steps.empty()) current.first = i;
      current.steps.insert(current.steps.end(), steps.begin(), steps.end());
    }
    i = end;
  }
  return segments;
}

RowFlow::RowFlow(const Segment& segment, std::span<const RowLife> lives) : segment_(segment), lives_(lives) {
  events_.reserve(4 * segment.steps.size());
  for (int step = 0; step < static_cast<int>(segment.steps.size()); ++step) {
    if (segment.steps[static_cast<std::size_t>(step)].meaning.action == Action::kBranchIf) exits_.push_back(step);
    const RowUse use = rows_of(segment.steps[static_cast<std::size_t>(step)]);
    for (const std::int32_t row : use.reads) {
      if (row != kNoRow) events_.push_back({row, step, false});
    }
    if (use.write != kNoRow) events_.push_back({use.write, step, true});
  }
  std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
    return std::tie(a.row, a.step, a.writes) < std::tie(b.row, b.step, b.writes);
  });
}

int RowFlow::next_read(std::int32_t row, int step) const {
  const auto exit = std::upper_bound(exits_.begin(), exits_.end(), step);
  const int end = exit == exits_.end() ? static_cast<int>(segment_.steps.size()) : *exit;
  const auto event = std::lower_bound(
      events_.begin(), events_.end(), std::pair(row, step + 1),
      [](const Event& a, const std::pair<std::int32_t, int>& b) { return std::pair(a.row, a.step) < b; });
  if (event != events_.end() && event->row == row) {
    if (!event->writes) return event->step;
    if (event->step < end) return INT_MAX;
  }
  return is_live_at_end(row) ? end : INT_MAX;
}

// Registers that share a row have disjoint lives, so one whose life goes on holds the row.
bool RowFlow::is_live_at_end(std::int32_t row) const {
  const auto last = static_cast<int>(segment_.first + segment_.steps.size()) - 1;
  const auto begin = std::lower_bound(lives_.begin(), lives_.end(), row,
                                      [](const RowLife& life, std::int32_t wanted) { return life.row < wanted; });
  for (auto life = begin; life != lives_.end() && life->row == row; ++life) {
    if (life->first <= last && (life->last > last || (segment_.is_loop && life->last == last))) return true;
  }
  return false;
}

RowFlow::Tracked RowFlow::tracked() const {
  std::unordered_map<std::int32_t, std::uint8_t> sizes;
  Tracked out;
  bool changed = false;
  const auto add = [&](std::int32_t row, std::uint8_t bytes) {
    const auto [entry, inserted] = sizes.emplace(row, bytes);
    out.ok = out.ok && entry->second == bytes;
    if (inserted) out.rows.emplace_back(row, bytes);
    changed = changed || inserted;
  };
  for (const Step& step : segment_.steps) {
    const bool is_access = step.meaning.action == Action::kLoad || step.meaning.action == Action::kStore;
    if (is_access) add(step.at->a, step.meaning.address_bytes);
  }
  do {
    changed = false;
    for (auto step = segment_.steps.rbegin(); step != segment_.steps.rend(); ++step) {
      if (!is_sum(step->meaning.action) || !sizes.contains(step->at->dst)) continue;
      add(step->at->a, step->meaning.bytes);
      if (step->meaning.action != Action::kMove) add(step->at->b, step->meaning.bytes);
    }
  } while (changed);
  // A scratch row may be used with several sizes.
  for (const Step& step : segment_.steps) {
    const auto written = sizes.find(rows_of(step).write);
    if (written != sizes.end() && written->second != step.meaning.bytes) out.ok = false;
  }
  return out;
}

}  // namespace softgpu::ptx::native
