// Files of the state folder: created once by whichever process comes first, complete from the moment they have a name.
//
// Others may write to the folder, so nothing in it is taken for what its name promises. Every file is opened without
// following a link and without waiting, must be a regular file, and where root opens it must belong to root or to the
// folder's owner: else a link would lead root to any file of the computer, and a FIFO would hold it for ever.
//
// A folder with the set-group-id bit is shared with its group: its owner makes every file, the members use them and can
// neither add, replace nor remove one. The owner gives each file its mode when it opens it, through the descriptor.
//
// Example: root makes /dev/shm/gpu of group 65530 and mode 2710. `clients`, which all processes write, becomes
// rw-rw----, `machine`, which describes the devices, rw-r-----.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "softgpu/device/result.h"

namespace softgpu {

// 64 random bits from the system.
std::uint64_t random_number();

// Who may write a file of a folder that is shared with its group. In any other folder the umask decides.
enum class Writers { kOwner, kGroup };

// Makes `path` hold `content`, unless it already exists; either way the file is complete afterwards. Written under a
// temporary name and linked, so that a process killed half-way leaves nothing behind that another could read.
Status create_file_once(const std::string& path, std::string_view content, Writers writers = Writers::kOwner);

// Makes `path` hold `content`, whatever it held: readers see the old file or the new one, never a part.
Status replace_file(const std::string& path, std::string_view content);

// Excludes other processes that change files of `folder` for as long as it lives. Does nothing when the folder cannot
// be opened, which the members of a shared folder's group may not; goes on without the lock, and says so on stderr, when
// another process has kept it for `patience_ms`: whoever holds it may be hostile, and what it guards takes milliseconds.
class FolderLock {
 public:
  static constexpr int kPatienceMs = 10'000;
  explicit FolderLock(const std::string& folder, int patience_ms = kPatienceMs);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int folder_;
};

// The whole of a text file, which has at most kMostTextBytes.
inline constexpr std::size_t kMostTextBytes = std::size_t{1} << 20;
Result<std::string> read_file(const std::string& path);

// An open descriptor, close-on-exec, read and write, created when absent. The caller owns it.
Result<int> open_file(const std::string& path);

// Creates a table as map_table() does, without mapping it.
Status make_table(const std::string& path, std::uint64_t magic, std::size_t bytes);

// Why a table that is not mapped cannot be used; empty when it can, and when this process has no descriptor left to look.
std::string damage_of_table(const std::string& path, std::uint64_t magic, std::size_t bytes);

// Maps a table of `bytes` bytes that begins with `header`, creating it when absent, behind the header all zero; shared,
// for as long as the process lives. Error: the file is of another version or damaged; says what to do.
Result<void*> map_table(const std::string& path, std::string_view header, std::size_t bytes);
// A header of one number.
Result<void*> map_table(const std::string& path, std::uint64_t magic, std::size_t bytes);

}  // namespace softgpu
