#include "decide/residency/memory_ledger.h"

#include <algorithm>

#include "base/check.h"

namespace fairlead {
namespace {

using Motion = RecordState::Motion;

void enter(std::vector<MemoryRecord*>& list, MemoryRecord& record) {
  const auto by_id = [](const MemoryRecord* listed, InstanceId id) { return listed->id < id; };
  list.insert(std::lower_bound(list.begin(), list.end(), record.id, by_id), &record);
}

void leave(std::vector<MemoryRecord*>& list, const MemoryRecord& record) {
  list.erase(std::find(list.begin(), list.end(), &record));
}

}  // namespace

void MemoryLedger::add_device(GpuId gpu, Bytes memory) {
  MemoryDevice& device = devices_[gpu];
  device.id = gpu;
  device.memory = memory;
}

bool MemoryLedger::remove_device(GpuId gpu) {
  const auto found = devices_.find(gpu);
  if (!found->second.records.empty()) return false;
  std::erase(unsettled_, &found->second);
  devices_.erase(found);
  return true;
}

MemoryRecord& MemoryLedger::add(Instant now, InstanceId id, FlowId flow, MemoryFunction* function, GpuId gpu,
                                Bytes demand) {
  MemoryDevice& device = devices_.at(gpu);
  MemoryRecord& record = records_[id];
  record.id = id;
  record.flow = flow;
  record.function = function;
  record.device = &device;
  record.demand = demand;
  record.last_used = now;
  if (record.function != nullptr) record.function->records.push_back(&record);
  enter(device.records, record);
  recount(record);
  return record;
}

void MemoryLedger::erase(MemoryRecord& record) {
  MemoryDevice& device = *record.device;
  const InstanceId id = record.id;
  clear_deadline(record);
  count_as(record, MemoryBooks());
  if (record.state.reported()) --device.reporting;
  leave(device.records, record);
  if (record.function != nullptr) leave(record.function->records, record);
  records_.erase(id);
  std::erase_if(device.requests, [&](const RoomRequest& r) { return r.instance == id; });
  tell_requests(device, id, true);
}

bool MemoryLedger::take(MemoryRecord& record, RecordEvent event) {
  const std::optional<RecordState> next = step(record.state, event);
  if (next) record.state = *next;
  return next.has_value();
}

void MemoryLedger::must_take(MemoryRecord& record, RecordEvent event) {
  FL_CHECK(take(record, event), "instance {}, {}: {}", record.id.value(), record.state.text(),
           record_event_name(event));
}

void MemoryLedger::count_as(MemoryRecord& record, const MemoryBooks& books) {
  MemoryDevice& device = *record.device;
  const MemoryBooks before = std::exchange(record.counted, books);
  device.books -= before;
  device.books += books;
  unsettle(device);
  const auto keep = [&record](std::vector<MemoryRecord*>& list, int was_there, int is_there) {
    if (was_there < is_there) enter(list, record);
    if (was_there > is_there) leave(list, record);
  };
  keep(device.absent_runs, before.absent_runs, books.absent_runs);
  keep(device.absent_idle, before.absent_idle, books.absent_idle);
  keep(device.movable, before.movable, books.movable);
  device.some_called |= books.absent_idle > 0 && record.function != nullptr && record.function->may_have_queued;
}

// ---- moves and stops

void MemoryLedger::begin_stop(Instant now, MemoryRecord& record) {
  if (record.state.motion() == Motion::kLeaving) ++counters_.swap_outs_in_vain;
  must_take(record, RecordEvent::kStopped);
  record.granted = Bytes(0);
  set_deadline(record, now + move_deadline_);
  recount(record);
}

void MemoryLedger::begin_move(Instant now, MemoryRecord& record, RecordEvent event, Bytes bytes,
                              ResidencyDecisions& out) {
  const MoveDirection direction = event == RecordEvent::kLeaves ? MoveDirection::kOut : MoveDirection::kIn;
  const MemoryDevice& device = *record.device;
  must_take(record, event);
  record.move.bytes = bytes;
  record.move.before = record.use;
  recount(record);
  record.move.began = now;
  record.move.on_the_link_then = device.books.on_the_link;
  const Duration on_the_link(device.books.on_the_link.count());  // at a byte per nanosecond
  set_deadline(record, now + move_deadline_ + on_the_link);
  ++(direction == MoveDirection::kOut ? counters_.swap_outs : counters_.swap_ins);
  out.push_back(Move{record.id, device.id, direction, bytes});
}

bool MemoryLedger::end_move(Instant now, MemoryRecord& record, RecordEvent event, MoveDirection direction,
                            MoveOutcome outcome) {
  if (!take(record, event)) return false;
  clear_deadline(record);
  if (outcome == MoveOutcome::kDone) record.device->link.learn(record.move.on_the_link_then, now - record.move.began);
  count_moved(record, direction, outcome);
  recount(record);
  return true;
}

// Reports tell the truth, before or after this; what is set here holds until the next one. It is stated in terms of what
// was known when the move began, so that a report in between is not counted twice.
void MemoryLedger::count_moved(MemoryRecord& record, MoveDirection direction, MoveOutcome outcome) {
  const MemoryUse& before = record.move.before;
  MemoryUse& use = record.use;
  if (outcome != MoveOutcome::kDone && outcome != MoveOutcome::kNothing) ++counters_.swap_failures;
  if (direction == MoveDirection::kOut) {
    if (outcome != MoveOutcome::kDone) return;
    use.resident = std::min(use.resident, std::max(before.fixed, before.resident - record.move.bytes));
    use.away = std::max(use.away, before.away + record.move.bytes);
    counters_.bytes_out += static_cast<std::uint64_t>((use.away - before.away).count());
    counters_.bytes_asked_out += static_cast<std::uint64_t>(record.move.bytes.count());
    return;
  }
  if (outcome == MoveOutcome::kDone) {
    use.resident = std::max(use.resident, before.resident + before.away);
    counters_.bytes_in += static_cast<std::uint64_t>(before.away.count());
  }
  if (outcome == MoveOutcome::kDone || outcome == MoveOutcome::kNothing) use.away = Bytes(0);
}

void MemoryLedger::tell_requests(MemoryDevice& device, InstanceId id, bool freed) {
  if (freed) ++device.freed;
  for (RoomRequest& request : device.requests) {
    if (request.awaited.erase(id) > 0) request.freed |= freed;
  }
}

MemoryRecord* MemoryLedger::overdue(Instant now) {
  const bool is_due = !deadlines_.empty() && deadlines_.begin()->first <= now;
  return is_due ? &records_.at(deadlines_.begin()->second) : nullptr;
}

void MemoryLedger::give_up_move(MemoryRecord& record) {
  clear_deadline(record);
  ++counters_.swap_failures;
  must_take(record, record.state.motion() == Motion::kLeaving ? RecordEvent::kNotLeft : RecordEvent::kFailed);
  recount(record);
  tell_requests(*record.device, record.id, false);
}

Instant MemoryLedger::next_deadline() const {
  Instant next = deadlines_.empty() ? Instant::max() : deadlines_.begin()->first;
  for (const MemoryDevice* device : unsettled_) {  // so is each that has requests
    for (const RoomRequest& request : device->requests) next = std::min(next, request.deadline);
  }
  return next;
}

void MemoryLedger::set_deadline(MemoryRecord& record, Instant at) {
  clear_deadline(record);
  record.deadline = at;
  deadlines_.emplace(at, record.id);
}

void MemoryLedger::clear_deadline(MemoryRecord& record) {
  deadlines_.erase({record.deadline, record.id});
  record.deadline = Instant::max();
}

const std::vector<MemoryDevice*>& MemoryLedger::take_unsettled() {
  settling_.clear();
  settling_.swap(unsettled_);
  const auto by_id = [](const MemoryDevice* a, const MemoryDevice* b) { return a->id < b->id; };
  if (settling_.size() > 1) std::sort(settling_.begin(), settling_.end(), by_id);
  for (MemoryDevice* device : settling_) device->unsettled = false;
  return settling_;
}

void MemoryLedger::check() const {
  for (const auto& [gpu, device] : devices_) {
    MemoryBooks sum;
    std::vector<const MemoryRecord*> absent_runs, absent_idle, movable;
    for (const MemoryRecord* record : device.records) {
      sum += record->books();
      FL_CHECK(record->books().is_sound(), "instance {}: {}", record->id.value(), record->state.text());
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

}  // namespace fairlead
