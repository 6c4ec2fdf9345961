#include "store/object_ledger.h"

#include <algorithm>

#include "base/check.h"

namespace fairlead::store {

Status ObjectLedger::check(const std::string& tenant, Bytes bytes) const {
  if (bytes > limits_.memory) {
    return fail(Errc::kTooLarge, "the object has {} bytes, the node's memory for objects is {}: raise --object-memory",
                bytes.count(), limits_.memory.count());
  }
  if (const Bytes used = tenant_used(tenant); used + bytes > limits_.tenant) {
    return fail(Errc::kResourceExhausted,
                "tenant '{}' holds {} bytes, and with {} more exceeds its quota of {}: delete objects, or raise "
                "--object-quota",
                tenant, used.count(), bytes.count(), limits_.tenant.count());
  }
  return {};
}

Status ObjectLedger::claim(const std::string& tenant, Bytes bytes) {
  if (Status fits = check(tenant, bytes); !fits) return fits;
  tenants_[tenant] += bytes;
  return {};
}

void ObjectLedger::unclaim(const std::string& tenant, Bytes bytes) {
  Bytes& used = tenants_.at(tenant);
  FL_CHECK(used >= bytes, "tenant {} holds {} bytes, {} are to go", tenant, used.count(), bytes.count());
  used = used - bytes;
  if (used == Bytes(0)) tenants_.erase(tenant);
}

Status ObjectLedger::request(Id id, const std::string& tenant, Bytes bytes, Writer writer, Actions& out) {
  if (Status fits = check(tenant, bytes); !fits) return fits;
  const bool is_new = holdings_.emplace(id, Holding{.tenant = tenant, .bytes = bytes, .writer = writer}).second;
  FL_CHECK(is_new, "id {}", id);
  tenants_[tenant] += bytes;
  queue_.push_back(id);
  serve(out);
  return {};
}

void ObjectLedger::written_by_client(Id id) {
  enter(at(id), State::kWriting);
}

void ObjectLedger::request_back(Id id, Actions& out) {
  Holding& holding = at(id);
  FL_CHECK(holding.state == State::kOnDisk, "id {} state {}", id, static_cast<int>(holding.state));
  enter(holding, State::kWaitingBack);
  queue_.push_back(id);
  serve(out);
}

void ObjectLedger::back_failed(Id id, Actions& out) {
  enter(at(id), State::kOnDisk);
  serve(out);
}

void ObjectLedger::settle(Id id, Actions& out) {
  Holding& holding = at(id);
  enter(holding, State::kSettled);
  holding.last_used = ++uses_;
  by_use_.emplace(holding.last_used, id);
  serve(out);
}

void ObjectLedger::touch(Id id) {
  Holding& holding = at(id);
  const bool is_settled = by_use_.erase({holding.last_used, id}) > 0;
  holding.last_used = ++uses_;
  if (is_settled) by_use_.emplace(holding.last_used, id);
}

void ObjectLedger::spilled(Id id, Actions& out) {
  enter(at(id), State::kOnDisk);
  serve(out);
}

void ObjectLedger::spill_failed(Id id, const Error& why, Actions& out) {
  Holding& holding = at(id);
  enter(holding, State::kSettled);
  by_use_.emplace(holding.last_used, id);
  if (!queue_.empty()) {
    refuse_front({Errc::kResourceExhausted,
                  fmt::format("memory for objects is full ({} of {} bytes), and one could not be spilled: {}",
                              memory_.count(), limits_.memory.count(), why.message)},
                 out);
  }
  serve(out);
}

void ObjectLedger::drop(Id id, Actions& out) {
  Holding& holding = at(id);
  std::erase(queue_, id);
  by_use_.erase({holding.last_used, id});
  account(holding, -1);
  tenants_[holding.tenant] -= holding.bytes;
  if (tenants_[holding.tenant] == Bytes(0)) tenants_.erase(holding.tenant);
  holdings_.erase(id);
  serve(out);
}

void ObjectLedger::adopt(Id id, const std::string& tenant, Bytes bytes, Place place, Actions& out) {
  Holding holding{.tenant = tenant, .bytes = bytes, .last_used = ++uses_};
  holding.state = place == Place::kMemory ? State::kSettled : State::kOnDisk;
  account(holding, 1);
  tenants_[tenant] += bytes;
  if (place == Place::kMemory) by_use_.emplace(holding.last_used, id);
  holdings_.emplace(id, std::move(holding));
  (void)spill_for(Bytes(0), out);
}

Bytes ObjectLedger::tenant_used(const std::string& tenant) const {
  const auto it = tenants_.find(tenant);
  return it == tenants_.end() ? Bytes(0) : it->second;
}

ObjectLedger::Holding& ObjectLedger::at(Id id) {
  const auto it = holdings_.find(id);
  FL_CHECK(it != holdings_.end(), "id {} is unknown", id);
  return it->second;
}

void ObjectLedger::enter(Holding& holding, State state) {
  account(holding, -1);
  holding.state = state;
  account(holding, 1);
}

void ObjectLedger::account(const Holding& holding, int sign) {
  const Bytes bytes(holding.bytes.count() * sign);
  const State state = holding.state;
  if (state == State::kWaiting) return;
  if (state != State::kOnDisk && state != State::kWaitingBack) memory_ += bytes;
  if (state == State::kOnDisk || state == State::kWaitingBack || state == State::kReading) disk_ += bytes;
  if (state == State::kSpilling) {
    disk_ += bytes;
    spilling_ += bytes;
  }
  if (state == State::kWriting || state == State::kReading) passing_ += static_cast<std::size_t>(sign);
}

void ObjectLedger::serve(Actions& out) {
  while (!queue_.empty()) {
    const Id id = queue_.front();
    Holding& holding = at(id);
    const bool is_back = holding.state == State::kWaitingBack;
    const Bytes free = limits_.memory - memory_;
    if (holding.bytes <= free) {
      queue_.pop_front();
      enter(holding, is_back                            ? State::kReading
                     : holding.writer == Writer::kStore ? State::kWriting
                                                        : State::kHeldByClient);
      out.emplace_back(Grant{id});
    } else if (spill_for(holding.bytes, out) || passing_ > 0) {
      return;
    } else {
      refuse_front(no_room(holding), out);
    }
  }
}

// True: once everything that spills has left, there is room for `needed`. False: nothing was begun that could help.
bool ObjectLedger::spill_for(Bytes needed, Actions& out) {
  Bytes missing = memory_ - spilling_ + needed - limits_.memory;
  Bytes room_on_disk = limits_.spill - disk_;
  std::vector<Id> victims;
  for (const auto& [last_used, id] : by_use_) {
    if (missing <= Bytes(0)) break;
    const Bytes bytes = at(id).bytes;
    if (bytes == Bytes(0) || bytes > room_on_disk) continue;
    victims.push_back(id);
    missing -= bytes;
    room_on_disk -= bytes;
  }
  const bool suffices = missing <= Bytes(0);
  if (!suffices && needed > Bytes(0)) return false;
  for (const Id id : victims) {
    Holding& holding = at(id);
    by_use_.erase({holding.last_used, id});
    enter(holding, State::kSpilling);
    out.emplace_back(Spill{id});
  }
  return suffices;
}

void ObjectLedger::refuse_front(Error why, Actions& out) {
  const Id id = queue_.front();
  queue_.pop_front();
  Holding& holding = at(id);
  if (holding.state == State::kWaitingBack) {
    enter(holding, State::kOnDisk);
  } else {
    tenants_[holding.tenant] -= holding.bytes;
    if (tenants_[holding.tenant] == Bytes(0)) tenants_.erase(holding.tenant);
    holdings_.erase(id);
  }
  out.push_back(Refuse{id, std::move(why)});
}

Error ObjectLedger::no_room(const Holding& holding) const {
  return {Errc::kResourceExhausted,
          fmt::format(
              "{} bytes are wanted; memory for objects holds {} of {} bytes, the disk {} of {}, and nothing more "
              "can be spilled: delete objects, or raise --object-memory or --object-spill",
              holding.bytes.count(), memory_.count(), limits_.memory.count(), disk_.count(), limits_.spill.count())};
}

}  // namespace fairlead::store
