// ObjectStore over files: names, references before objects, waiters and lifetimes. The bytes are ObjectContents'.
#include "store/object_store.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <map>
#include <set>

#include "base/check.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "model/kernel_task.h"
#include "model/tenant.h"
#include "store/object_contents.h"

namespace fairlead {
namespace {

using store::ContentId;
using store::ObjectContents;
using store::ObjectFiles;
using store::ObjectLedger;
using store::ObjectRecord;

constexpr std::chrono::minutes kMaxSleep{1};
constexpr std::size_t kMaxFailures = 10'000;  // objects that failed and are remembered for their readers

Status validate_name(const ObjectName& name) {
  if (Status valid = validate_tenant(name.tenant); !valid) return valid;
  return validate_object_key(name.key);
}

std::string text_of(const ObjectName& name) {
  return fmt::format("object '{}' of tenant '{}'", name.key, name.tenant);
}

Error about(const ObjectName& name, Error error) {
  error.message = text_of(name) + ": " + error.message;
  return error;
}

tl::unexpected<Error> no_such(const ObjectName& name) {
  return fail(Errc::kNotFound, "there is no {}", text_of(name));
}

class FileObjectStore final : public ObjectStore {
 public:
  FileObjectStore(boost::asio::io_context& io, ObjectStoreOptions options, ObjectFiles files)
      : io_(io),
        options_(std::move(options)),
        expiry_timer_(io),
        contents_(io, std::move(files), {options_.memory_limit, options_.spill_limit, options_.tenant_quota}) {}
  ~FileObjectStore() override {
    if (entries_.empty()) contents_.files().remove_memory_dir();
  }

  Status recover();

  void create(const ObjectName& name, Bytes bytes, std::optional<Duration> lifetime, Callback<UniqueFd> done) override;
  void seal(const ObjectName& name, Callback<ObjectInfo> done) override;
  void abandon(const ObjectName& name, Error why) override;
  void put(const ObjectName& name, std::string bytes, std::optional<Duration> lifetime,
           Callback<ObjectInfo> done) override;
  Status promise(const ObjectName& name, Bytes bytes, Fetch fetch, std::function<void()> gone) override;
  Status expect(const ObjectName& name, Bytes bytes) override;
  Status reserve(const ObjectName& name) override;
  void release(const ObjectName& name, Error why) override;
  WatchId watch(const ObjectName& name, std::function<void(Status)> done) override;
  void unwatch(WatchId watch) override;
  void open_object(const ObjectName& name, Duration patience, Callback<OpenObject> done) override;
  Result<ObjectInfo> info(const ObjectName& name) const override;
  std::vector<ObjectInfo> list(const std::string& tenant, const std::string& prefix, const std::string& after,
                               std::size_t limit) const override;
  Status remove(const ObjectName& name) override;
  void locate(const ObjectName& name, Callback<ObjectInfo> done) override;
  void remove_everywhere(const ObjectName& name, std::function<void(Status)> done) override;
  Result<std::string> content_dir(const std::string& tenant) override {
    if (Status valid = validate_tenant(tenant); !valid) return fail(valid.error());
    return contents_.files().make_content_dir(tenant);
  }
  Usage usage() const override;

 private:
  enum class Phase {
    kExpected,
    kAsking,     // for memory
    kWriting,    // by the client that created it
    kFinishing,  // written, hashed
    kPromised,
    kFetching,
    kKept,
    kFailed,
  };
  struct Waiter {
    std::uint64_t ticket = 0;
    Callback<OpenObject> done;
    std::shared_ptr<boost::asio::steady_timer> patience;  // shared with its handler; goes with the waiter
  };
  struct Entry {
    std::uint64_t serial = 0;  // tells it from another object that had this name
    Phase phase = Phase::kExpected;
    bool expected = false;  // stays as a reference when writing it does not succeed
    bool reserved = false;  // stays one when it is abandoned, too
    ObjectInfo info;
    ObjectContents::Id bytes = 0;  // has_bytes()
    store::QuotaClaim claim;       // for bytes that are not here yet
    Fetch fetch;
    std::function<void()> gone;  // of who promised it
    Error failure;
    std::vector<Waiter> waiters;
    std::optional<std::int64_t> ends_ms;  // in expiries_
  };
  static bool has_bytes(Phase phase) {
    return phase == Phase::kAsking || phase == Phase::kWriting || phase == Phase::kFinishing ||
           phase == Phase::kFetching;
  }
  using Entries = std::map<ObjectName, Entry>;

  // An entry as it was when something was begun for it; null when that has gone since.
  struct Handle {
    ObjectName name;
    std::uint64_t serial = 0;
  };
  Entry* find(const Handle& handle);
  static Handle handle_of(const Entry& entry) { return {entry.info.name, entry.serial}; }
  static ContentId content_of(const Entry& entry) { return {entry.info.name.tenant, entry.info.content}; }

  template <typename T>
  void answer(Callback<T> done, Result<T> result);

  Result<Entry*> claim(const ObjectName& name);  // a free key, or one that is expected
  template <typename T>
  Entry* admitted(const Handle& handle, const Status& granted, const Callback<T>& done);
  void ask(Entry& entry, Bytes bytes, std::optional<Duration> lifetime, ObjectContents::Writer writer,
           std::function<void(const Handle&, Status)> granted);
  void finish_with(const Handle& handle, const Result<std::string>& digest, const Callback<ObjectInfo>& done);
  Status keep(Entry& entry, const std::string& digest);
  void give_up(Entry& entry, const Error& why, bool cancel);
  void set_failed(Entry& entry, Error why);

  void start_fetch(Entry& entry);
  void on_fetch_memory(const Handle& handle, Result<UniqueFd> memory);
  void on_fetched(const Handle& handle, const Status& status);
  void put_off_fetch(Entry& entry, const Error& why);
  void tell_gone(Entry& entry);

  void wait(Entry& entry, Duration patience, Callback<OpenObject> done);
  void on_patience_over(const ObjectName& name, std::uint64_t ticket);
  void answer_waiters(Entry& entry, const Status& status);
  void open_kept(Entry& entry, Callback<OpenObject> done);

  struct Watcher {
    ObjectName name;
    std::function<void(Status)> done;
  };
  void tell_watchers(const ObjectName& name, const Status& status);
  void call_watcher(WatchId watch, Status status);

  ObjectInfo info_of(const Entry& entry) const;
  void set_expiry(Entry& entry, std::optional<std::int64_t> at_ms);
  void arm_expiry();
  void expire();
  void restore(const ObjectRecord& record);

  boost::asio::io_context& io_;
  const ObjectStoreOptions options_;
  Entries entries_;
  std::uint64_t last_serial_ = 0;
  std::map<WatchId, Watcher> watchers_;
  std::map<ObjectName, std::vector<WatchId>> watched_;
  std::deque<Handle> failures_;                             // the oldest first
  std::set<std::pair<std::int64_t, ObjectName>> expiries_;  // ms since 1970
  boost::asio::steady_timer expiry_timer_;
  Lifetime life_;
  ObjectContents contents_;
};

template <typename T>
void FileObjectStore::answer(Callback<T> done, Result<T> result) {
  boost::asio::post(io_, [life = life_.watch(), done = std::move(done), result = std::move(result)]() mutable {
    if (!life.ended() && done) done(std::move(result));
  });
}

FileObjectStore::Entry* FileObjectStore::find(const Handle& handle) {
  const auto it = entries_.find(handle.name);
  return it != entries_.end() && it->second.serial == handle.serial ? &it->second : nullptr;
}

// ---- writing

Result<FileObjectStore::Entry*> FileObjectStore::claim(const ObjectName& name) {
  if (Status valid = validate_name(name); !valid) return fail(valid.error());
  const auto it = entries_.find(name);
  if (it != entries_.end() && it->second.phase == Phase::kExpected) return &it->second;
  if (it != entries_.end() && it->second.phase != Phase::kFailed) {
    return fail(Errc::kAlreadyExists, "{} exists ({}); objects do not change: delete it, or take another key",
                text_of(name), object_state_name(info_of(it->second).state));
  }
  Entry& entry = entries_[name];
  entry = Entry{.serial = ++last_serial_};
  entry.info.name = name;
  entry.info.created_ms = entry.info.last_used_ms = options_.now_ms();
  return &entry;
}

void FileObjectStore::ask(Entry& entry, Bytes bytes, std::optional<Duration> lifetime, ObjectContents::Writer writer,
                          std::function<void(const Handle&, Status)> granted) {
  entry.phase = Phase::kAsking;
  entry.claim = {};
  entry.info.bytes = bytes;
  entry.info.expires_ms.reset();
  if (lifetime) {
    entry.info.expires_ms =
        options_.now_ms() + std::chrono::duration_cast<std::chrono::milliseconds>(*lifetime).count();
  }
  entry.bytes = contents_.ask(
      entry.info.name.tenant, bytes, writer,
      [handle = handle_of(entry), granted = std::move(granted)](Status status) { granted(handle, std::move(status)); });
}

void FileObjectStore::create(const ObjectName& name, Bytes bytes, std::optional<Duration> lifetime,
                             Callback<UniqueFd> done) {
  const auto entry = claim(name);
  if (!entry) return answer(std::move(done), Result<UniqueFd>(fail(entry.error())));
  const auto reserved = [this, done](const Handle& handle, Result<UniqueFd> fd) {
    Entry* found = find(handle);
    if (found == nullptr)
      return done(fail(Errc::kNotFound, "{} was deleted or abandoned meanwhile", text_of(handle.name)));
    if (!fd) {
      const Error why = about(handle.name, fd.error());
      give_up(*found, why, /*cancel=*/true);
      return done(fail(why));
    }
    found->phase = Phase::kWriting;
    const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(options_.write_limit).count();
    set_expiry(*found, options_.now_ms() + limit);
    done(std::move(fd));
  };
  ask(**entry, bytes, lifetime, ObjectContents::Writer::kClient,
      [this, bytes, done, reserved](const Handle& handle, const Status& granted) {
        Entry* found = admitted(handle, granted, done);
        if (found == nullptr) return;
        contents_.reserve(found->bytes, bytes,
                          [handle, reserved](Result<UniqueFd> fd) { reserved(handle, std::move(fd)); });
      });
}

void FileObjectStore::put(const ObjectName& name, std::string bytes, std::optional<Duration> lifetime,
                          Callback<ObjectInfo> done) {
  const auto entry = claim(name);
  if (!entry) return answer(std::move(done), Result<ObjectInfo>(fail(entry.error())));
  const Bytes size(static_cast<std::int64_t>(bytes.size()));
  // Shared: a std::function must be copyable, the bytes must not be copied.
  auto shared = std::make_shared<std::string>(std::move(bytes));
  ask(**entry, size, lifetime, ObjectContents::Writer::kStore,
      [this, shared, done](const Handle& handle, const Status& granted) {
        Entry* found = admitted(handle, granted, done);
        if (found == nullptr) return;
        found->phase = Phase::kFinishing;
        contents_.write(found->bytes, std::move(*shared),
                        [this, handle, done](const Result<std::string>& digest) { finish_with(handle, digest, done); });
      });
}

void FileObjectStore::seal(const ObjectName& name, Callback<ObjectInfo> done) {
  const auto it = entries_.find(name);
  if (it == entries_.end()) return answer(std::move(done), Result<ObjectInfo>(no_such(name)));
  Entry& entry = it->second;
  if (entry.phase != Phase::kWriting) {
    return answer(std::move(done),
                  Result<ObjectInfo>(fail(Errc::kConflict, "{} is {}: only one that was created can be sealed",
                                          text_of(name), object_state_name(info_of(entry).state))));
  }
  entry.phase = Phase::kFinishing;
  set_expiry(entry, std::nullopt);
  contents_.written_by_client(entry.bytes);
  contents_.finish(entry.bytes, entry.info.bytes,
                   [this, handle = handle_of(entry), done = std::move(done)](const Result<std::string>& digest) {
                     finish_with(handle, digest, done);
                   });
}

template <typename T>
FileObjectStore::Entry* FileObjectStore::admitted(const Handle& handle, const Status& granted,
                                                  const Callback<T>& done) {
  Entry* entry = find(handle);
  if (entry == nullptr) {
    done(fail(Errc::kNotFound, "{} was deleted or abandoned meanwhile", text_of(handle.name)));
  } else if (!granted) {
    const Error why = about(handle.name, granted.error());
    give_up(*entry, why, /*cancel=*/false);
    done(fail(why));
  }
  return granted ? entry : nullptr;
}

void FileObjectStore::finish_with(const Handle& handle, const Result<std::string>& digest,
                                  const Callback<ObjectInfo>& done) {
  Entry* entry = find(handle);
  if (entry == nullptr) {
    return done(fail(Errc::kNotFound, "{} was deleted or abandoned meanwhile", text_of(handle.name)));
  }
  if (!digest) {
    const Error why = about(handle.name, digest.error());
    give_up(*entry, why, /*cancel=*/true);
    return done(fail(why));
  }
  if (Status kept = keep(*entry, *digest); !kept) {
    const Error why = about(handle.name, kept.error());
    give_up(*entry, why, /*cancel=*/false);
    return done(fail(why));
  }
  answer_waiters(*entry, {});
  done(info_of(*entry));
}

// From here on the object survives this process.
Status FileObjectStore::keep(Entry& entry, const std::string& digest) {
  ObjectInfo& info = entry.info;
  const ContentId content{info.name.tenant, digest};
  if (Status kept = contents_.keep(entry.bytes, content, info.bytes); !kept) return kept;
  const ObjectRecord record{info.name, digest, info.bytes, info.created_ms, info.expires_ms};
  if (Status recorded = contents_.files().put_record(record); !recorded) {
    contents_.release(content);
    return recorded;
  }
  entry.phase = Phase::kKept;
  entry.fetch = nullptr;
  entry.reserved = false;
  info.content = digest;
  set_expiry(entry, info.expires_ms);
  tell_watchers(info.name, {});
  return {};
}

// What was begun for the object did not succeed. A reference stays one; else nobody hears of the key again.
void FileObjectStore::give_up(Entry& entry, const Error& why, bool cancel) {
  if (cancel) contents_.cancel(entry.bytes);
  set_expiry(entry, std::nullopt);
  if (entry.fetch) return put_off_fetch(entry, why);
  if (entry.expected || entry.reserved) {
    entry.phase = Phase::kExpected;
    entry.info.bytes = Bytes(0);
    return;
  }
  answer_waiters(entry, fail(why));
  entries_.erase(entry.info.name);
}

// ---- references before objects

Status FileObjectStore::expect(const ObjectName& name, Bytes bytes) {
  if (Status valid = validate_name(name); !valid) return valid;
  auto room = contents_.claim(name.tenant, bytes);
  if (!room) return fail(about(name, room.error()));
  const auto claimed = claim(name);
  if (!claimed) return fail(claimed.error());
  Entry& entry = **claimed;
  if (entry.expected) return fail(Errc::kAlreadyExists, "{} is expected already", text_of(name));
  entry.claim = *std::move(room);
  entry.expected = true;
  return {};
}

Status FileObjectStore::promise(const ObjectName& name, Bytes bytes, Fetch fetch, std::function<void()> gone) {
  const auto claimed = claim(name);
  if (!claimed) return fail(claimed.error());
  Entry& entry = **claimed;
  if (entry.claim.bytes() != bytes) {
    entry.claim = {};
    auto room = contents_.claim(name.tenant, bytes);
    if (!room) return fail(about(name, room.error()));
    entry.claim = *std::move(room);
  }
  entry.phase = Phase::kPromised;
  entry.info.bytes = bytes;
  entry.fetch = std::move(fetch);
  entry.gone = std::move(gone);
  entry.reserved = false;
  for (Waiter& waiter : entry.waiters) waiter.patience.reset();
  tell_watchers(name, {});
  if (!entry.waiters.empty()) start_fetch(entry);
  return {};
}

void FileObjectStore::start_fetch(Entry& entry) {
  entry.phase = Phase::kFetching;
  entry.claim = {};
  entry.bytes = contents_.ask(
      entry.info.name.tenant, entry.info.bytes, ObjectContents::Writer::kStore,
      [this, handle = handle_of(entry)](const Status& granted) {
        Entry* found = find(handle);
        if (found == nullptr) return;
        if (!granted) return put_off_fetch(*found, about(handle.name, granted.error()));
        contents_.reserve(found->bytes, found->info.bytes,
                          [this, handle](Result<UniqueFd> memory) { on_fetch_memory(handle, std::move(memory)); });
      });
}

// The object itself is well: it stays on its device, and the next reader may have more luck.
void FileObjectStore::tell_gone(Entry& entry) {
  if (!entry.gone) return;
  answer<void>([gone = std::exchange(entry.gone, nullptr)](const Status&) { gone(); }, {});
}

void FileObjectStore::put_off_fetch(Entry& entry, const Error& why) {
  entry.phase = Phase::kPromised;
  if (auto room = contents_.claim(entry.info.name.tenant, entry.info.bytes)) entry.claim = *std::move(room);
  answer_waiters(entry, fail(why));
}

void FileObjectStore::on_fetch_memory(const Handle& handle, Result<UniqueFd> memory) {
  Entry* entry = find(handle);
  if (entry == nullptr) return;
  if (!memory) {
    contents_.cancel(entry->bytes);
    return put_off_fetch(*entry, about(handle.name, memory.error()));
  }
  const auto fetch = entry->fetch;  // may remove the entry
  fetch(*std::move(memory), life_.guarded([this, handle](const Status& status) { on_fetched(handle, status); }));
}

void FileObjectStore::on_fetched(const Handle& handle, const Status& status) {
  Entry* entry = find(handle);
  if (entry == nullptr || entry->phase != Phase::kFetching) return;
  if (!status) return abandon(handle.name, status.error());
  contents_.finish(entry->bytes, entry->info.bytes, [this, handle](const Result<std::string>& digest) {
    finish_with(handle, digest, [](const Result<ObjectInfo>&) {});
  });
}

void FileObjectStore::abandon(const ObjectName& name, Error why) {
  const auto it = entries_.find(name);
  if (it == entries_.end() || it->second.phase == Phase::kKept || it->second.phase == Phase::kFailed) return;
  Entry& entry = it->second;
  if (has_bytes(entry.phase)) contents_.cancel(entry.bytes);
  if (!entry.reserved) return set_failed(entry, about(name, std::move(why)));
  set_expiry(entry, std::nullopt);
  entry.serial = ++last_serial_;  // what was begun for it concerns nobody any more
  entry.claim = {};
  entry.phase = Phase::kExpected;
  entry.expected = false;
  entry.info.bytes = Bytes(0);
}

// ---- reservations and watching

Status FileObjectStore::reserve(const ObjectName& name) {
  const auto entry = claim(name);
  if (!entry) return fail(entry.error());
  if ((*entry)->reserved || (*entry)->expected) {
    return fail(Errc::kAlreadyExists, "{} is about to be written by somebody else", text_of(name));
  }
  (*entry)->reserved = true;
  return {};
}

void FileObjectStore::release(const ObjectName& name, Error why) {
  const auto it = entries_.find(name);
  if (it == entries_.end() || !it->second.reserved) return;
  it->second.reserved = false;
  // Somebody writes it at this moment: it is theirs now.
  if (it->second.phase != Phase::kExpected || it->second.expected) return;
  set_failed(it->second, about(name, std::move(why)));
}

ObjectStore::WatchId FileObjectStore::watch(const ObjectName& name, std::function<void(Status)> done) {
  const WatchId watch = ++last_serial_;
  watchers_[watch] = {name, std::move(done)};
  const auto known = info(name);
  if (known && known->state != ObjectState::kPending && known->state != ObjectState::kFailed) {
    call_watcher(watch, {});
  } else {
    watched_[name].push_back(watch);
  }
  return watch;
}

void FileObjectStore::unwatch(WatchId watch) {
  const auto watcher = watchers_.find(watch);
  if (watcher == watchers_.end()) return;
  if (const auto it = watched_.find(watcher->second.name); it != watched_.end()) {
    std::erase(it->second, watch);
    if (it->second.empty()) watched_.erase(it);
  }
  watchers_.erase(watcher);
}

void FileObjectStore::tell_watchers(const ObjectName& name, const Status& status) {
  const auto it = watched_.find(name);
  if (it == watched_.end()) return;
  const std::vector<WatchId> watches = std::move(it->second);
  watched_.erase(it);
  for (const WatchId watch : watches) call_watcher(watch, status);
}

void FileObjectStore::call_watcher(WatchId watch, Status status) {
  answer<void>(
      [this, watch](const Status& told) {
        const auto node = watchers_.extract(watch);
        if (!node.empty()) node.mapped().done(told);
      },
      std::move(status));
}

void FileObjectStore::set_failed(Entry& entry, Error why) {
  set_expiry(entry, std::nullopt);
  entry.serial = ++last_serial_;  // what was begun for it concerns nobody any more
  entry.phase = Phase::kFailed;
  entry.fetch = nullptr;
  tell_gone(entry);
  entry.claim = {};
  entry.failure = why;
  entry.reserved = false;
  failures_.push_back(handle_of(entry));
  tell_watchers(entry.info.name, fail(why));
  answer_waiters(entry, fail(std::move(why)));
  if (failures_.size() <= kMaxFailures) return;
  const Entry* oldest = find(failures_.front());
  if (oldest != nullptr && oldest->phase == Phase::kFailed) entries_.erase(failures_.front().name);
  failures_.pop_front();
}

// ---- reading

void FileObjectStore::open_object(const ObjectName& name, Duration patience, Callback<OpenObject> done) {
  const auto it = entries_.find(name);
  if (it == entries_.end()) return answer(std::move(done), Result<OpenObject>(no_such(name)));
  Entry& entry = it->second;
  switch (entry.phase) {
    case Phase::kFailed: return answer(std::move(done), Result<OpenObject>(fail(entry.failure)));
    case Phase::kKept: return open_kept(entry, std::move(done));
    case Phase::kPromised:
      entry.waiters.push_back({.ticket = ++last_serial_, .done = std::move(done)});
      return start_fetch(entry);
    case Phase::kFetching: entry.waiters.push_back({.ticket = ++last_serial_, .done = std::move(done)}); return;
    default: return wait(entry, patience, std::move(done));
  }
}

void FileObjectStore::open_kept(Entry& entry, Callback<OpenObject> done) {
  entry.info.last_used_ms = options_.now_ms();
  contents_.open(content_of(entry), [this, handle = handle_of(entry), done = std::move(done)](Result<UniqueFd> memory) {
    const Entry* found = find(handle);
    if (!memory) return answer(done, Result<OpenObject>(fail(about(handle.name, memory.error()))));
    if (found == nullptr) return answer(done, Result<OpenObject>(no_such(handle.name)));
    answer(done, Result<OpenObject>(OpenObject{info_of(*found), *std::move(memory)}));
  });
}

void FileObjectStore::wait(Entry& entry, Duration patience, Callback<OpenObject> done) {
  Waiter waiter{.ticket = ++last_serial_, .done = std::move(done)};
  waiter.patience = std::make_shared<boost::asio::steady_timer>(io_, patience);
  waiter.patience->async_wait([this, name = entry.info.name, ticket = waiter.ticket](boost::system::error_code code) {
    if (!code) on_patience_over(name, ticket);
  });
  entry.waiters.push_back(std::move(waiter));
}

void FileObjectStore::on_patience_over(const ObjectName& name, std::uint64_t ticket) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  const auto it = std::find_if(entry.waiters.begin(), entry.waiters.end(),
                               [ticket](const Waiter& waiter) { return waiter.ticket == ticket; });
  // Sealed or promised a moment ago.
  if (it == entry.waiters.end() || it->patience == nullptr) return;
  const auto done = std::move(it->done);
  entry.waiters.erase(it);
  done(fail(Errc::kDeadlineExceeded, "{} is still {}: wait longer, or ask again", text_of(name),
            object_state_name(info_of(entry).state)));
}

void FileObjectStore::answer_waiters(Entry& entry, const Status& status) {
  for (Waiter& waiter : std::exchange(entry.waiters, {})) {
    if (status)
      open_kept(entry, std::move(waiter.done));
    else
      answer(std::move(waiter.done), Result<OpenObject>(fail(status.error())));
  }
}

// ---- looking, removing

ObjectInfo FileObjectStore::info_of(const Entry& entry) const {
  ObjectInfo info = entry.info;
  info.serial = entry.serial;
  switch (entry.phase) {
    case Phase::kPromised:
    case Phase::kFetching: info.state = ObjectState::kOnDevice; break;
    case Phase::kFailed:
      info.state = ObjectState::kFailed;
      info.failure = entry.failure.message;
      break;
    case Phase::kKept:
      info.state = contents_.in_memory(content_of(entry)) ? ObjectState::kSealed : ObjectState::kSpilled;
      if (info.state == ObjectState::kSealed) info.path = contents_.files().content_path(content_of(entry));
      break;
    case Phase::kWriting: info.path = contents_.files().pending_path(entry.bytes); [[fallthrough]];
    default: info.state = ObjectState::kPending;
  }
  return info;
}

Result<ObjectInfo> FileObjectStore::info(const ObjectName& name) const {
  const auto it = entries_.find(name);
  if (it == entries_.end()) return no_such(name);
  return info_of(it->second);
}

std::vector<ObjectInfo> FileObjectStore::list(const std::string& tenant, const std::string& prefix,
                                              const std::string& after, std::size_t limit) const {
  std::vector<ObjectInfo> found;
  auto it = after < prefix ? entries_.lower_bound({tenant, prefix}) : entries_.upper_bound({tenant, after});
  for (; it != entries_.end() && found.size() < limit; ++it) {
    if (it->first.tenant != tenant || !it->first.key.starts_with(prefix)) break;
    found.push_back(info_of(it->second));
  }
  return found;
}

Status FileObjectStore::remove(const ObjectName& name) {
  const auto it = entries_.find(name);
  if (it == entries_.end()) return no_such(name);
  Entry& entry = it->second;
  contents_.files().remove_record(name);
  if (has_bytes(entry.phase)) contents_.cancel(entry.bytes);
  if (entry.phase == Phase::kKept) contents_.release(content_of(entry));
  set_expiry(entry, std::nullopt);
  tell_gone(entry);
  answer_waiters(entry, fail(Errc::kNotFound, "{} was deleted", text_of(name)));
  entries_.erase(it);
  return {};
}

void FileObjectStore::locate(const ObjectName& name, Callback<ObjectInfo> done) {
  answer(std::move(done), info(name));
}

void FileObjectStore::remove_everywhere(const ObjectName& name, std::function<void(Status)> done) {
  boost::asio::post(io_, [life = life_.watch(), done = std::move(done), removed = remove(name)] {
    if (!life.ended()) done(removed);
  });
}

ObjectStore::Usage FileObjectStore::usage() const {
  Usage usage{.memory = contents_.ledger().memory_used(),
              .memory_limit = options_.memory_limit,
              .spilled = contents_.ledger().disk_used(),
              .spill_limit = options_.spill_limit,
              .spills = contents_.spills(),
              .reads_back = contents_.reads_back()};
  for (const auto& [name, entry] : entries_) {
    if (entry.phase != Phase::kFailed) ++usage.objects;
    if (entry.phase == Phase::kPromised || entry.phase == Phase::kFetching) usage.on_device += entry.info.bytes;
  }
  return usage;
}

// ---- lifetimes

void FileObjectStore::set_expiry(Entry& entry, std::optional<std::int64_t> at_ms) {
  if (entry.ends_ms) expiries_.erase({*entry.ends_ms, entry.info.name});
  entry.ends_ms = at_ms;
  if (!at_ms) return;
  expiries_.emplace(*at_ms, entry.info.name);
  arm_expiry();
}

void FileObjectStore::arm_expiry() {
  if (expiries_.empty()) return;
  const std::int64_t left = std::max<std::int64_t>(0, expiries_.begin()->first - options_.now_ms());
  // Not for longer than a minute: lifetimes are by the wall clock, which may be set.
  expiry_timer_.expires_after(std::min<std::chrono::nanoseconds>(std::chrono::milliseconds(left), kMaxSleep));
  expiry_timer_.async_wait([this](boost::system::error_code code) {
    if (!code) expire();
  });
}

void FileObjectStore::expire() {
  const std::int64_t now = options_.now_ms();
  while (!expiries_.empty() && expiries_.begin()->first <= now) {
    const ObjectName name = expiries_.begin()->second;
    if (entries_.at(name).phase == Phase::kWriting) {
      abandon(name, {Errc::kDeadlineExceeded, "it was created and not sealed in time"});
    } else {
      (void)remove(name).has_value();
    }
  }
  arm_expiry();
}

// ---- start

Status FileObjectStore::recover() {
  auto records = contents_.files().load_records();
  if (!records) return fail(records.error());
  std::sort(records->begin(), records->end(),
            [](const ObjectRecord& a, const ObjectRecord& b) { return a.created_ms < b.created_ms; });
  for (const ObjectRecord& record : *records) restore(record);
  contents_.remove_unknown();
  if (!records->empty()) {
    spdlog::info("found {} objects, {} bytes in memory and {} on disk", entries_.size(),
                 contents_.ledger().memory_used().count(), contents_.ledger().disk_used().count());
  }
  return {};
}

void FileObjectStore::restore(const ObjectRecord& record) {
  const std::int64_t now = options_.now_ms();
  if (record.expires_ms && *record.expires_ms <= now) return contents_.files().remove_record(record.name);
  Entry& entry = entries_[record.name];
  entry.serial = ++last_serial_;
  entry.info = {.name = record.name,
                .bytes = record.bytes,
                .content = record.content,
                .created_ms = record.created_ms,
                .last_used_ms = record.created_ms,
                .expires_ms = record.expires_ms};
  if (Status adopted = contents_.adopt(content_of(entry), record.bytes); !adopted) {
    spdlog::error("{} is lost: {}", text_of(record.name), adopted.error().message);
    return set_failed(entry, about(record.name, adopted.error()));
  }
  entry.phase = Phase::kKept;
  set_expiry(entry, record.expires_ms);
}

// Memory that is not there cannot be promised: a container's /dev/shm has 64 MiB unless told otherwise.
Status fit_memory(const ObjectFiles& files, ObjectStoreOptions& options) {
  const Result<Bytes> size = files.memory_size();
  if (!size) return fail(size.error());
  const Bytes most(size->count() / 8 * 7);  // others use it too
  if (options.memory_limit <= most) return {};
  spdlog::warn("{} has {:.0f} MiB: objects get {:.0f} MiB of memory instead of {:.0f}", options.memory_dir, size->mib(),
               most.mib(), options.memory_limit.mib());
  options.memory_limit = most;
  return {};
}

}  // namespace

std::string_view object_state_name(ObjectState state) {
  switch (state) {
    case ObjectState::kPending: return "pending";
    case ObjectState::kOnDevice: return "on-device";
    case ObjectState::kSealed: return "sealed";
    case ObjectState::kSpilled: return "spilled";
    case ObjectState::kFailed: return "failed";
  }
  return "unknown";
}

std::string default_object_memory_dir(const std::string& state_dir) {
  constexpr std::size_t kBytes = 16;
  return "/dev/shm/fairlead-" + to_hex(store::digest_of(state_dir).substr(0, kBytes));
}

Result<std::unique_ptr<ObjectStore>> ObjectStore::open(boost::asio::io_context& io, ObjectStoreOptions options) {
  auto files = ObjectFiles::open(options.memory_dir, options.spill_dir);
  if (!files) return fail(files.error());
  if (Status fits = fit_memory(*files, options); !fits) return fail(fits.error());
  auto opened = std::make_unique<FileObjectStore>(io, std::move(options), *std::move(files));
  if (Status recovered = opened->recover(); !recovered) return fail(recovered.error());
  return opened;
}

}  // namespace fairlead
