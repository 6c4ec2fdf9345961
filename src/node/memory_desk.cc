#include "node/memory_desk.h"

#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"

namespace fairlead {

constexpr int kQuiesceShare = 4;

MemoryDesk::MemoryDesk(boost::asio::io_context& io, Options options, CoreDriver& driver, Instances& instances,
                       Functions& functions)
    : options_(std::move(options)), driver_(driver), instances_(instances), functions_(functions), timer_(io) {}

MemoryEvents MemoryDesk::events() {
  return {
      .moved = [this](InstanceId instance, const MemoryMoved& move) { on_moved(instance, move); },
      .needs_room = [this](InstanceId instance, std::uint64_t request,
                           Bytes bytes) { on_needs_room(instance, request, bytes); },
      .wants_memory =
          [this](InstanceId instance) {
            driver_.tell([&](Core& core, Instant now, Actions& out) { core.wants_memory(now, instance, out); });
          },
      .usage_changed =
          [this](InstanceId instance) { driver_.tell([&](Core&, Instant, Actions& out) { report(instance, out); }); },
  };
}

void MemoryDesk::on_moved(InstanceId instance, const MemoryMoved& move) {
  (move.direction == MoveDirection::kOut ? moves_.out : moves_.in) += move.copy_time;
  LiveInstance* const live = instances_.find(instance);
  if (live != nullptr && move.direction == MoveDirection::kIn && move.bytes.count() > 0) {
    live->returned = {.ended = monotonic_now(), .took = move.total_time};
  }
  driver_.tell([&](Core& core, Instant now, Actions& out) {
    report(instance, out);
    core.memory_moved(now, instance, move.direction, move.outcome, out);
  });
}

void MemoryDesk::on_needs_room(InstanceId instance, std::uint64_t request, Bytes bytes) {
  spdlog::debug("instance {} needs room for {:.1f} MiB", instance.value(), bytes.mib());
  const LiveInstance* const live = instances_.find(instance);
  if (live == nullptr || !options_.drop_unused_models) return ask_core_for_room(instance, request, bytes);
  // Models that nobody uses cost nobody a move. Where they are enough, the core need not know: the asker tries again, and
  // asks again if the device is still full.
  options_.drop_unused_models(live->gpu, bytes, [this, instance, request, bytes](Bytes freed) {
    if (freed < bytes) return ask_core_for_room(instance, request, bytes);
    LiveInstance* const asker = instances_.find(instance);
    if (asker != nullptr) asker->runner->grant_room(instance, request, true);
  });
}

void MemoryDesk::ask_core_for_room(InstanceId instance, std::uint64_t request, Bytes bytes) {
  driver_.tell([&](Core& core, Instant now, Actions& out) {
    report_grown(out);
    core.needs_room(now, instance, request, bytes, out);
  });
}

std::optional<DeviceUse> MemoryDesk::report(InstanceId instance, Actions& out) {
  std::optional<DeviceUse> use = instances_.use(instance);
  if (!use) return use;
  LiveInstance& live = *instances_.find(instance);
  live.reported = use->memory;
  count_launches(live, use->launches);
  driver_.core().memory_report(monotonic_now(), instance, use->memory, out);
  return use;
}

void MemoryDesk::count_launches(LiveInstance& instance, const LaunchCounts& launches) {
  const LaunchCounts before = std::exchange(instance.counted, launches);
  RegisteredFunction* const function = functions_.find(instance.flow);
  if (function == nullptr) return;
  FunctionStats& stats = function->stats;
  stats.launches += launches.launches - before.launches;
  stats.gate_waits += launches.gate_waits - before.gate_waits;
  stats.passed_through += launches.passed_through - before.passed_through;
  stats.unhooked_functions += launches.unhooked_functions - before.unhooked_functions;
}

void MemoryDesk::report_grown(Actions& out) {
  constexpr Duration kFresh = std::chrono::milliseconds(1);
  const Instant now = monotonic_now();
  if (now - looked_ < kFresh) return;
  looked_ = now;
  std::vector<InstanceId> grown;  // a report may start and stop instances
  for (const auto& [id, instance] : instances_.all()) {
    const std::optional<DeviceUse> use = instance.runner->use(id);
    if (use && use->memory != instance.reported) grown.push_back(id);
  }
  for (const InstanceId id : grown) report(id, out);
}

void MemoryDesk::watch() {
  if (std::exchange(watching_, true)) return;
  timer_.expires_after(options_.period);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    watching_ = false;
    driver_.tell([this](Core&, Instant, Actions& out) { report_grown(out); });
    if (options_.runs_anything()) watch();
  });
}

void MemoryDesk::act(const SwapOutMemory& action) {
  if (LiveInstance* const live = instances_.find(action.instance)) {
    live->runner->swap_out(action.instance, action.bytes, options_.move_deadline / kQuiesceShare);
  }
}

void MemoryDesk::act(const SwapInMemory& action) {
  if (LiveInstance* const live = instances_.find(action.instance)) live->runner->swap_in(action.instance);
}

void MemoryDesk::act(const GrantRoom& action) {
  spdlog::debug("instance {} is {} room", action.instance.value(), action.granted ? "given" : "refused");
  LiveInstance* const live = instances_.find(action.instance);
  if (live != nullptr) live->runner->grant_room(action.instance, action.request, action.granted);
}

}  // namespace fairlead
