#include "store/records.h"

#include <nlohmann/json.hpp>

#include "model/tenant.h"
#include "store/http_part.h"
#include "store/image_json.h"
#include "store/record_checksum.h"
#include "store/state_tally.h"
#include "store/weights_json.h"

namespace fairlead::store {
namespace {

using StringMap = std::map<std::string, std::string>;

Result<std::string> encode_map(const StringMap& map, std::string_view field) {
  try {
    return nlohmann::json(map).dump();
  } catch (const nlohmann::json::exception&) {
    return fail(Errc::kInvalidArgument, "{} must be valid UTF-8", field);
  }
}

Result<StringMap> decode_map(const std::string& text, const std::string& function, std::string_view field) {
  nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  StringMap map;
  bool valid = parsed.is_object();
  if (valid) {
    for (const auto& [key, value] : parsed.items()) {
      valid = valid && value.is_string();
      if (value.is_string()) map[key] = value.get<std::string>();
    }
  }
  if (!valid) return fail(Errc::kCorrupt, "stored {} of function {} is not a JSON object of strings", field, function);
  return map;
}

std::string relative_to(const std::string& state_dir, const std::string& path) {
  const std::string prefix = state_dir + "/";
  return path.starts_with(prefix) ? path.substr(prefix.size()) : path;
}

std::string absolute_below(const std::string& state_dir, const std::string& path) {
  return path.empty() || path.starts_with("/") ? path : state_dir + "/" + path;
}

std::optional<std::int64_t> widen(std::optional<int> value) {
  return value ? std::optional<std::int64_t>(*value) : std::nullopt;
}

std::optional<int> narrow(std::optional<std::int64_t> value) {
  return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
}

// What cannot be read is not needed: the node finds other devices.
std::vector<std::string> decode_seats(const std::string& text) {
  std::vector<std::string> seats;
  const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  if (!parsed.is_array()) return seats;
  for (const nlohmann::json& seat : parsed) {
    if (seat.is_string()) seats.push_back(seat.get<std::string>());
  }
  return seats;
}

FunctionRecord function_of(const Row& row, const std::string& state_dir) {
  FunctionRecord record;
  record.name = row.text(0);
  record.config.description = row.text(1);
  record.config.role = row.text(2);
  record.config.handler = row.text(3);
  record.config.runtime = row.text(4);
  record.config.memory_mib = static_cast<int>(row.integer(5));
  record.config.timeout_seconds = static_cast<int>(row.integer(6));
  record.config.ephemeral_storage_mib = static_cast<int>(row.integer(7));
  record.code_sha256 = row.text(10);
  record.code_bytes = row.integer(11);
  record.code_path = absolute_below(state_dir, row.text(12));
  record.revision_id = row.text(13);
  record.last_modified_ms = row.integer(14);
  record.reserved_concurrency = narrow(row.optional_integer(15));
  record.seats = decode_seats(row.text(18));
  return record;
}

Status read_image(const Row& row, FunctionRecord& record) {
  const std::string text = row.text(16);
  if (text.empty()) return {};
  Result<FunctionImage> image = decode_image(text);
  Result<ImageOverrides> overrides = decode_overrides(row.text(17));
  if (!image || !overrides) {
    return fail(Errc::kCorrupt, "stored image of function {}: {}", record.name,
                (image ? overrides.error() : image.error()).message);
  }
  record.image = *std::move(image);
  record.config.image_config = *std::move(overrides);
  record.config.package_type = PackageType::kImage;
  return {};
}

constexpr std::string_view kLetterColumns =
    "request_id, function, payload, error_type, error_message, attempts, accepted_ms, failed_ms, client_context, "
    "trace_id, http, checksum, version";

DeadLetter dead_letter_of(const Row& row) {
  DeadLetter letter;
  letter.request_id = row.text(0);
  letter.function = row.text(1);
  letter.payload = row.text(2);
  letter.error_type = row.text(3);
  letter.error_message = row.text(4);
  letter.attempts = static_cast<int>(row.integer(5));
  letter.accepted_ms = row.integer(6);
  letter.failed_ms = row.integer(7);
  letter.client_context = row.text(8);
  letter.trace_id = row.text(9);
  letter.http = http_part(row.text(10));
  letter.version = static_cast<std::uint64_t>(row.integer(12));
  return letter;
}

}  // namespace

namespace {

// The columns that functions and their versions have.
template <typename... More>
Status put_record(Database& database, std::string_view sql, const std::string& state_dir, const FunctionRecord& record,
                  const More&... more) {
  const FunctionConfig& config = record.config;
  Result<std::string> environment = encode_map(config.environment, "environment");
  if (!environment) return fail(environment.error());
  Result<std::string> tags = encode_map(config.tags, "tags");
  if (!tags) return fail(tags.error());
  Result<std::string> image = record.image ? encode_image(*record.image) : Result<std::string>("");
  if (!image) return fail(image.error());
  Result<std::string> image_config = record.image ? encode_overrides(config.image_config) : Result<std::string>("");
  if (!image_config) return fail(image_config.error());
  return database.run(sql, record.name, config.description, config.role, config.handler, config.runtime,
                      std::int64_t{config.memory_mib}, std::int64_t{config.timeout_seconds},
                      std::int64_t{config.ephemeral_storage_mib}, *environment, *tags, record.code_sha256,
                      record.code_bytes, relative_to(state_dir, record.code_path), record.revision_id,
                      record.last_modified_ms, widen(record.reserved_concurrency), *image, *image_config,
                      nlohmann::json(record.seats).dump(), more...);
}

// One of them. kCorrupt names the field.
Result<FunctionRecord> read_record(const Row& row, const std::string& state_dir) {
  FunctionRecord record = function_of(row, state_dir);
  Result<StringMap> environment = decode_map(row.text(8), record.name, "environment");
  if (!environment) return fail(environment.error());
  Result<StringMap> tags = decode_map(row.text(9), record.name, "tags");
  if (!tags) return fail(tags.error());
  if (Status image = read_image(row, record); !image) return fail(image.error());
  record.config.environment = *std::move(environment);
  record.config.tags = *std::move(tags);
  return record;
}

}  // namespace

namespace {

// Of a function in place, which folder that is. Versions have none.
Result<FunctionRecord> with_folder(FunctionRecord record, const std::string& in_place) {
  if (in_place.empty()) return record;
  Result<FileIdentity> identity = parse_file_identity(in_place);
  if (!identity) {
    return fail(Errc::kCorrupt, "stored folder of function {}: {}", record.name, identity.error().message);
  }
  record.in_place = *identity;
  return record;
}

}  // namespace

Status put_function(Database& database, const std::string& state_dir, const FunctionRecord& record) {
  return put_record(database, "INSERT OR REPLACE INTO functions VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                    state_dir, record, record.in_place ? to_text(*record.in_place) : "");
}

// With all that goes by its name: the next function of that name may be somebody else's.
Status delete_function(Database& database, const std::string& name) {
  for (const std::string_view sql :
       {"DELETE FROM events WHERE function = ?", "DELETE FROM dead_letters WHERE function = ?",
        "DELETE FROM event_configs WHERE function = ?", "DELETE FROM profiles WHERE function = ?",
        "DELETE FROM versions WHERE name = ?", "DELETE FROM version_numbers WHERE function = ?",
        "DELETE FROM aliases WHERE function = ?", "DELETE FROM functions WHERE name = ?"}) {
    if (Status status = database.run(sql, name); !status) return status;
  }
  return {};
}

Status load_functions(Database& database, const std::string& state_dir, std::vector<FunctionRecord>& out) {
  out.clear();
  Status decoded;
  Status status = database.query("SELECT * FROM functions ORDER BY name", [&](const Row& row) {
    Result<FunctionRecord> record = read_record(row, state_dir);
    if (record) record = with_folder(*std::move(record), row.text(19));
    if (!record) decoded = fail(record.error());
    if (record) out.push_back(*std::move(record));
  });
  return status ? decoded : status;
}

Status put_version(Database& database, const std::string& state_dir, const FunctionRecord& version) {
  const auto number = static_cast<std::int64_t>(version.version);
  Status put =
      put_record(database,
                 "INSERT OR REPLACE INTO versions SELECT ?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,"
                 "?18,?19,?20 WHERE EXISTS (SELECT 1 FROM functions WHERE name = ?1)",
                 state_dir, version, number);
  if (!put) return put;
  return database.run(
      "INSERT OR REPLACE INTO version_numbers SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM functions WHERE name = ?1)",
      version.name, number);
}

Status delete_version(Database& database, const std::string& function, std::uint64_t version) {
  return database.run("DELETE FROM versions WHERE name = ? AND version = ?", function,
                      static_cast<std::int64_t>(version));
}

Status put_alias(Database& database, const std::string& function, const FunctionAlias& alias) {
  return database.run(
      "INSERT OR REPLACE INTO aliases SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE EXISTS (SELECT 1 FROM functions WHERE name = "
      "?1)",
      function, alias.name, static_cast<std::int64_t>(alias.version), alias.description, encode_weights(alias.weights),
      alias.revision_id);
}

Status delete_alias(Database& database, const std::string& function, const std::string& alias) {
  return database.run("DELETE FROM aliases WHERE function = ? AND name = ?", function, alias);
}

Status load_published(Database& database, const std::string& state_dir, PublishedState& out) {
  out = {};
  Status decoded;
  Status status = database.query("SELECT * FROM versions ORDER BY name, version", [&](const Row& row) {
    Result<FunctionRecord> record = read_record(row, state_dir);
    if (!record) decoded = fail(record.error());
    if (!record) return;
    record->version = static_cast<std::uint64_t>(row.integer(19));
    out.versions.push_back(*std::move(record));
  });
  if (!status || !decoded) return status ? decoded : status;
  status = database.query("SELECT function, last FROM version_numbers", [&](const Row& row) {
    out.last_numbers[row.text(0)] = static_cast<std::uint64_t>(row.integer(1));
  });
  if (!status) return status;
  return database.query(
      "SELECT function, name, version, description, weights, revision_id FROM aliases ORDER BY function, name",
      [&](const Row& row) {
        out.aliases[row.text(0)].push_back({.name = row.text(1),
                                            .version = static_cast<std::uint64_t>(row.integer(2)),
                                            .description = row.text(3),
                                            .weights = decode_weights(row.text(4)),
                                            .revision_id = row.text(5)});
      });
}

Status put_event(Database& database, const QueuedEvent& event) {
  const Invocation& invocation = event.invocation;
  // An upsert keeps the row's place: rowid is the order of acceptance among equal times.
  return database.run(
      "INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (request_id) DO UPDATE SET "
      "function = excluded.function, payload = excluded.payload, client_context = excluded.client_context, "
      "attempts = excluded.attempts, accepted_ms = excluded.accepted_ms, not_before_ms = excluded.not_before_ms, "
      "trace_id = excluded.trace_id, deadline_ms = excluded.deadline_ms, http = excluded.http, "
      "checksum = excluded.checksum, version = excluded.version",
      invocation.request_id, invocation.function, Blob{invocation.payload}, invocation.client_context,
      std::int64_t{event.attempts}, event.accepted_ms, event.not_before_ms, invocation.trace_id, invocation.deadline_ms,
      Blob{http_text(invocation.http)}, checksum_of(event), static_cast<std::int64_t>(invocation.version));
}

// Its attempts and its next one: nothing else of an accepted event changes. Its function may have gone meanwhile, and it with it.
Status update_event(Database& database, const QueuedEvent& event) {
  return database.run("UPDATE events SET attempts = ?, not_before_ms = ?, checksum = ? WHERE request_id = ?",
                      std::int64_t{event.attempts}, event.not_before_ms, checksum_of(event),
                      event.invocation.request_id);
}

Status delete_event(Database& database, const std::string& request_id) {
  return database.run("DELETE FROM events WHERE request_id = ?", request_id);
}

namespace {

QueuedEvent event_of(const Row& row) {
  return {.invocation = {.request_id = row.text(0),
                         .function = row.text(1),
                         .payload = row.text(2),
                         .client_context = row.text(3),
                         .trace_id = row.text(7),
                         .deadline_ms = row.optional_integer(8),
                         .http = http_part(row.text(9)),
                         .version = static_cast<std::uint64_t>(row.integer(11))},
          .attempts = static_cast<int>(row.integer(4)),
          .accepted_ms = row.integer(5),
          .not_before_ms = row.integer(6)};
}

DeadLetter damaged_letter(const QueuedEvent& event) {
  DeadLetter letter{.request_id = event.invocation.request_id,
                    .function = event.invocation.function,
                    .payload = event.invocation.payload};
  letter.version = event.invocation.version;
  letter.error_type = kDamaged;
  letter.error_message = "its record on disk is damaged: what is here need not be what was accepted, and is not run";
  letter.attempts = event.attempts;
  letter.accepted_ms = letter.failed_ms = event.accepted_ms;
  return letter;
}

struct DamagedRow {
  std::int64_t rowid;
  QueuedEvent event;
};

// Whoever has most of them loses its oldest: a tenant's flood of failures pushes out no letter of another, nor those of the
// tenant's quiet functions. Some too many are let in first, since this reads all of them.
Status trim_letters(Database& database) {
  std::int64_t letters = 0;  // ids have gaps, where letters were redriven or went with their function
  Status counted =
      database.query("SELECT count(*) FROM dead_letters", [&](const Row& row) { letters = row.integer(0); });
  if (!counted || letters <= kMaxDeadLetters + kMaxDeadLetters / 100) return counted;
  static const std::string kTrim = fmt::format(
      R"(WITH owned AS MATERIALIZED (
           SELECT d.id AS id, coalesce(json_extract(f.tags, '$."{}"'), '') AS tenant,
                  row_number() OVER (PARTITION BY d.function ORDER BY d.id DESC) AS depth
           FROM dead_letters d LEFT JOIN functions f ON f.name = d.function)
         DELETE FROM dead_letters WHERE id IN (
           SELECT id FROM owned
           WHERE tenant = (SELECT tenant FROM owned GROUP BY tenant ORDER BY count(*) DESC, tenant LIMIT 1)
           ORDER BY depth DESC, id LIMIT ?))",
      kTenantTag);
  return database.run(kTrim, letters - kMaxDeadLetters);
}

Status put_letter(Database& database, const DeadLetter& letter) {
  static const std::string kInsert =
      fmt::format("INSERT OR REPLACE INTO dead_letters ({}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)", kLetterColumns);
  Status status = database.run(kInsert, letter.request_id, letter.function, Blob{letter.payload}, letter.error_type,
                               letter.error_message, std::int64_t{letter.attempts}, letter.accepted_ms,
                               letter.failed_ms, letter.client_context, letter.trace_id, Blob{http_text(letter.http)},
                               checksum_of(letter), static_cast<std::int64_t>(letter.version));
  if (!status) return status;
  return trim_letters(database);
}

// By its row: its request id, or the name of its function, may be what is damaged.
Status bury_damaged(Database& database, const std::vector<DamagedRow>& rows) {
  for (const DamagedRow& row : rows) {
    if (Status gone = database.run("DELETE FROM events WHERE rowid = ?", row.rowid); !gone) return gone;
    if (Status buried = put_letter(database, damaged_letter(row.event)); !buried) return buried;
  }
  return {};
}

// Said once: they count as over from then on.
Status note_missing(Database& database, std::uint64_t rows, StateDamage& damage) {
  const Result<Tally> tally = tally_of(database);
  if (!tally) return fail(tally.error());
  if (tally->accepted <= tally->over + rows) return {};
  damage.missing_events = tally->accepted - tally->over - rows;
  damage.findings.push_back(
      fmt::format("state.db has lost {} accepted asynchronous invocations that it counts", damage.missing_events));
  return database.run("UPDATE tally SET over = over + ?", static_cast<std::int64_t>(damage.missing_events));
}

}  // namespace

Status load_events(Database& database, std::vector<QueuedEvent>& out, StateDamage& damage) {
  out.clear();
  std::vector<DamagedRow> damaged;
  Status loaded = database.query("SELECT *, rowid FROM events ORDER BY accepted_ms, rowid", [&](const Row& row) {
    QueuedEvent event = event_of(row);
    const std::optional<std::int64_t> checksum = row.optional_integer(10);
    if (checksum && *checksum != checksum_of(event)) {
      damaged.push_back({row.integer(12), std::move(event)});
    } else {
      out.push_back(std::move(event));
    }
  });
  if (!loaded) return loaded;
  if (Status noted = note_missing(database, out.size() + damaged.size(), damage); !noted) return noted;
  constexpr std::size_t kMostFindings = 100;
  for (const DamagedRow& row : damaged) {
    if (damage.findings.size() >= kMostFindings) break;
    damage.findings.push_back(
        fmt::format("the record of asynchronous invocation {} of {} is damaged: it is not run, and a "
                    "dead letter",
                    row.event.invocation.request_id, row.event.invocation.function));
  }
  damage.damaged_events = damaged.size();
  return bury_damaged(database, damaged);
}

Status put_event_config(Database& database, const std::string& function, const EventInvokeConfig& config) {
  return database.run(
      "INSERT OR REPLACE INTO event_configs SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (SELECT 1 FROM functions WHERE name = "
      "?1)",
      function, widen(config.retries), widen(config.age_seconds), config.last_modified_ms);
}

Status delete_event_config(Database& database, const std::string& function) {
  return database.run("DELETE FROM event_configs WHERE function = ?", function);
}

Status load_event_configs(Database& database, std::map<std::string, EventInvokeConfig>& out) {
  out.clear();
  return database.query("SELECT function, retries, age_seconds, last_modified_ms FROM event_configs",
                        [&](const Row& row) {
                          out[row.text(0)] = {.retries = narrow(row.optional_integer(1)),
                                              .age_seconds = narrow(row.optional_integer(2)),
                                              .last_modified_ms = row.integer(3)};
                        });
}

Status put_profile(Database& database, const FunctionProfile& profile) {
  Status put = database.run(
      "INSERT OR REPLACE INTO profiles SELECT ?1, ?2, ?3, ?4, ?5 WHERE EXISTS (SELECT 1 FROM functions WHERE name = "
      "?1)",
      profile.function, profile.code_sha256, profile.device, to_json(profile), profile.measured_ms);
  if (!put) return put;
  return database.run(
      "DELETE FROM profiles WHERE function = ?1 AND rowid NOT IN (SELECT rowid FROM profiles WHERE function = ?1 "
      "ORDER BY measured_ms DESC, rowid DESC LIMIT ?2)",
      profile.function, static_cast<std::int64_t>(Store::kMaxProfilesOfFunction));
}

// What cannot be read is not needed: it is measured again.
Status load_profiles(Database& database, std::vector<FunctionProfile>& out) {
  out.clear();
  return database.query("SELECT profile FROM profiles ORDER BY function, measured_ms, rowid", [&](const Row& row) {
    if (auto profile = profile_from_json(row.text(0))) out.push_back(*std::move(profile));
  });
}

Status bury_event(Database& database, const DeadLetter& letter) {
  if (Status status = delete_event(database, letter.request_id); !status) return status;
  bool has_function = false;
  Status looked = database.query(
      "SELECT 1 FROM functions WHERE name = ?", [&](const Row&) { has_function = true; }, letter.function);
  if (!looked || !has_function) return looked;
  return put_letter(database, letter);
}

Status load_dead_letters(Database& database, const std::string& function, std::size_t limit,
                         std::vector<DeadLetter>& out) {
  out.clear();
  static const std::string kSelect = fmt::format(
      "SELECT {}, length(payload) FROM dead_letters WHERE ?1 = '' OR function = ?1 ORDER BY id DESC LIMIT ?2",
      kLetterColumns);
  std::int64_t bytes = 0;
  const auto take = [&](const Row& row) {
    bytes += row.integer(13);  // without a look at the payload itself
    if (out.empty() || bytes <= static_cast<std::int64_t>(Store::kMaxLetterBytes)) out.push_back(dead_letter_of(row));
  };
  return database.query(kSelect, take, function, static_cast<std::int64_t>(limit));
}

namespace {

// The ids of those that fit, the oldest first; how many do not.
Status choose_letters(Database& database, const Redrive& wanted, std::vector<std::int64_t>& ids, std::size_t& left) {
  std::int64_t bytes = 0;
  return database.query(
      "SELECT id, length(payload) FROM dead_letters WHERE (?1 = '' OR function = ?1) "
      "AND function IN (SELECT name FROM functions) AND error_type <> 'damaged' ORDER BY id",
      [&](const Row& row) {
        bytes += row.integer(1);
        const bool fits = ids.empty() || bytes <= static_cast<std::int64_t>(Store::kMaxLetterBytes);
        if (left == 0 && ids.size() < wanted.limit && fits) return ids.push_back(row.integer(0));
        ++left;
      },
      wanted.function);
}

QueuedEvent event_of(DeadLetter letter, std::int64_t accepted_ms) {
  QueuedEvent event{.accepted_ms = accepted_ms};
  event.invocation.request_id = std::move(letter.request_id);
  event.invocation.function = std::move(letter.function);
  event.invocation.payload = std::move(letter.payload);
  event.invocation.client_context = std::move(letter.client_context);
  event.invocation.trace_id = std::move(letter.trace_id);
  event.invocation.http = std::move(letter.http);
  event.invocation.version = letter.version;
  return event;
}

// Of a damaged one nothing but its error type becomes another.
Status redrive(Database& database, std::int64_t id, std::int64_t accepted_ms, Redriven& out) {
  static const std::string kSelect = fmt::format("SELECT {} FROM dead_letters WHERE id = ?", kLetterColumns);
  std::optional<DeadLetter> letter;
  bool is_whole = false;
  const auto take = [&](const Row& row) {
    letter = dead_letter_of(row);
    const std::optional<std::int64_t> checksum = row.optional_integer(11);
    is_whole = !checksum || *checksum == checksum_of(*letter);
  };
  if (Status read = database.query(kSelect, take, id); !read) return read;
  if (!letter) return {};
  if (!is_whole) return database.run("UPDATE dead_letters SET error_type = ? WHERE id = ?", kDamaged, id);
  out.events.push_back(event_of(*std::move(letter), accepted_ms));
  if (Status put = put_event(database, out.events.back()); !put) return put;
  return database.run("DELETE FROM dead_letters WHERE id = ?", id);
}

}  // namespace

Status redrive_dead_letters(Database& database, const Redrive& wanted, Redriven& out) {
  out = {};
  std::vector<std::int64_t> ids;
  Status status = choose_letters(database, wanted, ids, out.left);
  for (const std::int64_t id : ids) {
    if (!status) return status;
    status = redrive(database, id, wanted.accepted_ms, out);
  }
  return status;
}

}  // namespace fairlead::store
