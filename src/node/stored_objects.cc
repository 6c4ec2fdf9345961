#include "node/stored_objects.h"

#include <boost/asio/post.hpp>
#include <iterator>
#include <utility>

namespace fairlead {

void StoredObjects::lend(const std::string& tenant, const std::shared_ptr<const LentObject>& object) {
  for (auto entry = lent_.begin(); entry != lent_.end();) {
    std::erase_if(entry->second, [](const auto& owned) { return owned.expired(); });
    entry = entry->second.empty() ? lent_.erase(entry) : std::next(entry);
  }
  lent_[{tenant, object->key}].push_back(object);
}

std::shared_ptr<const LentObject> StoredObjects::lent(const ObjectKey& name) const {
  const auto found = lent_.find(name);
  if (found == lent_.end()) return nullptr;
  for (const auto& owned : found->second) {
    if (auto object = owned.lock()) return object;
  }
  return nullptr;
}

std::optional<ObjectSource::Known> StoredObjects::look_up(const ObjectKey& name) {
  if (const auto object = lent(name)) {
    return Known{object->content, object->file->bytes(), object->created_ms, /*on_device=*/false};
  }
  const auto info = store_.info({name.tenant, name.key});
  if (!info) return std::nullopt;
  return Known{info->content, info->bytes, info->created_ms, info->state == ObjectState::kOnDevice};
}

void StoredObjects::open(const ObjectKey& name, Duration patience, std::function<void(Result<Opened>)> done) {
  if (const auto object = lent(name)) {
    return boost::asio::post(io_, [object, done = std::move(done)] {
      auto memory = object->file->open();
      if (!memory) return done(fail(memory.error()));
      done(Opened{object->content, object->file->bytes(), *std::move(memory)});
    });
  }
  store_.open_object({name.tenant, name.key}, patience, [done = std::move(done)](Result<OpenObject> object) {
    if (!object) return done(fail(object.error()));
    done(Opened{object->info.content, object->info.bytes, std::move(object->memory)});
  });
}

Status StoredObjects::expect(const ObjectKey& name, Bytes bytes) {
  return store_.expect({name.tenant, name.key}, bytes);
}

Status StoredObjects::promise(const ObjectKey& name, Bytes bytes, Fetch fetch, std::function<void()> gone) {
  return store_.promise({name.tenant, name.key}, bytes, std::move(fetch), std::move(gone));
}

void StoredObjects::abandon(const ObjectKey& name, Error why) {
  store_.abandon({name.tenant, name.key}, std::move(why));
}

}  // namespace fairlead
