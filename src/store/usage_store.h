// Usage on disk: a row for each hour, tenant and function, in a SQLite file of its own, so that what is written every two seconds holds up
// no function that is being registered.
//
// A killed process loses nothing that add() has returned from; a power cut may lose what was added in the last moments before, and nothing
// else.
//
// Threads: one at a time; blocks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/usage.h"

namespace fairlead::store {

class Database;

class UsageStore {
 public:
  // A file that is damaged is put aside, as PATH.damaged, and a new one begun: `was_damaged` says so.
  static Result<std::unique_ptr<UsageStore>> open(const std::string& path);
  ~UsageStore();
  bool was_damaged() const { return was_damaged_; }

  // All of them are added to what there is, or none.
  Status add(const std::vector<UsageRow>& rows);
  Status forget_before(std::int64_t hour);
  Result<std::vector<UsageRow>> read(const UsageQuery& query);

 private:
  UsageStore(std::unique_ptr<Database> database, bool was_damaged);
  const std::unique_ptr<Database> database_;
  const bool was_damaged_;
};

}  // namespace fairlead::store
