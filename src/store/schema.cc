#include "store/schema.h"

namespace fairlead::store {
namespace {

// Marks the file as ours ("FLD1"), so that another program's database is refused instead of migrated.
constexpr std::int64_t kApplicationId = 0x464c4431;

// kMigrations[n] leads from version n to n + 1. Released ones never change.
constexpr std::string_view kMigrations[kSchemaVersion][14] = {
    {
        R"(CREATE TABLE functions (
         name TEXT PRIMARY KEY NOT NULL,
         description TEXT NOT NULL, role TEXT NOT NULL, handler TEXT NOT NULL, runtime TEXT NOT NULL,
         memory_mib INTEGER NOT NULL, timeout_seconds INTEGER NOT NULL, ephemeral_storage_mib INTEGER NOT NULL,
         environment TEXT NOT NULL, tags TEXT NOT NULL,
         code_sha256 TEXT NOT NULL, code_bytes INTEGER NOT NULL, code_path TEXT NOT NULL,
         revision_id TEXT NOT NULL, last_modified_ms INTEGER NOT NULL, reserved_concurrency INTEGER) STRICT)",
        R"(CREATE TABLE events (
         request_id TEXT PRIMARY KEY NOT NULL, function TEXT NOT NULL,
         payload BLOB NOT NULL, client_context TEXT NOT NULL,
         attempts INTEGER NOT NULL, accepted_ms INTEGER NOT NULL, not_before_ms INTEGER NOT NULL) STRICT)",
        R"(CREATE TABLE dead_letters (
         id INTEGER PRIMARY KEY, request_id TEXT UNIQUE NOT NULL, function TEXT NOT NULL,
         payload BLOB NOT NULL, error_type TEXT NOT NULL, error_message TEXT NOT NULL,
         attempts INTEGER NOT NULL, accepted_ms INTEGER NOT NULL, failed_ms INTEGER NOT NULL) STRICT)",
    },
    // Functions that are images: JSON, both empty for a zip package.
    {
        "ALTER TABLE functions ADD COLUMN image TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE functions ADD COLUMN image_config TEXT NOT NULL DEFAULT ''",
    },
    // Asynchronous invocations keep the trace id of their caller.
    {"ALTER TABLE events ADD COLUMN trace_id TEXT NOT NULL DEFAULT ''"},
    // And their caller's deadline, NULL for none, and how it asked (http_part.h).
    {"ALTER TABLE events ADD COLUMN deadline_ms INTEGER",
     "ALTER TABLE events ADD COLUMN http BLOB NOT NULL DEFAULT x''"},
    // How often and how long events of a function are tried, NULL for the default.
    {R"(CREATE TABLE event_configs (
       function TEXT PRIMARY KEY NOT NULL, retries INTEGER, age_seconds INTEGER,
       last_modified_ms INTEGER NOT NULL) STRICT)"},
    // Dead letters can become events again.
    {"ALTER TABLE dead_letters ADD COLUMN client_context TEXT NOT NULL DEFAULT ''",
     "ALTER TABLE dead_letters ADD COLUMN trace_id TEXT NOT NULL DEFAULT ''",
     "ALTER TABLE dead_letters ADD COLUMN http BLOB NOT NULL DEFAULT x''"},
    // Checksums (record_checksum.h), NULL for what is older; what was ever written is counted (state_tally.h).
    {"ALTER TABLE events ADD COLUMN checksum INTEGER", "ALTER TABLE dead_letters ADD COLUMN checksum INTEGER",
     R"(CREATE TABLE tally (
       id INTEGER PRIMARY KEY CHECK (id = 1),
       accepted INTEGER NOT NULL, over INTEGER NOT NULL, changes INTEGER NOT NULL) STRICT)",
     "INSERT INTO tally SELECT 1, count(*), 0, 0 FROM events",
     R"(CREATE TRIGGER tally_event_added AFTER INSERT ON events
        BEGIN UPDATE tally SET accepted = accepted + 1, changes = changes + 1; END)",
     R"(CREATE TRIGGER tally_event_over AFTER DELETE ON events
        BEGIN UPDATE tally SET over = over + 1, changes = changes + 1; END)",
     "CREATE TRIGGER tally_event_set AFTER UPDATE ON events BEGIN UPDATE tally SET changes = changes + 1; END",
     "CREATE TRIGGER tally_function_set AFTER INSERT ON functions BEGIN UPDATE tally SET changes = changes + 1; END",
     "CREATE TRIGGER tally_function_gone AFTER DELETE ON functions BEGIN UPDATE tally SET changes = changes + 1; END",
     "CREATE TRIGGER tally_letter_added AFTER INSERT ON dead_letters BEGIN UPDATE tally SET changes = changes + 1; END",
     "CREATE TRIGGER tally_letter_gone AFTER DELETE ON dead_letters BEGIN UPDATE tally SET changes = changes + 1; END",
     "CREATE TRIGGER tally_config_set AFTER INSERT ON event_configs BEGIN UPDATE tally SET changes = changes + 1; END",
     "CREATE TRIGGER tally_config_gone AFTER DELETE ON event_configs BEGIN UPDATE tally SET changes = changes + 1; "
     "END"},
    // What goes by a function's name goes with the function.
    {"DELETE FROM dead_letters WHERE function NOT IN (SELECT name FROM functions)"},
    // Where instances of a function are kept: UUIDs of devices, a JSON list.
    {"ALTER TABLE functions ADD COLUMN seats TEXT NOT NULL DEFAULT '[]'"},
    // What was measured of a function on a model of device: JSON (model/function_profile.h).
    {R"(CREATE TABLE profiles (
       function TEXT NOT NULL, code_sha256 TEXT NOT NULL, device TEXT NOT NULL,
       profile TEXT NOT NULL, measured_ms INTEGER NOT NULL, PRIMARY KEY (function, code_sha256, device)) STRICT)"},
    // Published versions, which have a function's columns, and the number; which numbers were given; aliases, with their weights as JSON.
    // What waits or failed keeps the version that it was accepted for, 0 for $LATEST.
    {R"(CREATE TABLE versions (
         name TEXT NOT NULL,
         description TEXT NOT NULL, role TEXT NOT NULL, handler TEXT NOT NULL, runtime TEXT NOT NULL,
         memory_mib INTEGER NOT NULL, timeout_seconds INTEGER NOT NULL, ephemeral_storage_mib INTEGER NOT NULL,
         environment TEXT NOT NULL, tags TEXT NOT NULL,
         code_sha256 TEXT NOT NULL, code_bytes INTEGER NOT NULL, code_path TEXT NOT NULL,
         revision_id TEXT NOT NULL, last_modified_ms INTEGER NOT NULL, reserved_concurrency INTEGER,
         image TEXT NOT NULL, image_config TEXT NOT NULL, seats TEXT NOT NULL,
         version INTEGER NOT NULL, PRIMARY KEY (name, version)) STRICT)",
     "CREATE TABLE version_numbers (function TEXT PRIMARY KEY NOT NULL, last INTEGER NOT NULL) STRICT",
     R"(CREATE TABLE aliases (
         function TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, description TEXT NOT NULL,
         weights TEXT NOT NULL, revision_id TEXT NOT NULL, PRIMARY KEY (function, name)) STRICT)",
     "ALTER TABLE events ADD COLUMN version INTEGER NOT NULL DEFAULT 0",
     "ALTER TABLE dead_letters ADD COLUMN version INTEGER NOT NULL DEFAULT 0",
     "CREATE TRIGGER tally_version_set AFTER INSERT ON versions BEGIN UPDATE tally SET changes = changes + 1; END",
     "CREATE TRIGGER tally_version_gone AFTER DELETE ON versions BEGIN UPDATE tally SET changes = changes + 1; END",
     "CREATE TRIGGER tally_alias_set AFTER INSERT ON aliases BEGIN UPDATE tally SET changes = changes + 1; END",
     "CREATE TRIGGER tally_alias_gone AFTER DELETE ON aliases BEGIN UPDATE tally SET changes = changes + 1; END"},
    // Which folder a function runs in place (base/file_identity.h), '' for one of a copy.
    {"ALTER TABLE functions ADD COLUMN in_place TEXT NOT NULL DEFAULT ''"},
};

Result<std::int64_t> read_integer(Database& database, std::string_view sql) {
  std::int64_t value = 0;
  Status status = database.query(sql, [&](const Row& row) { value = row.integer(0); });
  if (!status) return fail(status.error());
  return value;
}

Error corrupt(const Database& database, std::string_view finding) {
  return Error{Errc::kCorrupt,
               fmt::format("{} is damaged: {}. Nothing was changed. Restore a backup of the state folder, or move this "
                           "file away to start empty (functions must then be deployed again)",
                           database.path(), finding)};
}

// A database with tables that does not carry our mark belongs to someone else.
Status check_owner(Database& database) {
  Result<std::int64_t> application = read_integer(database, "PRAGMA application_id");
  if (!application) return fail(application.error());
  Result<std::int64_t> tables = read_integer(database, "SELECT count(*) FROM sqlite_schema");
  if (!tables) return fail(tables.error());
  if (*tables > 0 && *application != kApplicationId) {
    return fail(corrupt(database, fmt::format("it is not a Fairlead database (application_id {:#x}, expected {:#x})",
                                              *application, kApplicationId)));
  }
  return {};
}

Status check_version(Database& database) {
  Result<std::int64_t> version = read_integer(database, "PRAGMA user_version");
  if (!version) return fail(version.error());
  if (*version <= kSchemaVersion) return {};
  return fail(Errc::kConflict, "{} has schema version {}, this program knows up to {}: run a newer fairlead",
              database.path(), *version, kSchemaVersion);
}

Result<std::string> first_finding(Database& database, std::string_view check) {
  std::string finding;
  Status status = database.query(check, [&](const Row& row) { finding = row.text(0); });
  if (!status && status.error().code == Errc::kCorrupt) return fail(corrupt(database, status.error().message));
  if (!status) return fail(status.error());
  return finding;
}

// An index says nothing that its table does not say, so one that disagrees is made anew: SQLite refuses to remove a row that it
// does not find in an index, and finds a row twice or never. A table with a wrong value is found by the checksums of its rows.
Status check_integrity(Database& database, StateDamage& damage) {
  constexpr std::string_view kAll = "PRAGMA integrity_check(1)";
  const Result<std::string> finding = first_finding(database, kAll);
  if (!finding) return fail(finding.error());
  if (*finding == "ok") return {};
  const Result<std::string> but_for_indexes = first_finding(database, "PRAGMA quick_check(1)");
  if (!but_for_indexes) return fail(but_for_indexes.error());
  if (*but_for_indexes != "ok") return fail(corrupt(database, *but_for_indexes));
  for (auto check : {check_owner, check_version}) {  // another program's file is left as it is
    if (Status ours = check(database); !ours) return ours;
  }
  if (Status made = database.run("REINDEX"); !made) return fail(corrupt(database, made.error().message));
  const Result<std::string> left = first_finding(database, kAll);
  if (!left) return fail(left.error());
  if (*left != "ok") return fail(corrupt(database, *left));
  damage.findings.push_back(fmt::format("an index of state.db was damaged ({}): it is made anew", *finding));
  return {};
}

Status apply_migration(Database& database, int version) {
  for (std::string_view sql : kMigrations[version]) {
    if (sql.empty()) continue;
    if (Status status = database.run(sql); !status) return status;
  }
  // PRAGMA takes no parameters; both are part of the transaction.
  if (Status status = database.run(fmt::format("PRAGMA application_id = {}", kApplicationId)); !status) return status;
  return database.run(fmt::format("PRAGMA user_version = {}", version + 1));
}

Status migrate(Database& database) {
  Result<std::int64_t> version = read_integer(database, "PRAGMA user_version");
  if (!version) return fail(version.error());
  for (int from = static_cast<int>(*version); from < kSchemaVersion; ++from) {
    if (Status status = database.run("BEGIN IMMEDIATE"); !status) return status;
    Status status = apply_migration(database, from);
    if (status) status = database.run("COMMIT");
    if (!status) {
      if (database.in_transaction()) (void)database.run("ROLLBACK").has_value();
      return status;
    }
  }
  return {};
}

Status configure(Database& database) {
  // WAL: a commit is one append and one fsync. FULL: that fsync happens, a committed event survives a power cut.
  for (std::string_view sql :
       {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA journal_size_limit = 67108864"}) {
    if (Status status = database.run(sql); !status) return status;
  }
  return {};
}

}  // namespace

std::string database_path(const std::string& state_dir) {
  return state_dir + "/state.db";
}

Result<std::unique_ptr<Database>> open_state_database(const std::string& state_dir, StateDamage& damage) {
  Result<std::unique_ptr<Database>> database = Database::open(database_path(state_dir));
  if (!database) return database;
  if (Status whole = check_integrity(**database, damage); !whole) return fail(whole.error());
  for (auto step : {check_owner, check_version, configure, migrate}) {
    if (Status status = step(**database); !status) return fail(status.error());
  }
  return database;
}

}  // namespace fairlead::store
