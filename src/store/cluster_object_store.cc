#include "store/cluster_object_store.h"

namespace fairlead {

// What has failed here may be elsewhere; where it is not, this node says why it has failed.
bool ClusterObjectStore::has(const ObjectName& name) const {
  const auto info = here_->info(name);
  return info && info->state != ObjectState::kFailed;
}

void ClusterObjectStore::open_object(const ObjectName& name, Duration patience, Callback<OpenObject> done) {
  const auto fetching = fetching_.find(name);
  if (fetching != fetching_.end()) return fetching->second.push_back({patience, std::move(done)});
  if (elsewhere_ == nullptr || has(name)) return here_->open_object(name, patience, std::move(done));
  fetching_[name].push_back({patience, std::move(done)});
  elsewhere_->fetch(name, patience, [this, name](const Status& status) { fetched(name, status); });
}

// It may have been written here meanwhile, whatever became of the copy.
void ClusterObjectStore::fetched(const ObjectName& name, const Status& status) {
  auto readers = std::move(fetching_.extract(name).mapped());
  const bool is_here = status || here_->info(name);
  for (Reader& reader : readers) {
    if (is_here) {
      here_->open_object(name, reader.patience, std::move(reader.done));
    } else if (reader.done) {
      reader.done(fail(status.error()));
    }
  }
}

ObjectStore::WatchId ClusterObjectStore::watch(const ObjectName& name, std::function<void(Status)> done) {
  const WatchId id = here_->watch(name, std::move(done));
  if (elsewhere_ == nullptr || has(name) || fetching_.contains(name)) return id;
  fetching_[name];
  elsewhere_->fetch(name, Duration(0), [this, name](const Status& status) { fetched(name, status); });
  return id;
}

void ClusterObjectStore::locate(const ObjectName& name, Callback<ObjectInfo> done) {
  if (elsewhere_ == nullptr || has(name)) return here_->locate(name, std::move(done));
  elsewhere_->find(name, std::move(done));
}

void ClusterObjectStore::remove_everywhere(const ObjectName& name, std::function<void(Status)> done) {
  if (elsewhere_ == nullptr) return here_->remove_everywhere(name, std::move(done));
  const Status here = here_->remove(name);
  elsewhere_->remove(name, [here, done = std::move(done)](const Status& elsewhere) { done(here ? here : elsewhere); });
}

}  // namespace fairlead
