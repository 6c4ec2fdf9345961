// A disk in memory for SQLite, in tests: a power cut leaves what was synced and of what was not any of its sectors of 512 bytes, so
// that writes are lost, torn, and overtake each other; and any call can be made to fail. Registered as SQLite's default VFS as long as it lives, so that what is tested opens its database as always.
//
//   disk.cut_after(17) ──> the 17th write, truncation or sync is the last before the cut ──> disk.restore(seed) ──> open again
//
// Where the gate is closed, the next transaction waits before it begins: what is submitted meanwhile becomes one, whatever the
// threads' turns are.
//
// What runs goes on after the cut, as a ghost: nothing of what it does reaches the disk that restore() gives.
//
// Threads: any; one connection at a time.
#pragma once

#include <sqlite3.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace fairlead::store {

class PowerCutDisk {
 public:
  PowerCutDisk() {
    vfs_ = *sqlite3_vfs_find(nullptr);
    vfs_.zName = "power-cut";
    vfs_.szOsFile = sizeof(File);
    vfs_.pAppData = this;
    vfs_.xOpen = open;
    vfs_.xDelete = remove;
    vfs_.xAccess = access;
    vfs_.xFullPathname = full_path;
    sqlite3_vfs_register(&vfs_, /*makeDflt=*/1);
  }
  ~PowerCutDisk() { sqlite3_vfs_unregister(&vfs_); }
  PowerCutDisk(const PowerCutDisk&) = delete;

  // Counted from now. `at_cut` runs at that moment, on the thread that writes.
  void cut_after(int calls, std::function<void()> at_cut) {
    const std::lock_guard lock(mutex_);
    calls_ = 0;
    cut_at_ = calls;
    at_cut_ = std::move(at_cut);
    cut_.reset();
  }
  // The call of that number, and all that follow it until heal(), if `for_good`, are IO errors.
  void fail_at(int call, bool for_good) {
    const std::lock_guard lock(mutex_);
    calls_ = 0;
    fail_at_ = call;
    fails_on_ = for_good;
  }
  void heal() {
    const std::lock_guard lock(mutex_);
    fail_at_ = 0;
  }
  int calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  bool is_cut() const {
    const std::lock_guard lock(mutex_);
    return cut_.has_value();
  }

  void close_gate() {
    const std::lock_guard lock(mutex_);
    gate_.closed = true;
  }
  // Until a transaction waits there. REQUIRES: it is closed, and one is to come
  void await_gate() {
    std::unique_lock lock(mutex_);
    gate_.changed.wait(lock, [&] { return gate_.waiting; });
  }
  void open_gate() {
    const std::lock_guard lock(mutex_);
    gate_.closed = gate_.waiting = false;
    gate_.changed.notify_all();
  }

  // An empty disk. REQUIRES: no file is open
  void clear() {
    const std::lock_guard lock(mutex_);
    files_.clear();
    memory_.clear();
  }

  // What the machine finds after the cut, or now if there was none. REQUIRES: no file is open
  void restore(unsigned seed) {
    const std::lock_guard lock(mutex_);
    if (cut_) files_ = *cut_;
    cut_.reset();
    cut_at_ = fail_at_ = 0;
    memory_.clear();
    std::mt19937 random(seed);
    for (auto& [name, data] : files_) {
      for (const Change& change : data.unsynced) apply_in_part(change, data.synced, random);
      data.current = data.synced;
      data.unsynced.clear();
    }
  }

 private:
  struct Change {
    std::size_t offset = 0;
    std::string bytes;
    bool truncates = false;
  };
  struct Data {
    std::string current, synced;
    std::vector<Change> unsynced;
  };
  struct File {
    sqlite3_file base;
    PowerCutDisk* disk;
    std::string* name;
  };

  static void apply(const Change& change, std::string& to) {
    if (change.truncates) return to.resize(change.offset);
    to.resize(std::max(to.size(), change.offset + change.bytes.size()));
    std::memcpy(to.data() + change.offset, change.bytes.data(), change.bytes.size());
  }

  // A write of several sectors is torn as often as it is lost or kept as a whole.
  static void apply_in_part(const Change& change, std::string& to, std::mt19937& random) {
    constexpr std::size_t kSector = 512;
    const unsigned fate = random() % 3;
    if (fate == 0) return;
    if (fate == 1 || change.truncates) return apply(change, to);
    for (std::size_t from = 0; from < change.bytes.size();) {
      const std::size_t until = std::min(change.bytes.size(), from + kSector - (change.offset + from) % kSector);
      if (random() % 2 == 0) apply({change.offset + from, change.bytes.substr(from, until - from)}, to);
      from = until;
    }
  }

  // Of a call that changes the disk.
  bool fails() {
    ++calls_;
    return fail_at_ > 0 && (calls_ == fail_at_ || (fails_on_ && calls_ > fail_at_));
  }
  void note_done() {
    if (cut_at_ == 0 || calls_ != cut_at_ || cut_) return;
    cut_ = files_;
    if (at_cut_) at_cut_();
  }
  int change(const std::string& name, Change change) {
    const std::lock_guard lock(mutex_);
    if (fails()) return SQLITE_IOERR_WRITE;
    Data& data = files_[name];
    apply(change, data.current);
    data.unsynced.push_back(std::move(change));
    note_done();
    return SQLITE_OK;
  }

  static File& of(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }
  static PowerCutDisk& of(sqlite3_vfs* vfs) { return *static_cast<PowerCutDisk*>(vfs->pAppData); }

  static int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
    PowerCutDisk& disk = of(vfs);
    const std::lock_guard lock(disk.mutex_);
    of(file).base.pMethods = &methods();
    of(file).disk = &disk;
    of(file).name = new std::string(name != nullptr ? name : "temporary-" + std::to_string(++disk.temporary_));
    disk.files_[*of(file).name];
    if (out_flags != nullptr) *out_flags = flags;
    return SQLITE_OK;
  }
  static int remove(sqlite3_vfs* vfs, const char* name, int) {
    PowerCutDisk& disk = of(vfs);
    const std::lock_guard lock(disk.mutex_);
    disk.files_.erase(name);
    return SQLITE_OK;
  }
  static int access(sqlite3_vfs* vfs, const char* name, int, int* out) {
    PowerCutDisk& disk = of(vfs);
    const std::lock_guard lock(disk.mutex_);
    *out = disk.files_.contains(name) ? 1 : 0;
    return SQLITE_OK;
  }
  static int full_path(sqlite3_vfs*, const char* name, int size, char* out) {
    sqlite3_snprintf(size, out, "%s", name);
    return SQLITE_OK;
  }

  static int close(sqlite3_file* file) {
    delete of(file).name;
    return SQLITE_OK;
  }
  static int read(sqlite3_file* file, void* out, int size, sqlite3_int64 offset) {
    PowerCutDisk& disk = *of(file).disk;
    const std::lock_guard lock(disk.mutex_);
    const std::string& current = disk.files_[*of(file).name].current;
    const auto at = std::min(static_cast<std::size_t>(offset), current.size());
    const std::size_t count = std::min(static_cast<std::size_t>(size), current.size() - at);
    std::memcpy(out, current.data() + at, count);
    std::memset(static_cast<char*>(out) + count, 0, static_cast<std::size_t>(size) - count);
    return count == static_cast<std::size_t>(size) ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
  }
  static int write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
    return of(file).disk->change(*of(file).name, {static_cast<std::size_t>(offset),
                                                  {static_cast<const char*>(bytes), static_cast<std::size_t>(size)}});
  }
  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    return of(file).disk->change(*of(file).name, {static_cast<std::size_t>(size), {}, true});
  }
  static int sync(sqlite3_file* file, int) {
    PowerCutDisk& disk = *of(file).disk;
    const std::lock_guard lock(disk.mutex_);
    if (disk.fails()) return SQLITE_IOERR_FSYNC;
    Data& data = disk.files_[*of(file).name];
    data.synced = data.current;
    data.unsynced.clear();
    disk.note_done();
    return SQLITE_OK;
  }
  static int size_of(sqlite3_file* file, sqlite3_int64* out) {
    PowerCutDisk& disk = *of(file).disk;
    const std::lock_guard lock(disk.mutex_);
    *out = static_cast<sqlite3_int64>(disk.files_[*of(file).name].current.size());
    return SQLITE_OK;
  }
  static int shm_map(sqlite3_file* file, int region, int size, int, void volatile** out) {
    PowerCutDisk& disk = *of(file).disk;
    const std::lock_guard lock(disk.mutex_);
    std::string& memory = disk.memory_[{*of(file).name, region}];
    if (memory.empty()) memory.resize(static_cast<std::size_t>(size));
    *out = memory.data();
    return SQLITE_OK;
  }
  static int shm_lock(sqlite3_file* file, int, int, int flags) {
    if ((flags & SQLITE_SHM_LOCK) == 0) return SQLITE_OK;
    PowerCutDisk& disk = *of(file).disk;
    std::unique_lock lock(disk.mutex_);
    if (!disk.gate_.closed) return SQLITE_OK;
    disk.gate_.waiting = true;
    disk.gate_.changed.notify_all();
    disk.gate_.changed.wait(lock, [&] { return !disk.gate_.closed; });
    return SQLITE_OK;
  }
  static int shm_unmap(sqlite3_file* file, int remove) {
    PowerCutDisk& disk = *of(file).disk;
    const std::lock_guard lock(disk.mutex_);
    if (remove != 0) disk.memory_.clear();
    return SQLITE_OK;
  }

  static const sqlite3_io_methods& methods() {
    static const sqlite3_io_methods kMethods = [] {
      sqlite3_io_methods all{};
      all.iVersion = 2;
      all.xClose = close;
      all.xRead = read;
      all.xWrite = write;
      all.xTruncate = truncate;
      all.xSync = sync;
      all.xFileSize = size_of;
      all.xLock = [](sqlite3_file*, int) { return SQLITE_OK; };
      all.xUnlock = [](sqlite3_file*, int) { return SQLITE_OK; };
      all.xCheckReservedLock = [](sqlite3_file*, int* out) { return *out = 0, SQLITE_OK; };
      all.xFileControl = [](sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; };
      all.xSectorSize = [](sqlite3_file*) { return 4096; };
      all.xDeviceCharacteristics = [](sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; };
      all.xShmMap = shm_map;
      all.xShmLock = shm_lock;
      all.xShmBarrier = [](sqlite3_file*) {};
      all.xShmUnmap = shm_unmap;
      return all;
    }();
    return kMethods;
  }

  struct Gate {
    bool closed = false, waiting = false;
    std::condition_variable changed;
  };

  mutable std::mutex mutex_;
  Gate gate_;
  sqlite3_vfs vfs_{};
  std::map<std::string, Data> files_;
  std::map<std::pair<std::string, int>, std::string> memory_;  // shared, of write-ahead logs
  int calls_ = 0, cut_at_ = 0, fail_at_ = 0, temporary_ = 0;
  bool fails_on_ = false;
  std::function<void()> at_cut_;
  std::optional<std::map<std::string, Data>> cut_;  // the disk at the cut
};

}  // namespace fairlead::store
