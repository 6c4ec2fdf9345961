#include "store/cluster_object_store.h"

#include <algorithm>
#include <iterator>

#include "base/clock.h"
#include "model/kernel_task.h"

namespace fairlead {

// What has failed here may be elsewhere; where it is not, this node says why it has failed. What is no name is nowhere.
bool ClusterObjectStore::is_to_be_asked_for(const ObjectName& name) const {
  if (elsewhere_ == nullptr || !validate_object_key(name.key)) return false;
  const auto info = here_->info(name);
  return !info || info->state == ObjectState::kFailed;
}

void ClusterObjectStore::open_object(const ObjectName& name, Duration patience, Callback<OpenObject> done) {
  const auto fetching = fetching_.find(name);
  const Instant until = monotonic_now() + patience;
  if (fetching != fetching_.end()) return fetching->second.push_back({until, std::move(done)});
  if (!is_to_be_asked_for(name)) return here_->open_object(name, patience, std::move(done));
  fetching_[name].push_back({until, std::move(done)});
  fetch(name);
}

void ClusterObjectStore::fetch(const ObjectName& name) {
  Instant last{};
  for (const Reader& reader : fetching_.at(name)) last = std::max(last, reader.until);
  const Duration patience = std::clamp<Duration>(last - monotonic_now(), Duration(0), kFetchSlice);
  elsewhere_->fetch(name, patience, [this, name](const Status& status) { fetched(name, status); });
}

// It may have been written here meanwhile, whatever became of the copy.
void ClusterObjectStore::fetched(const ObjectName& name, const Status& status) {
  const bool is_here = status || here_->info(name);
  if (!is_here && status.error().code == Errc::kDeadlineExceeded) return go_on_waiting(name, status.error());
  auto readers = std::move(fetching_.extract(name).mapped());
  for (Reader& reader : readers) {
    if (is_here) {
      here_->open_object(name, std::max<Duration>(reader.until - monotonic_now(), Duration(0)), std::move(reader.done));
    } else if (reader.done) {
      reader.done(fail(status.error()));
    }
  }
}

void ClusterObjectStore::go_on_waiting(const ObjectName& name, const Error& why) {
  std::vector<Reader>& readers = fetching_.at(name);
  const Instant now = monotonic_now();
  const auto over = std::ranges::partition(readers, [now](const Reader& reader) { return reader.until > now; });
  std::vector<Reader> ended(std::make_move_iterator(over.begin()), std::make_move_iterator(over.end()));
  readers.erase(over.begin(), over.end());
  readers.empty() || elsewhere_ == nullptr ? void(fetching_.erase(name)) : fetch(name);
  for (Reader& reader : ended) {
    if (reader.done) reader.done(fail(why));
  }
}

ObjectStore::WatchId ClusterObjectStore::watch(const ObjectName& name, std::function<void(Status)> done) {
  const WatchId id = here_->watch(name, std::move(done));
  if (!is_to_be_asked_for(name) || fetching_.contains(name)) return id;
  fetching_[name];
  elsewhere_->fetch(name, Duration(0), [this, name](const Status& status) { fetched(name, status); });
  return id;
}

void ClusterObjectStore::locate(const ObjectName& name, Callback<ObjectInfo> done) {
  if (!is_to_be_asked_for(name)) return here_->locate(name, std::move(done));
  elsewhere_->find(name, [this, name, done = std::move(done)](Result<ObjectInfo> found) {
    if (!found && here_->info(name)) return here_->locate(name, done);  // what has failed here, and why
    done(std::move(found));
  });
}

void ClusterObjectStore::remove_everywhere(const ObjectName& name, std::function<void(Status)> done) {
  if (elsewhere_ == nullptr || !validate_object_key(name.key)) return here_->remove_everywhere(name, std::move(done));
  const Status here = here_->remove(name);
  elsewhere_->remove(name, [here, done = std::move(done)](const Status& elsewhere) {
    const bool is_only_here = here && !elsewhere && elsewhere.error().code == Errc::kNotFound;
    done(is_only_here ? here : elsewhere);
  });
}

}  // namespace fairlead
