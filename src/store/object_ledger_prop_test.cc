// The ledger against a model that recomputes everything from scratch, under random sequences of what may happen.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <list>
#include <map>

#include "store/object_ledger.h"

namespace fairlead::store {
namespace {

constexpr std::int64_t kMemoryLimit = 100, kDiskLimit = 150, kQuota = 180;

// What the ledger has said of each id, kept naively.
struct Model {
  enum class At { kWaiting, kWaitingBack, kWriting, kMemory, kSpilling, kDisk, kReading };
  struct Object {
    std::string tenant;
    std::int64_t bytes = 0;
    At at = At::kWaiting;
  };
  std::map<ObjectLedger::Id, Object> objects;
  std::list<ObjectLedger::Id> use;      // the least recently used first
  std::list<ObjectLedger::Id> waiting;  // in order

  std::int64_t sum(std::initializer_list<At> places, const std::string& tenant = "") const {
    std::int64_t total = 0;
    for (const auto& [id, object] : objects) {
      const bool counts = std::find(places.begin(), places.end(), object.at) != places.end();
      if (counts && (tenant.empty() || tenant == object.tenant)) total += object.bytes;
    }
    return total;
  }
  std::int64_t memory() const { return sum({At::kWriting, At::kMemory, At::kSpilling, At::kReading}); }
  std::int64_t disk() const { return sum({At::kSpilling, At::kDisk, At::kWaitingBack, At::kReading}); }
  bool any(std::initializer_list<At> places) const {
    for (const auto& [id, object] : objects) {
      if (std::find(places.begin(), places.end(), object.at) != places.end()) return true;
    }
    return false;
  }
  void used(ObjectLedger::Id id) {
    use.remove(id);
    use.push_back(id);
  }
  void forget(ObjectLedger::Id id) {
    use.remove(id);
    waiting.remove(id);
    objects.erase(id);
  }
  std::vector<ObjectLedger::Id> all(At place) const {
    std::vector<ObjectLedger::Id> ids;
    for (const auto& [id, object] : objects) {
      if (object.at == place) ids.push_back(id);
    }
    return ids;
  }
};
using At = Model::At;

void follow(Model& model, const ObjectLedger::Actions& actions) {
  for (const ObjectLedger::Action& action : actions) {
    if (const auto* grant = std::get_if<ObjectLedger::Grant>(&action)) {
      RC_ASSERT(!model.waiting.empty());
      RC_ASSERT(model.waiting.front() == grant->id);
      model.waiting.pop_front();
      Model::Object& object = model.objects.at(grant->id);
      object.at = object.at == At::kWaiting ? At::kWriting : At::kReading;
    } else if (const auto* refuse = std::get_if<ObjectLedger::Refuse>(&action)) {
      RC_ASSERT(model.waiting.front() == refuse->id);
      model.waiting.pop_front();
      if (model.objects.at(refuse->id).at == At::kWaiting)
        model.forget(refuse->id);
      else
        model.objects.at(refuse->id).at = At::kDisk;
    } else {
      const auto id = std::get<ObjectLedger::Spill>(action).id;
      Model::Object& victim = model.objects.at(id);
      RC_ASSERT(victim.at == At::kMemory);
      // Nothing that was used longer ago, and would fit on the disk, is passed over.
      for (const ObjectLedger::Id older : model.use) {
        if (older == id) break;
        const Model::Object& other = model.objects.at(older);
        RC_ASSERT(other.at != At::kMemory || other.bytes == 0 || model.disk() + other.bytes > kDiskLimit);
      }
      victim.at = At::kSpilling;
    }
  }
}

void check(const Model& model, const ObjectLedger& ledger) {
  RC_ASSERT(ledger.memory_used().count() == model.memory());
  RC_ASSERT(ledger.disk_used().count() == model.disk());
  RC_ASSERT(model.memory() <= kMemoryLimit);
  RC_ASSERT(model.disk() <= kDiskLimit);
  for (const char* tenant : {"a", "b"}) {
    const std::int64_t all = model.sum(
        {At::kWaiting, At::kWaitingBack, At::kWriting, At::kMemory, At::kSpilling, At::kDisk, At::kReading}, tenant);
    RC_ASSERT(ledger.tenant_used(tenant).count() == all);
    RC_ASSERT(all <= kQuota);
  }
  // Nobody waits for nothing.
  RC_ASSERT(model.waiting.empty() || model.any({At::kWriting, At::kReading, At::kSpilling}));
}

RC_GTEST_PROP(ObjectLedgerProperties, KeepsItsLimitsAndSpillsByUse, ()) {
  ObjectLedger ledger({.memory = Bytes(kMemoryLimit), .spill = Bytes(kDiskLimit), .tenant = Bytes(kQuota)});
  Model model;
  ObjectLedger::Id last = 0;
  const int steps = *rc::gen::inRange(1, 120);
  for (int step = 0; step < steps; ++step) {
    ObjectLedger::Actions actions;
    const auto pick = [&](At place) -> ObjectLedger::Id {
      const auto ids = model.all(place);
      return ids.empty() ? 0 : *rc::gen::elementOf(ids);
    };
    switch (*rc::gen::inRange(0, 9)) {
      case 0:
      case 1:
      case 2: {
        const std::int64_t bytes = *rc::gen::inRange(0, 111);
        const std::string tenant = *rc::gen::element(std::string("a"), std::string("b"));
        const Status asked = ledger.request(++last, tenant, Bytes(bytes), ObjectLedger::Writer::kStore, actions);
        if (!asked) break;
        model.objects[last] = {tenant, bytes, At::kWaiting};
        model.waiting.push_back(last);
        break;
      }
      case 3: {
        auto id = pick(At::kWriting);
        if (id == 0) id = pick(At::kReading);
        if (id == 0) break;
        model.objects.at(id).at = At::kMemory;
        model.used(id);
        ledger.settle(id, actions);
        break;
      }
      case 4:
        if (const auto id = pick(At::kMemory)) {
          model.used(id);
          ledger.touch(id);
        }
        break;
      case 5:
        if (const auto id = pick(At::kSpilling)) {
          model.objects.at(id).at = At::kDisk;
          ledger.spilled(id, actions);
        }
        break;
      case 6:
        if (const auto id = pick(At::kSpilling)) {
          model.objects.at(id).at = At::kMemory;
          ledger.spill_failed(id, {Errc::kIo, "no"}, actions);
        }
        break;
      case 7:
        if (const auto id = pick(At::kDisk)) {
          model.objects.at(id).at = At::kWaitingBack;
          model.waiting.push_back(id);
          ledger.request_back(id, actions);
        }
        break;
      default:
        if (model.objects.empty()) break;
        std::vector<ObjectLedger::Id> ids;
        for (const auto& [id, object] : model.objects) ids.push_back(id);
        const auto id = *rc::gen::elementOf(ids);
        model.forget(id);
        ledger.drop(id, actions);
    }
    follow(model, actions);
    check(model, ledger);
  }
}

}  // namespace
}  // namespace fairlead::store
