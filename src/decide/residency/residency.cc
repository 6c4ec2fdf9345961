// What is known: functions, instances, reports, and moves that end. What follows from it is in moves.cc and room.cc.
#include "decide/residency/residency.h"

#include <algorithm>

#include "base/check.h"

namespace fairlead {
namespace {

using Motion = RecordState::Motion;

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
    : options_(options), swap_(std::move(swap)), context_(context) {
  FL_CHECK(swap_ != nullptr);
}

void Residency::add_gpu(GpuId gpu, Bytes memory) {
  Device& device = devices_[gpu];
  device.id = gpu;
  device.memory = memory;
}

bool Residency::remove_gpu(GpuId gpu) {
  const auto found = devices_.find(gpu);
  if (!found->second.records.empty()) return false;
  std::erase(unsettled_, &found->second);
  devices_.erase(found);
  return true;
}

// ---- functions

void Residency::add_function(FlowId flow, Bytes seed) {
  functions_[flow] = Function{seed, Footprint(seed)};
}

void Residency::update_function(FlowId flow, Bytes seed) {
  Function* function = functions_.find(flow);
  if (function == nullptr || function->seed == seed) return;
  function->seed = seed;
  function->footprint = Footprint(seed);
  function->gave_way = 0;
}

void Residency::remove_function(FlowId flow) {
  Function* function = functions_.find(flow);
  if (function == nullptr) return;
  for (Record* record : function->records) record->function = nullptr;
  functions_.erase(flow);
}

void Residency::called(FlowId flow, const ArrivalPace& pace) {
  Function* function = functions_.find(flow);
  if (function == nullptr) return;
  function->pace = pace;
  function->may_have_queued = true;
  for (const Record* record : function->records) {
    if (record->counted.absent_idle == 0) continue;
    record->device->some_called = true;
    unsettle(*record->device);
  }
}

Bytes Residency::expected(FlowId flow) const {
  const Function* function = functions_.find(flow);
  return function == nullptr ? Bytes(0) : function->footprint.estimate();
}

// One invocation is over and its peak is known.
void Residency::learn(Record& record) {
  if (record.function != nullptr) record.function->footprint.sample(record.peak);
  record.peak = Bytes(0);
}

// ---- instances

bool Residency::take(Record& record, RecordEvent event) {
  const std::optional<RecordState> next = step(record.state, event);
  if (next) record.state = *next;
  return next.has_value();
}

// For what the caller has made sure of.
void Residency::must_take(Record& record, RecordEvent event) {
  FL_CHECK(take(record, event), "instance {}, {}: {}", record.id.value(), record.state.text(),
           record_event_name(event));
}

void Residency::add(Instant now, InstanceId id, FlowId flow, GpuId gpu, Bytes demand) {
  Device& device = devices_.at(gpu);
  Record& record = records_[id];
  record.id = id;
  record.flow = flow;
  record.function = functions_.find(flow);
  record.device = &device;
  record.demand = demand;
  record.last_used = now;
  if (record.function != nullptr) record.function->records.push_back(&record);
  enter(device.records, record);
  recount(record);
}

void Residency::enter(std::vector<Record*>& list, Record& record) {
  const auto by_id = [](const Record* listed, InstanceId id) { return listed->id < id; };
  list.insert(std::lower_bound(list.begin(), list.end(), record.id, by_id), &record);
}

void Residency::leave(std::vector<Record*>& list, const Record& record) {
  list.erase(std::find(list.begin(), list.end(), &record));
}

bool Residency::run(Instant now, InstanceId id, Bytes demand) {
  Record& record = records_.at(id);
  const RecordState before = record.state;
  must_take(record, RecordEvent::kChosen);
  if (before.sample_due() && record.peak > Bytes(0)) learn(record);
  record.demand = demand;
  record.last_used = now;
  recount(record);
  const bool there = !before.moving() && record.use.away == Bytes(0);
  if (before.prefetched()) ++(there ? counters_.prefetches_in_time : counters_.prefetches_late);
  return there;
}

void Residency::ready(InstanceId id) {
  Record* record = records_.find(id);
  if (record == nullptr || !take(*record, RecordEvent::kReady)) return;
  if (record->function != nullptr) record->function->gave_way = 0;
  recount(*record);
}

void Residency::started(Instant now, InstanceId id) {
  end_run(now, id, RecordEvent::kUnused);
}

void Residency::rest(Instant now, InstanceId id) {
  end_run(now, id, RecordEvent::kRested);
}

void Residency::end_run(Instant now, InstanceId id, RecordEvent event) {
  Record* record = records_.find(id);
  if (record == nullptr || !take(*record, event)) return;
  record->granted = Bytes(0);
  record->last_used = now;
  ++record->device->freed;
  recount(*record);
}

void Residency::stopping(Instant now, InstanceId id) {
  Record* record = records_.find(id);
  if (record == nullptr || record->state.stopping()) return;
  begin_stop(now, *record);
}

void Residency::begin_stop(Instant now, Record& record) {
  if (record.state.motion() == Motion::kLeaving) ++counters_.swap_outs_in_vain;
  must_take(record, RecordEvent::kStopped);
  record.granted = Bytes(0);
  set_deadline(record, now + options_.move_deadline);
  recount(record);
}

void Residency::gone(InstanceId id) {
  if (Record* record = records_.find(id)) erase(*record);
}

void Residency::erase(Record& record) {
  Device& device = *record.device;
  const InstanceId id = record.id;
  clear_deadline(record);
  count_as(record, Books());
  if (record.state.reported()) --device.reporting;
  leave(device.records, record);
  if (record.function != nullptr) leave(record.function->records, record);
  records_.erase(id);
  std::erase_if(device.requests, [&](const RoomRequest& r) { return r.instance == id; });
  tell_requests(device, id, true);
}

// ---- events

bool Residency::report(InstanceId id, const MemoryUse& use) {
  Record* record = records_.find(id);
  if (record == nullptr) return false;
  const RecordState before = record->state;
  if (!take(*record, RecordEvent::kReported)) return false;
  Device& device = *record->device;
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
  recount(*record);
  return true;
}

bool Residency::moved(Instant now, InstanceId id, MoveDirection direction, MoveOutcome outcome) {
  Record* record = records_.find(id);
  if (record == nullptr) return false;
  const RecordEvent event = end_of_move(direction, outcome, record->use.away);
  if (!take(*record, event)) return false;
  Device& device = *record->device;
  clear_deadline(*record);
  if (outcome == MoveOutcome::kDone) device.link.learn(record->on_the_link_then, now - record->move_began);
  count_moved(*record, direction, outcome);
  recount(*record);
  const bool freed =
      direction == MoveDirection::kOut && (outcome == MoveOutcome::kDone || outcome == MoveOutcome::kPartly);
  const bool full = event == RecordEvent::kFull;
  if (full) record->full_at = device.freed;
  if (full && record->state.runs()) {
    device.requests.push_back({id, std::nullopt, record->use.away, Instant::max(), {}, false});
  }
  tell_requests(device, id, freed);
  return true;
}

// Reports tell the truth, before or after this; what is set here holds until the next one. It is stated in terms of what
// was known when the move began, so that a report in between is not counted twice.
void Residency::count_moved(Record& record, MoveDirection direction, MoveOutcome outcome) {
  const MemoryUse& before = record.before_move;
  MemoryUse& use = record.use;
  if (outcome != MoveOutcome::kDone && outcome != MoveOutcome::kNothing) ++counters_.swap_failures;
  if (direction == MoveDirection::kOut) {
    if (outcome != MoveOutcome::kDone) return;
    use.resident = std::min(use.resident, std::max(before.fixed, before.resident - record.moving_bytes));
    use.away = std::max(use.away, before.away + record.moving_bytes);
    counters_.bytes_out += static_cast<std::uint64_t>((use.away - before.away).count());
    counters_.bytes_asked_out += static_cast<std::uint64_t>(record.moving_bytes.count());
    return;
  }
  if (outcome == MoveOutcome::kDone) {
    use.resident = std::max(use.resident, before.resident + before.away);
    counters_.bytes_in += static_cast<std::uint64_t>(before.away.count());
  }
  if (outcome == MoveOutcome::kDone || outcome == MoveOutcome::kNothing) use.away = Bytes(0);
}

// A move or stop that requests may wait for is over.
void Residency::tell_requests(Device& device, InstanceId id, bool freed) {
  if (freed) ++device.freed;
  for (RoomRequest& request : device.requests) {
    if (request.awaited.erase(id) > 0) request.freed |= freed;
  }
}

bool Residency::needs_room(Instant now, InstanceId id, std::uint64_t number, Bytes bytes) {
  Record* record = records_.find(id);
  if (record == nullptr || record->state.stopping()) return false;
  std::vector<RoomRequest>& requests = record->device->requests;
  const bool is_repeated = std::any_of(requests.begin(), requests.end(),
                                       [&](const RoomRequest& r) { return r.instance == id && r.request == number; });
  if (is_repeated) return false;
  requests.push_back({id, number, bytes, now + options_.room_deadline, {}, false});
  unsettle(*record->device);
  return true;
}

bool Residency::wants_memory(InstanceId id) {
  Record* record = records_.find(id);
  if (record == nullptr) return false;
  if (!take(*record, record->use.away == Bytes(0) ? RecordEvent::kDoubts : RecordEvent::kWants)) return false;
  recount(*record);
  return true;
}

std::optional<Bytes> Residency::device_used(GpuId gpu, Bytes used) {
  Device& device = devices_.at(gpu);
  const bool moves = device.books.on_the_link > Bytes(0) || device.books.outgoing > Bytes(0);
  if (device.memory == Bytes(0) || moves) return std::nullopt;
  const Bytes before = device.unreported.bytes();
  device.unreported.sample(used, device.books.occupied);
  unsettle(device);
  const Bytes after = device.unreported.bytes();
  if (after < before) ++device.freed;
  return after != before ? std::optional(after) : std::nullopt;
}

std::vector<InstanceId> Residency::expire(Instant now) {
  std::vector<InstanceId> given_up;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const InstanceId id = deadlines_.begin()->second;
    Record& record = records_.at(id);
    if (record.state.stopping()) {
      gone(id);
      continue;
    }
    clear_deadline(record);
    ++counters_.swap_failures;
    must_take(record, record.state.motion() == Motion::kLeaving ? RecordEvent::kNotLeft : RecordEvent::kFailed);
    recount(record);
    tell_requests(*record.device, id, false);
    given_up.push_back(id);
  }
  return given_up;
}

std::optional<Instant> Residency::next_deadline() const {
  Instant next = deadlines_.empty() ? Instant::max() : deadlines_.begin()->first;
  for (const Device* device : unsettled_) {  // so is each that has requests
    for (const RoomRequest& request : device->requests) next = std::min(next, request.deadline);
  }
  return next == Instant::max() ? std::nullopt : std::optional(next);
}

// ---- the books

Residency::Books& Residency::Books::operator+=(const Books& other) {
  occupied += other.occupied;
  reserved += other.reserved;
  outgoing += other.outgoing;
  on_the_link += other.on_the_link;
  absent_runs += other.absent_runs;
  absent_idle += other.absent_idle;
  movable += other.movable;
  wanted += other.wanted;
  may_grow += other.may_grow;
  return *this;
}

Residency::Books& Residency::Books::operator-=(const Books& other) {
  occupied -= other.occupied;
  reserved -= other.reserved;
  outgoing -= other.outgoing;
  on_the_link -= other.on_the_link;
  absent_runs -= other.absent_runs;
  absent_idle -= other.absent_idle;
  movable -= other.movable;
  wanted -= other.wanted;
  may_grow -= other.may_grow;
  return *this;
}

// To be called whenever a record has changed; once more does no harm.
void Residency::recount(Record& record) {
  count_as(record, record.books());
}

void Residency::count_as(Record& record, const Books& books) {
  Device& device = *record.device;
  const Books before = std::exchange(record.counted, books);
  device.books -= before;
  device.books += books;
  unsettle(device);
  const auto keep = [&record](std::vector<Record*>& list, int was_there, int is_there) {
    if (was_there < is_there) enter(list, record);
    if (was_there > is_there) leave(list, record);
  };
  keep(device.absent_runs, before.absent_runs, books.absent_runs);
  keep(device.absent_idle, before.absent_idle, books.absent_idle);
  keep(device.movable, before.movable, books.movable);
  device.some_called |= books.absent_idle > 0 && record.function != nullptr && record.function->may_have_queued;
}

void Residency::unsettle(Device& device) {
  if (std::exchange(device.unsettled, true)) return;
  unsettled_.push_back(&device);
}

void Residency::check_books() const {
  for (const auto& [gpu, device] : devices_) {
    Books sum;
    std::vector<const Record*> absent_runs, absent_idle, movable;
    for (const Record* record : device.records) {
      sum += record->books();
      if (record->absent()) (record->state.runs() ? absent_runs : absent_idle).push_back(record);
      if (record->movable() > Bytes(0)) movable.push_back(record);
      const bool must_end = record->state.moving() || record->state.stopping();
      FL_CHECK(must_end == (record->deadline != Instant::max()), "instance {}: {}", record->id.value(),
               record->state.text());
    }
    FL_CHECK(sum == device.books, "GPU {}: occupied {} reserved {} outgoing {}", gpu.value(),
             device.books.occupied.count(), device.books.reserved.count(), device.books.outgoing.count());
    for (const auto& [listed, found] :
         {std::pair(&device.absent_runs, &absent_runs), std::pair(&device.absent_idle, &absent_idle),
          std::pair(&device.movable, &movable)}) {
      FL_CHECK(std::equal(found->begin(), found->end(), listed->begin(), listed->end()), "GPU {}", gpu.value());
    }
  }
}

// ---- what is known of one instance

Residency::Standing Residency::standing(InstanceId id) const {
  const Record& record = records_.at(id);
  const Bytes away = record.use.away;
  Standing standing{.pinned = record.pinned(options_.policy), .needed = record.needed(), .reload = std::nullopt};
  if (record.state.reported()) standing.reload = away > Bytes(0) ? 2 * record.device->link.time_of(away) : Duration(0);
  return standing;
}

Bytes Residency::Record::pinned(MemoryPolicy policy) const {
  if (!state.reported()) return demand;
  if (policy == MemoryPolicy::kNone) return use.needed();
  return state.unmovable() ? use.resident : use.fixed;
}

Bytes Residency::Record::needed() const {
  const bool waits = std::any_of(device->requests.begin(), device->requests.end(),
                                 [this](const RoomRequest& r) { return r.instance == id && r.waits_for_runs; });
  return waits ? std::max(use.needed(), demand) : use.needed();
}

const MemoryUse* Residency::use(InstanceId id) const {
  const Record* record = records_.find(id);
  return record == nullptr || !record->state.reported() ? nullptr : &record->use;
}

const RecordState* Residency::state(InstanceId id) const {
  const Record* record = records_.find(id);
  return record == nullptr ? nullptr : &record->state;
}

void Residency::set_deadline(Record& record, Instant at) {
  clear_deadline(record);
  record.deadline = at;
  deadlines_.emplace(at, record.id);
}

void Residency::clear_deadline(Record& record) {
  deadlines_.erase({record.deadline, record.id});
  record.deadline = Instant::max();
}

}  // namespace fairlead
