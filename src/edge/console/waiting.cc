#include "edge/console/waiting.h"

#include <fmt/format.h>

#include <algorithm>

namespace fairlead {
namespace {

WaitingReason of_others(std::string text) {
  return {.text = std::move(text), .is_own = false};
}
WaitingReason its_own(std::string text) {
  return {.text = std::move(text), .is_own = true};
}

// Nothing runs, whoever asks.
std::string obstacle(const NodeStatus& node) {
  if (!node.spawner_obstacle.empty()) return node.spawner_obstacle;
  if (node.gpus.empty()) return "there is no GPU";
  const auto serves = [](const GpuStatus& gpu) { return gpu.view.serves; };
  return std::any_of(node.gpus.begin(), node.gpus.end(), serves) ? "" : "no GPU takes calls";
}

// Its own limit, or its tenant's.
std::string limit(const NodeStatus& node, const FunctionStatus& function, std::optional<int> reserved) {
  const std::size_t running = function.flow.in_flight;
  if (reserved && running >= static_cast<std::size_t>(std::max(0, *reserved)))
    return fmt::format("its reserved concurrency: {} of {} run", running, *reserved);
  for (const TenantStatus& tenant : node.tenants) {
    const auto most = tenant.share.max_concurrency;
    if (tenant.name == function.settings.tenant && most && tenant.in_flight >= *most)
      return fmt::format("its tenant's limit: {} of {} run", tenant.in_flight, *most);
  }
  return "";
}

std::string slots(const NodeStatus& node) {
  std::size_t used = 0, all = 0;
  for (const GpuStatus& gpu : node.gpus) {
    if (!gpu.view.serves) continue;
    used += gpu.view.slots_in_use;
    all += gpu.view.slots;
  }
  return used < all ? "" : fmt::format("no free slot: {} of {} are used", used, all);
}

}  // namespace

WaitingReason why_it_waits(const NodeStatus& node, const FunctionStatus& function, std::optional<int> reserved) {
  if (function.flow.queued == 0) return {};
  if (std::string why = obstacle(node); !why.empty()) return of_others(std::move(why));
  if (std::string why = limit(node, function, reserved); !why.empty()) return its_own(std::move(why));
  const Duration ahead = function.flow.virtual_time - node.global_virtual_time;
  if (function.flow.state == FlowState::kThrottled)
    return of_others(fmt::format("{:.1f} s ahead of its fair share", to_seconds(ahead)));
  if (function.instances_starting > 0 && function.instances_idle == 0) {
    return its_own(fmt::format("{} of its instances start{}", function.instances_starting,
                               function.instances_starting == 1 ? "s" : ""));
  }
  if (std::string why = slots(node); !why.empty()) return of_others(std::move(why));
  if (function.memory.away > Bytes(0)) {
    return its_own(fmt::format("{:.0f} MiB of its memory return to the GPU", function.memory.away.mib()));
  }
  return of_others("others are before it");
}

}  // namespace fairlead
