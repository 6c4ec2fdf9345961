// The files behind the object store. What is sealed survives kill -9: nothing has its final name before it is complete.
//
//   <memory>/pending/7                  being written
//   <memory>/content/acme/<digest>      sealed bytes of tenant acme, mode 0444
//   <memory>/boot                       the machine's boot id when a node last started here
//   <memory>/records/<hash of name>     one per sealed object: its name, and which content it is (JSON)
//   <spill>/acme/<digest>               bytes that were moved to disk
//   <spill>/.lock                       held by the node that spills there; no tenant's name has a dot
//
// Sealing is: pending file complete, digest, mode 0444, rename to content/, record under a temporary name, rename. A death
// between any two leaves files without a record, which the next start removes. Tenants have folders of their own, so that
// one can be shown to a sandbox without the others. Names are hashes: a key can name no other file.
//
// What this does not stop: the user that runs the node, and root, can change any file. A spilled file's digest is checked
// when it is read back; bytes in memory are trusted, as the node's own memory is. Where <memory> lies on a disk it may be there
// after the machine started anew, and nothing in it was synced: then its digests are checked at the node's start.
//
// Threads: no state but the paths; what is said to be slow is for the worker thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "store/object_store.h"
#include "store/state_lock.h"

namespace fairlead::store {

struct ObjectRecord {
  ObjectName name;
  std::string content;  // digest, 32 raw bytes
  Bytes bytes{0};
  std::int64_t created_ms = 0;
  std::optional<std::int64_t> expires_ms;
};

// Where the bytes of some objects of one tenant lie.
struct ContentId {
  std::string tenant;
  std::string digest;  // 32 raw bytes
  auto operator<=>(const ContentId&) const = default;
};

class ObjectFiles {
 public:
  // Makes the folders, takes the locks of both (kConflict: another node's), removes what was pending.
  static Result<ObjectFiles> open(const std::string& memory_dir, const std::string& spill_dir);

  Result<Bytes> memory_size() const;  // of the file system of memory_dir

  // ---- slow
  // The memory is there when this returns: who maps it meets no SIGBUS. kResourceExhausted: the file system is full.
  Result<UniqueFd> reserve(std::uint64_t id, Bytes bytes) const;
  Status write(std::uint64_t id, const UniqueFd& fd, std::string_view bytes) const;
  // Makes a pending file read-only and tells its digest. Copies it first when somebody could still write to it.
  Result<std::string> finish(std::uint64_t id, Bytes bytes) const;
  Status spill(const ContentId& content) const;  // a copy; the one in memory stays
  // As a pending file. kCorrupt: not what was spilled; that file stays as it is.
  Status read_back(std::uint64_t id, const ContentId& content, Bytes bytes) const;
  Status check_spilled(const ContentId& content, Bytes bytes) const;  // kCorrupt, as read_back()
  Status check_content(const ContentId& content, Bytes bytes) const;  // the same of what is in memory
  void remove_file(const std::string& path) const;

  // ---- quick
  Status publish(std::uint64_t id, const ContentId& content) const;  // pending -> content/
  Result<std::string> make_content_dir(const std::string& tenant) const;
  Status put_record(const ObjectRecord& record) const;
  void remove_record(const ObjectName& name) const;
  Result<UniqueFd> open_content(const ContentId& content) const;  // read only
  Result<UniqueFd> open_spilled(const ContentId& content) const;  // the same
  // Takes a file its name, and gives it another for remove_file(): freeing memory takes time.
  std::string put_aside(const std::string& path, std::uint64_t id) const;

  std::string pending_path(std::uint64_t id) const;
  std::string content_path(const ContentId& content) const;
  std::string spilled_path(const ContentId& content) const;

  // ---- at start
  bool is_of_another_boot() const { return is_of_another_boot_; }  // what open() found
  void note_boot() const;                                          // when that has been looked at
  // Damaged records are logged and left out.
  Result<std::vector<ObjectRecord>> load_records() const;
  static std::optional<Bytes> size_of(const std::string& path);
  void remove_memory_dir() const;  // when nothing is left: shared memory outlives everybody
  void remove_all_but(const std::set<std::string>& used) const;  // paths of contents, in memory or spilled

 private:
  ObjectFiles(std::string memory_dir, std::string spill_dir, StateLock lock, UniqueFd spill_lock,
              bool is_of_another_boot)
      : memory_dir_(std::move(memory_dir)),
        spill_dir_(std::move(spill_dir)),
        lock_(std::move(lock)),
        spill_lock_(std::move(spill_lock)),
        is_of_another_boot_(is_of_another_boot) {}

  static Result<ObjectRecord> load_record(const std::string& path);
  std::string record_path(const ObjectName& name) const;

  std::string memory_dir_;
  std::string spill_dir_;
  StateLock lock_;
  UniqueFd spill_lock_;
  bool is_of_another_boot_;
};

std::string digest_of(std::string_view bytes);  // BLAKE2b-256, 32 raw bytes

}  // namespace fairlead::store
