// Rows of the state database as the store's plain values. One function per operation, run inside a transaction of the
// caller. Each may be run again after a rollback.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/sqlite.h"
#include "store/store.h"

namespace fairlead::store {

// Beyond this many, and one in a hundred more, letters are dropped: the oldest of the function that has most, of the tenant that
// has most.
inline constexpr std::int64_t kMaxDeadLetters = 10'000;

// Code paths below `state_dir` are kept relative to it: the folder may be moved or restored elsewhere.
Status put_function(Database& database, const std::string& state_dir, const FunctionRecord& record);
Status delete_function(Database& database, const std::string& name);
Status load_functions(Database& database, const std::string& state_dir, std::vector<FunctionRecord>& out);  // by name

Status put_event(Database& database, const QueuedEvent& event);
Status update_event(Database& database, const QueuedEvent& event);  // no effect where it is not there (any more)
Status delete_event(Database& database, const std::string& request_id);
// In the order of acceptance. A damaged one becomes a dead letter of the error type kDamaged, which cannot be redriven.
inline constexpr const char* kDamaged = "damaged";
Status load_events(Database& database, std::vector<QueuedEvent>& out, StateDamage& damage);

// No effect where the function does not exist (any more).
Status put_event_config(Database& database, const std::string& function, const EventInvokeConfig& config);
Status delete_event_config(Database& database, const std::string& function);
Status load_event_configs(Database& database, std::map<std::string, EventInvokeConfig>& out);

// Versions and aliases. No effect where the function does not exist (any more).
Status put_version(Database& database, const std::string& state_dir, const FunctionRecord& version);
Status delete_version(Database& database, const std::string& function, std::uint64_t version);
Status put_alias(Database& database, const std::string& function, const FunctionAlias& alias);
Status delete_alias(Database& database, const std::string& function, const std::string& alias);
Status load_published(Database& database, const std::string& state_dir, PublishedState& out);

// No effect where the function does not exist (any more). Beyond kMaxProfilesOfFunction the oldest of the function go.
Status put_profile(Database& database, const FunctionProfile& profile);
Status load_profiles(Database& database, std::vector<FunctionProfile>& out);  // by function, the oldest first

Status bury_event(Database& database, const DeadLetter& letter);
Status load_dead_letters(Database& database, const std::string& function, std::size_t limit,
                         std::vector<DeadLetter>& out);  // newest first
// Store::redrive_dead_letters.
struct Redrive {
  std::string function;
  std::size_t limit = 0;
  std::int64_t accepted_ms = 0;
};
Status redrive_dead_letters(Database& database, const Redrive& wanted, Redriven& out);

}  // namespace fairlead::store
