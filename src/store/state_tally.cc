#include "store/state_tally.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "store/record_checksum.h"

namespace fairlead::store {
namespace {

constexpr std::size_t kMostBytes = 256;

std::string line_of(const Tally& tally) {
  return fmt::format("fairlead-tally 1 {:020} {:020} {:020}", tally.accepted, tally.over, tally.changes);
}

}  // namespace

std::string encode(const Tally& tally) {
  const std::string line = line_of(tally);
  return fmt::format("{} {:016x}\n", line, static_cast<std::uint64_t>(checksum_of(line)));
}

std::optional<Tally> decode_tally(std::string_view text) {
  unsigned long long accepted = 0, over = 0, changes = 0;
  const std::string line(text.substr(0, kMostBytes));
  if (std::sscanf(line.c_str(), "fairlead-tally 1 %20llu %20llu %20llu", &accepted, &over, &changes) != 3) return {};
  const Tally tally{accepted, over, changes};
  if (encode(tally) != line) return {};
  return tally;
}

Result<Tally> tally_of(Database& database) {
  std::optional<Tally> tally;
  const auto count = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  Status read = database.query("SELECT accepted, over, changes FROM tally WHERE id = 1", [&](const Row& row) {
    tally = Tally{count(row.integer(0)), count(row.integer(1)), count(row.integer(2))};
  });
  if (!read) return fail(read.error());
  if (!tally) return fail(Errc::kCorrupt, "{}: the count of its changes is missing", database.path());
  return *tally;
}

void compare(const TallyFile& file, const Tally& database, StateDamage& damage) {
  if (!file.tally) {
    damage.may_lack_changes = file.exists || database.changes > 0;
    if (file.exists) {
      damage.findings.push_back("state.tally is damaged: whether changes were lost cannot be told");
    } else if (database.changes > 0) {
      damage.findings.push_back("state.tally is missing: whether changes were lost cannot be told");
    }
    return;
  }
  if (file.tally->changes <= database.changes) return;
  damage.may_lack_changes = true;
  damage.lost_changes = file.tally->changes - database.changes;
  damage.lost_events = file.tally->accepted - std::min(database.accepted, file.tally->accepted);
  damage.findings.push_back(fmt::format(
      "state.db lacks the last {} changes that were acknowledged, {} accepted asynchronous invocations among "
      "them: its write-ahead log (state.db-wal) was damaged or removed, or an older copy was put in its place",
      damage.lost_changes, damage.lost_events));
}

Result<StateTally> StateTally::open(const std::string& state_dir) {
  const std::string path = state_dir + "/state.tally";
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail(errno_error(errno, "open " + path));
  return StateTally(std::move(file));
}

TallyFile StateTally::read() const {
  char text[kMostBytes];
  const ssize_t size = ::pread(file_.get(), text, sizeof text, 0);
  if (size <= 0) return {};
  return {.exists = true, .tally = decode_tally({text, static_cast<std::size_t>(size)})};
}

Status StateTally::write(const Tally& tally) {
  if (written_ == tally) return {};
  const std::string line = encode(tally);
  if (::pwrite(file_.get(), line.data(), line.size(), 0) != static_cast<ssize_t>(line.size())) {
    return fail(errno_error(errno, "write state.tally"));
  }
  written_ = tally;
  return {};
}

}  // namespace fairlead::store
