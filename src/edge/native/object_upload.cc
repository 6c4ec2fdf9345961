#include "edge/native/object_upload.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace fairlead {

std::shared_ptr<ObjectUpload> ObjectUpload::begin(ObjectStore& objects, ObjectName name, Bytes bytes,
                                                  std::optional<Duration> lifetime) {
  std::shared_ptr<ObjectUpload> upload(new ObjectUpload(objects, std::move(name)));
  // Held by the store until it answers: an object that was granted and is wanted by nobody any more is abandoned with it.
  objects.create(upload->name_, bytes, lifetime,
                 [upload](Result<UniqueFd> memory) { upload->on_memory(std::move(memory)); });
  return upload;
}

ObjectUpload::~ObjectUpload() {
  if (memory_ && is_ours())
    objects_.abandon(name_, {Errc::kUnavailable, "its client did not send all of it; send it again"});
}

// The key may have been deleted meanwhile, and be another's upload by now.
bool ObjectUpload::is_ours() const {
  const auto info = objects_.info(name_);
  return info && info->state == ObjectState::kPending && info->path == path_;
}

void ObjectUpload::append(std::string_view bytes) {
  if (failure_) return;
  if (memory_) return write(bytes);
  early_.append(bytes);
}

void ObjectUpload::on_memory(Result<UniqueFd> memory) {
  if (memory) {
    memory_ = *std::move(memory);
    if (const auto info = objects_.info(name_)) path_ = info->path;
    write(early_);
  } else {
    failure_ = memory.error();
  }
  early_ = std::string();
  tell_room();
  if (done_) seal();
}

void ObjectUpload::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(memory_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      failure_ = Error{Errc::kResourceExhausted, errno_error(errno, "write object '" + name_.key + "'").message};
      memory_ = UniqueFd();
      if (is_ours()) objects_.abandon(name_, *failure_);
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void ObjectUpload::finish(ObjectStore::Callback<ObjectInfo> done) {
  done_ = std::move(done);
  if (memory_ || failure_) seal();
}

void ObjectUpload::seal() {
  const auto done = std::exchange(done_, nullptr);
  if (failure_) return done(fail(*failure_));
  if (!is_ours()) return done(fail(Errc::kNotFound, "object '{}' was deleted while it was sent", name_.key));
  memory_ = UniqueFd();  // who seals an object that is open for writing gets a copy of it
  objects_.seal(name_, done);
}

}  // namespace fairlead
