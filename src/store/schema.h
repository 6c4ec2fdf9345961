// The state database: where it lies, how it is checked, and how older versions of it become the current one.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "store/sqlite.h"
#include "store/store.h"

namespace fairlead::store {

inline constexpr int kSchemaVersion = 12;

std::string database_path(const std::string& state_dir);

// Opens or creates, checks, migrates. kCorrupt: the file is damaged or not ours; kConflict: a newer version wrote it.
// A file that is refused is left as it was. An index that does not agree with its table is made anew, which is said in `damage`.
Result<std::unique_ptr<Database>> open_state_database(const std::string& state_dir, StateDamage& damage);

}  // namespace fairlead::store
