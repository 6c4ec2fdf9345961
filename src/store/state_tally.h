// What was written to the state database, counted inside it and once more beside it, so that a log that is lost or cut short is
// noticed: SQLite takes a write-ahead log with a damaged frame, or none, for one that ended there.
//
//   commit (synced) ──> count in the database ──written after──> state.tally
//
// The file is never ahead of what was on disk when it was written, so a database behind it has lost commits. It is not synced:
// after a power cut the file may be the older one, which says nothing. Not noticed: that both are gone, or both are old.
//
// Example: 150 events were accepted, the log's 93rd frame was damaged: the file says 150, the database 92, so 58 are missing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "store/sqlite.h"
#include "store/store.h"

namespace fairlead::store {

struct Tally {
  std::uint64_t accepted = 0;  // events, ever
  std::uint64_t over = 0;      // of them
  std::uint64_t changes = 0;   // rows written or removed: functions, events, dead letters
  bool operator==(const Tally&) const = default;
};

std::string encode(const Tally& tally);               // one line, with a checksum
std::optional<Tally> decode_tally(std::string_view);  // none: damaged
Result<Tally> tally_of(Database& database);

// What the file's count, none where it has none that can be read, says of the database's.
struct TallyFile {
  bool exists = false;
  std::optional<Tally> tally;
};
void compare(const TallyFile& file, const Tally& database, StateDamage& damage);

// state.tally of a state folder. Threads: one at a time.
class StateTally {
 public:
  static Result<StateTally> open(const std::string& state_dir);
  TallyFile read() const;
  Status write(const Tally& tally);  // what is there already is not written again

 private:
  explicit StateTally(UniqueFd file) : file_(std::move(file)) {}
  UniqueFd file_;
  std::optional<Tally> written_;
};

}  // namespace fairlead::store
