#include "decide/residency/residency.h"

#include <algorithm>
#include <utility>

namespace fairlead {
namespace {

// `away`: by the latest report, which may be of after the move had begun.
RecordEvent end_of_move(MoveDirection direction, MoveOutcome outcome, Bytes away) {
  if (direction == MoveDirection::kOut)
    return outcome == MoveOutcome::kDone ? RecordEvent::kLeft : RecordEvent::kNotLeft;
  switch (outcome) {
    case MoveOutcome::kDone:
    case MoveOutcome::kNothing: return RecordEvent::kReturned;
    case MoveOutcome::kPartly:
    case MoveOutcome::kNoRoom: return away > Bytes(0) ? RecordEvent::kFull : RecordEvent::kCutShort;
    case MoveOutcome::kBusy:
    case MoveOutcome::kFailed: break;
  }
  return RecordEvent::kFailed;
}

// One invocation is over and its peak is known.
void learn(MemoryRecord& record) {
  if (record.function != nullptr) record.function->footprint.sample(record.peak);
  record.peak = Bytes(0);
}

}  // namespace

std::string_view memory_policy_name(MemoryPolicy policy) {
  switch (policy) {
    case MemoryPolicy::kNone: return "none";
    case MemoryPolicy::kPrefetch: return "prefetch";
    case MemoryPolicy::kPrefetchSwap: return "prefetch-swap";
  }
  return "unknown";
}

std::optional<MemoryPolicy> memory_policy_named(std::string_view name) {
  for (const MemoryPolicy policy : {MemoryPolicy::kNone, MemoryPolicy::kPrefetch, MemoryPolicy::kPrefetchSwap}) {
    if (memory_policy_name(policy) == name) return policy;
  }
  return std::nullopt;
}

Residency::Residency(const ResidencyOptions& options, std::unique_ptr<SwapPolicy> swap, const ResidencyContext& context)
    : options_(options),
      ledger_(options.move_deadline),
      victims_(ledger_, context, std::move(swap), options.policy != MemoryPolicy::kNone),
      returns_(ledger_, victims_, context, options.policy),
      room_(ledger_, victims_) {}

void Residency::add_gpu(GpuId gpu, Bytes memory) {
  ledger_.add_device(gpu, memory);
}

bool Residency::remove_gpu(GpuId gpu) {
  return ledger_.remove_device(gpu);
}

// ---- functions

void Residency::add_function(FlowId flow, Bytes seed) {
  functions_[flow] = MemoryFunction{seed, Footprint(seed)};
}

void Residency::update_function(FlowId flow, Bytes seed) {
  MemoryFunction* function = functions_.find(flow);
  if (function == nullptr || function->seed == seed) return;
  function->seed = seed;
  function->footprint = Footprint(seed);
  function->gave_way = 0;
}

void Residency::remove_function(FlowId flow) {
  MemoryFunction* function = functions_.find(flow);
  if (function == nullptr) return;
  for (MemoryRecord* record : function->records) record->function = nullptr;
  functions_.erase(flow);
}

void Residency::called(FlowId flow, const ArrivalPace& pace) {
  MemoryFunction* function = functions_.find(flow);
  if (function == nullptr) return;
  function->pace = pace;
  function->may_have_queued = true;
  for (const MemoryRecord* record : function->records) {
    if (record->counted.absent_idle == 0) continue;
    record->device->some_called = true;
    ledger_.unsettle(*record->device);
  }
}

Bytes Residency::expected(FlowId flow) const {
  const MemoryFunction* function = functions_.find(flow);
  return function == nullptr ? Bytes(0) : function->footprint.estimate();
}

// ---- instances

void Residency::add(Instant now, InstanceId id, FlowId flow, GpuId gpu, Bytes demand) {
  ledger_.add(now, id, flow, functions_.find(flow), gpu, demand);
}

bool Residency::run(Instant now, InstanceId id, Bytes demand) {
  MemoryRecord& record = ledger_.at(id);
  const RecordState before = record.state;
  MemoryLedger::must_take(record, RecordEvent::kChosen);
  if (before.sample_due() && record.peak > Bytes(0)) learn(record);
  record.demand = demand;
  record.last_used = now;
  ledger_.recount(record);
  const bool there = !before.moving() && record.use.away == Bytes(0);
  if (before.prefetched()) ++(there ? ledger_.counters().prefetches_in_time : ledger_.counters().prefetches_late);
  return there;
}

void Residency::ready(InstanceId id) {
  MemoryRecord* record = ledger_.find(id);
  if (record == nullptr || !MemoryLedger::take(*record, RecordEvent::kReady)) return;
  if (record->function != nullptr) record->function->gave_way = 0;
  ledger_.recount(*record);
}

void Residency::started(Instant now, InstanceId id) {
  end_run(now, id, RecordEvent::kUnused);
}

void Residency::rest(Instant now, InstanceId id) {
  end_run(now, id, RecordEvent::kRested);
}

void Residency::end_run(Instant now, InstanceId id, RecordEvent event) {
  MemoryRecord* record = ledger_.find(id);
  if (record == nullptr || !MemoryLedger::take(*record, event)) return;
  record->granted = Bytes(0);
  record->last_used = now;
  ++record->device->freed;
  ledger_.recount(*record);
}

void Residency::stopping(Instant now, InstanceId id) {
  MemoryRecord* record = ledger_.find(id);
  if (record == nullptr || record->state.stopping()) return;
  ledger_.begin_stop(now, *record);
}

void Residency::gone(InstanceId id) {
  if (MemoryRecord* record = ledger_.find(id)) ledger_.erase(*record);
}

// ---- events

bool Residency::report(InstanceId id, const MemoryUse& use) {
  MemoryRecord* record = ledger_.find(id);
  if (record == nullptr) return false;
  const RecordState before = record->state;
  if (!MemoryLedger::take(*record, RecordEvent::kReported)) return false;
  MemoryDevice& device = *record->device;
  if (!before.reported()) ++device.reporting;
  if (use.resident < record->use.resident) ++device.freed;
  record->use = use;
  if (use.resident >= record->granted) record->granted = Bytes(0);
  record->peak = std::max(record->peak, use.needed());
  if (before.sample_due()) {
    learn(*record);
  } else if (before.runs()) {
    record->demand = std::max(record->demand, use.needed());
    if (record->function != nullptr) record->function->footprint.raise(use.needed());
  }
  ledger_.recount(*record);
  return true;
}

bool Residency::moved(Instant now, InstanceId id, MoveDirection direction, MoveOutcome outcome) {
  MemoryRecord* record = ledger_.find(id);
  if (record == nullptr) return false;
  const RecordEvent event = end_of_move(direction, outcome, record->use.away);
  if (!ledger_.end_move(now, *record, event, direction, outcome)) return false;
  const bool freed =
      direction == MoveDirection::kOut && (outcome == MoveOutcome::kDone || outcome == MoveOutcome::kPartly);
  const bool full = event == RecordEvent::kFull;
  if (full) record->full_at = record->device->freed;
  if (full && record->state.runs()) room_.ask_to_return(*record);
  ledger_.tell_requests(*record->device, id, freed);
  return true;
}

bool Residency::needs_room(Instant now, InstanceId id, std::uint64_t number, Bytes bytes) {
  MemoryRecord* record = ledger_.find(id);
  if (record == nullptr || record->state.stopping()) return false;
  return room_.ask(now + options_.room_deadline, *record, number, bytes);
}

bool Residency::wants_memory(InstanceId id) {
  MemoryRecord* record = ledger_.find(id);
  if (record == nullptr) return false;
  if (!MemoryLedger::take(*record, record->use.away == Bytes(0) ? RecordEvent::kDoubts : RecordEvent::kWants))
    return false;
  ledger_.recount(*record);
  return true;
}

std::optional<Bytes> Residency::device_used(GpuId gpu, Bytes used) {
  MemoryDevice& device = ledger_.device(gpu);
  const bool moves = device.books.on_the_link > Bytes(0) || device.books.outgoing > Bytes(0);
  if (device.memory == Bytes(0) || moves) return std::nullopt;
  const Bytes before = device.unreported.bytes();
  device.unreported.sample(used, device.books.occupied);
  ledger_.unsettle(device);
  const Bytes after = device.unreported.bytes();
  if (after < before) ++device.freed;
  return after != before ? std::optional(after) : std::nullopt;
}

std::vector<InstanceId> Residency::expire(Instant now) {
  std::vector<InstanceId> given_up;
  while (MemoryRecord* record = ledger_.overdue(now)) {
    if (record->state.stopping()) {
      ledger_.erase(*record);
      continue;
    }
    ledger_.give_up_move(*record);
    given_up.push_back(record->id);
  }
  return given_up;
}

std::optional<Instant> Residency::next_deadline() const {
  const Instant next = ledger_.next_deadline();
  return next == Instant::max() ? std::nullopt : std::optional(next);
}

// ---- what follows

void Residency::settle(Instant now, ResidencyDecisions& out) {
  for (MemoryDevice* device : ledger_.take_unsettled()) settle(now, *device, out);
}

// What changes a record unsettles its device again, here too. So does what depends on the time, on other flows or on what is
// decided elsewhere.
void Residency::settle(Instant now, MemoryDevice& device, ResidencyDecisions& out) {
  if (device.reporting == 0 && device.requests.empty()) return;
  if (!device.requests.empty()) room_.answer_all(now, device, out);
  returns_.decide(now, device, out);
  const bool is_short = device.memory > Bytes(0) && device.books.short_of(device.room()) > Bytes(0);
  const bool waits = !device.requests.empty() || !device.absent_runs.empty() || device.books.wanted > 0;
  if (is_short || waits || device.some_called) ledger_.unsettle(device);
}

// ---- what is known of one instance

Residency::Standing Residency::standing(InstanceId id) const {
  const MemoryRecord& record = *ledger_.find(id);
  const Bytes away = record.use.away;
  Standing standing{.pinned = record.pinned(options_.policy == MemoryPolicy::kNone),
                    .needed = needed_by(record),
                    .reload = std::nullopt};
  if (record.state.reported()) standing.reload = away > Bytes(0) ? 2 * record.device->link.time_of(away) : Duration(0);
  return standing;
}

const MemoryUse* Residency::use(InstanceId id) const {
  const MemoryRecord* record = ledger_.find(id);
  return record == nullptr || !record->state.reported() ? nullptr : &record->use;
}

const RecordState* Residency::state(InstanceId id) const {
  const MemoryRecord* record = ledger_.find(id);
  return record == nullptr ? nullptr : &record->state;
}

}  // namespace fairlead
