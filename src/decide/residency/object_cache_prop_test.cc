// The cache under random requests, followed by a naive model of what is where: every action must be possible, and what
// must never happen, never does.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "decide/residency/object_cache.h"

namespace fairlead {
namespace {

constexpr std::int64_t kObjects = 12;

struct Step {
  int kind = 0;  // 0-4: acquire, 5-7: release, 8: fetched, 9: removed
  std::vector<int> objects;
  int number = 0;
};

struct Where {
  bool device = false, host = false, layer = false;  // that hold its bytes
};

class Follower {
 public:
  Follower(ObjectCache& cache, Bytes device, Bytes host) : cache_(cache), device_(device), host_(host) {}

  void carry_out(const CacheActions& actions) {
    for (const CacheAction& action : actions) {
      std::visit([this](const auto& step) { act(step); }, action);
      RC_ASSERT(cache_.device_used() <= device_);
      RC_ASSERT(used(&Where::host) <= host_);
    }
  }
  void act(const WriteBack& step) {
    RC_ASSERT((at(step.object).device && !at(step.object).host));
    at(step.object).host = true;
  }
  void act(const EvictObject& step) {
    Where& where = at(step.object);
    RC_ASSERT(where.device);
    RC_ASSERT(!pinned.contains(step.object));
    if (!leaving.contains(step.object)) RC_ASSERT((where.host || where.layer));  // never the only copy
    where.device = false;
  }
  void act(const ForgetObject& step) {
    Where& where = at(step.object);
    RC_ASSERT(where.host);
    if (!leaving.contains(step.object)) RC_ASSERT(where.layer);
    where.host = false;
  }
  void act(const LoadObject& step) {
    Where& where = at(step.object);
    RC_ASSERT(!where.device);
    RC_ASSERT((step.in_host_tier ? where.host : where.layer));
    where.device = true;
    where.host = cache_.on_host(step.object);
  }
  void act(const PlaceOutput& step) {
    RC_ASSERT(!at(step.object).device);
    at(step.object).device = true;
  }
  Where& at(ObjectId id) { return places_[id]; }
  Bytes used(bool Where::*tier) const {
    Bytes sum{0};
    for (const auto& [id, place] : places_) {
      if (place.*tier) sum += size.at(id);
    }
    return sum;
  }

  std::map<ObjectId, Bytes> size;
  std::set<ObjectId> pinned, leaving;

 private:
  std::map<ObjectId, Where> places_;
  ObjectCache& cache_;
  const Bytes device_, host_;
};

struct Running {
  RequestId id;
  std::vector<ObjectNeed> needs;
};

std::vector<ObjectNeed> needs_of(const Step& step, std::uint64_t& last_object, Follower& follower,
                                 const std::set<ObjectId>& being_written) {
  std::map<ObjectId, ObjectNeed> needs;
  for (const int choice : step.objects) {
    if (choice % 4 == 3) {  // a new output
      const ObjectId id(1000 + ++last_object);
      follower.size[id] = Bytes(1 + choice % 5);
      needs[id] = {id, follower.size[id], ObjectKind::kOutput};
      continue;
    }
    ObjectId id(static_cast<std::uint64_t>(1 + choice % kObjects));
    if (choice % 4 == 2 && last_object > 0) id = ObjectId(1000 + 1 + static_cast<std::uint64_t>(choice) % last_object);
    const bool is_output = id.value() > 1000;
    if (!is_output) {
      follower.size[id] = Bytes(1 + static_cast<std::int64_t>(id.value()) % 4);
      follower.at(id).layer = true;
    }
    const Where& where = follower.at(id);
    if (being_written.contains(id) || !(where.device || where.host || where.layer)) continue;
    needs[id] = {id, follower.size[id],
                 is_output             ? ObjectKind::kInput
                 : id.value() % 2 == 0 ? ObjectKind::kConstant
                                       : ObjectKind::kInput};
  }
  std::vector<ObjectNeed> list;
  for (const auto& [id, need] : needs) list.push_back(need);
  return list;
}

void follow(CacheEviction eviction, const std::vector<Step>& steps) {
  const Bytes device(16), host(10);
  ObjectCache cache({.device = device, .host = host, .eviction = eviction});
  Follower follower(cache, device, host);
  std::vector<Running> running;
  std::uint64_t last_object = 0, last_request = 0;
  std::int64_t now = 0;
  for (const Step& step : steps) {
    follower.pinned.clear();
    std::set<ObjectId> being_written;
    for (const Running& request : running) {
      for (const ObjectNeed& need : request.needs) {
        follower.pinned.insert(need.object);
        if (need.kind == ObjectKind::kOutput) being_written.insert(need.object);
      }
    }
    CacheActions actions;
    if (step.kind < 5) {
      const std::vector<ObjectNeed> needs = needs_of(step, last_object, follower, being_written);
      for (const ObjectNeed& need : needs) {
        if (cache.on_device(need.object)) follower.pinned.insert(need.object);  // its own hits
      }
      const RequestId id(++last_request);
      if (cache.acquire(Instant(Duration(++now)), id, needs, Bytes(step.number % 4), actions)) {
        follower.carry_out(actions);
        for (const ObjectNeed& need : needs)
          RC_ASSERT((cache.on_device(need.object) && follower.at(need.object).device));
        running.push_back({id, needs});
      } else {
        RC_ASSERT(actions.empty());
      }
    } else if (step.kind < 8) {
      if (running.empty()) continue;
      const auto index = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(step.number) % running.size());
      const Running request = running[static_cast<std::size_t>(index)];
      running.erase(running.begin() + index);
      const bool completed = step.number % 5 != 0;
      follower.pinned.clear();
      for (const Running& other : running) {
        for (const ObjectNeed& need : other.needs) follower.pinned.insert(need.object);
      }
      for (const ObjectNeed& need : request.needs) {
        if (need.kind == ObjectKind::kOutput && !completed) follower.leaving.insert(need.object);
      }
      cache.release(request.id, completed, actions);
      follower.carry_out(actions);
    } else if (last_object > 0) {
      const ObjectId id(1000 + 1 + static_cast<std::uint64_t>(step.number) % last_object);
      if (step.kind == 8) {
        if (!being_written.contains(id) && (follower.at(id).device || follower.at(id).host)) {
          follower.at(id).layer = true;
          cache.written_back(id);
        }
      } else {
        follower.leaving.insert(id);
        follower.at(id).layer = false;
        cache.remove(id, actions);
        follower.carry_out(actions);
      }
    }
    RC_ASSERT(cache.host_used() == follower.used(&Where::host));
  }
}

std::vector<Step> steps_from(const std::vector<std::vector<std::uint16_t>>& numbers) {
  std::vector<Step> steps;
  for (const auto& list : numbers) {
    if (list.empty()) continue;
    Step step{.kind = list[0] % 10, .objects = {}, .number = list[0] / 10};
    for (std::size_t i = 1; i < list.size() && i < 7; ++i) step.objects.push_back(list[i]);
    steps.push_back(std::move(step));
  }
  return steps;
}

RC_GTEST_PROP(ObjectCache, NeverOverItsLimitsNeverWithoutACopyNeverWhatIsPinned,
              (const std::vector<std::vector<std::uint16_t>>& numbers)) {
  for (const CacheEviction eviction : {CacheEviction::kSingleUse, CacheEviction::kLru, CacheEviction::kCost}) {
    follow(eviction, steps_from(numbers));
  }
}

}  // namespace
}  // namespace fairlead
