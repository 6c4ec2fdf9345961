#include "runtime/device_servers/bound_object.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace fairlead {

bool ObjectOpener::known(DeviceServer& server, BoundObject& bound) {
  const auto number = server.objects.find(bound.name, objects_.look_up(bound.name), bound.size);
  if (number) bound.object = *number;
  return number.has_value();
}

void ObjectOpener::open(DeviceServer& server, const ServerTable::Handle& handle, BoundPtr bound, Duration patience,
                        std::function<void(Status)> done) {
  if (known(server, *bound)) {
    return boost::asio::post(io_, life_.guarded([done = std::move(done)] { done({}); }));
  }
  objects_.open(bound->name, patience,
                [this, handle, bound, done = std::move(done)](Result<ObjectSource::Opened> object) {
                  DeviceServer* const current = handle.find();
                  if (current == nullptr) return;
                  if (!object) return done(fail(object.error()));
                  if (object->bytes != bound->size) {
                    return done(fail(Errc::kInvalidArgument, "object {} has {} bytes, the buffer {}", bound->name.key,
                                     object->bytes.count(), bound->size.count()));
                  }
                  bound->object = current->objects.give(bound->name.tenant, object->content, last_ + 1);
                  bound->memory = std::move(object->memory);
                  last_ = std::max(last_, bound->object);
                  done({});
                });
}

}  // namespace fairlead
