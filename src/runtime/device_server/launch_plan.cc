#include "runtime/device_server/launch_plan.h"

#include <algorithm>

namespace fairlead {
namespace {

// The stream whose last kernel it must follow anyway, else a new one, else the one that has been left alone longest.
std::uint32_t choose_stream(const std::vector<std::uint32_t>& before, const std::vector<std::uint32_t>& last,
                            std::uint32_t max_streams) {
  for (std::uint32_t stream = 0; stream < last.size(); ++stream) {
    if (std::find(before.begin(), before.end(), last[stream]) != before.end()) return stream;
  }
  if (last.size() < max_streams) return static_cast<std::uint32_t>(last.size());
  return static_cast<std::uint32_t>(std::min_element(last.begin(), last.end()) - last.begin());
}

}  // namespace

LaunchPlan make_launch_plan(const std::vector<std::vector<std::uint32_t>>& before, std::uint32_t max_streams) {
  LaunchPlan plan;
  plan.steps.resize(before.size());
  std::vector<std::uint32_t> last;  // kernel of each stream
  for (std::uint32_t kernel = 0; kernel < before.size(); ++kernel) {
    LaunchPlan::Step& step = plan.steps[kernel];
    step.stream = choose_stream(before[kernel], last, max_streams);
    if (step.stream == last.size()) last.push_back(kernel);
    last[step.stream] = kernel;
    for (const std::uint32_t earlier : before[kernel]) {
      LaunchPlan::Step& from = plan.steps[earlier];
      if (from.stream == step.stream) continue;
      if (from.records < 0) from.records = static_cast<std::int32_t>(plan.events++);
      step.waits.push_back(static_cast<std::uint32_t>(from.records));
    }
  }
  plan.streams = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(last.size()));
  return plan;
}

}  // namespace fairlead
