// What of each session's constants is not on the device? A device server says so to the node when it changes, and the node's
// queue counts the time to bring them back among what it costs to begin with the session's function.
//
// Example: sessions 1 and 2 share a constant of 2 GB, session 1 has another of 1 GB. Both are loaded: nothing is missing.
// The shared one is evicted: 2 GB of session 1 are missing, and 2 GB of session 2.
//
// The cost of a change is that of the sessions which have the object; nothing is scanned.
//
// Time: none. Threads: not thread-safe; the device server's loop owns it. Determinism: changes are in order of session.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "decide/residency/object_cache.h"

namespace fairlead {

class SessionResidency {
 public:
  using SessionNumber = std::uint64_t;
  struct Constant {
    ObjectId object;
    Bytes bytes{0};
    bool on_device = false;
  };
  struct Missing {
    SessionNumber session = 0;
    Bytes bytes{0};
    bool operator==(const Missing&) const = default;
  };

  // The first answer of take_changes() after it tells of the session in any case. An object counts as often as it is named.
  void add(SessionNumber session, const std::vector<Constant>& constants) {
    remove(session);
    Known& known = sessions_[session];
    for (const Constant& constant : constants) {
      Object& object = objects_[constant.object];
      object.bytes = constant.bytes;
      set_on_device(object, constant.on_device);
      object.users.emplace_back(session, constant.bytes);
      known.objects.push_back(constant.object);
      if (!constant.on_device) known.missing += constant.bytes;
    }
    changed_.insert(session);
  }
  void remove(SessionNumber session) {
    const auto found = sessions_.find(session);
    if (found == sessions_.end()) return;
    for (const ObjectId id : found->second.objects) {
      const auto object = objects_.find(id);
      if (object == objects_.end()) continue;  // named twice
      std::erase_if(object->second.users, [&](const auto& user) { return user.first == session; });
      if (!object->second.users.empty()) continue;
      set_on_device(object->second, false);
      objects_.erase(object);
    }
    sessions_.erase(found);
    changed_.erase(session);
  }

  // Objects that are nobody's constants: no effect.
  void moved(ObjectId id, bool on_device) {
    const auto found = objects_.find(id);
    if (found == objects_.end() || found->second.on_device == on_device) return;
    set_on_device(found->second, on_device);
    for (const auto& [session, bytes] : found->second.users) {
      Bytes& missing = sessions_.at(session).missing;
      missing = on_device ? missing - bytes : missing + bytes;
      changed_.insert(session);
    }
  }

  // Constants of any session that are on the device, each once.
  Bytes resident() const { return resident_; }

  // Of sessions for which it is not what it was the last time.
  std::vector<Missing> take_changes() {
    std::vector<Missing> changes;
    for (const SessionNumber session : std::exchange(changed_, {})) {
      Known& known = sessions_.at(session);
      if (known.told == known.missing) continue;
      known.told = known.missing;
      changes.push_back({session, known.missing});
    }
    return changes;
  }

 private:
  struct Known {
    std::vector<ObjectId> objects;
    Bytes missing{0};
    Bytes told{-1};  // nothing yet
  };
  struct Object {
    Bytes bytes{0};
    bool on_device = false;
    std::vector<std::pair<SessionNumber, Bytes>> users;
  };
  void set_on_device(Object& object, bool on_device) {
    if (object.on_device == on_device) return;
    object.on_device = on_device;
    resident_ = on_device ? resident_ + object.bytes : resident_ - object.bytes;
  }

  std::map<SessionNumber, Known> sessions_;
  std::unordered_map<ObjectId, Object> objects_;
  std::set<SessionNumber> changed_;
  Bytes resident_{0};
};

}  // namespace fairlead
