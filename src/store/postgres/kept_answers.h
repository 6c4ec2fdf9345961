// What the store last said to the questions of a node's start, kept in the state folder. A node that starts while the server is away serves
// the functions that it knew.
//
//   online:   questions ──> server ──> answers ──> <state>/store-answers, when functions have changed
//   offline:  questions ──> <state>/store-answers
//
// Threads: any; one writer.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "store/postgres/connection.h"
#include "store/postgres/records.h"

namespace fairlead::postgres {

inline constexpr const char* kAskRevision = "SELECT coalesce(max(revision), 0) FROM functions";
inline constexpr const char* kAskFunctions = "SELECT name, record FROM functions WHERE NOT deleted ORDER BY name";
inline constexpr const char* kAskEventConfigs =
    "SELECT function, retries, age_seconds, last_modified_ms FROM event_configs";
inline constexpr const char* kAskProfiles = "SELECT profile FROM profiles ORDER BY function, measured_ms, id";

using KeptAnswers = std::map<std::string, Rows>;  // by SQL

Status keep_answers(const std::string& state_dir, const Target& target, Connection& connection);
// kNotFound: there are none, or another server's; kCorrupt.
Result<KeptAnswers> kept_answers(const std::string& state_dir, const Target& target);

}  // namespace fairlead::postgres
