#include "store/records.h"

#include <nlohmann/json.hpp>

#include "store/http_part.h"
#include "store/image_json.h"

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
  return letter;
}

}  // namespace

Status put_function(Database& database, const std::string& state_dir, const FunctionRecord& record) {
  const FunctionConfig& config = record.config;
  Result<std::string> environment = encode_map(config.environment, "environment");
  if (!environment) return fail(environment.error());
  Result<std::string> tags = encode_map(config.tags, "tags");
  if (!tags) return fail(tags.error());
  Result<std::string> image = record.image ? encode_image(*record.image) : Result<std::string>("");
  if (!image) return fail(image.error());
  Result<std::string> image_config = record.image ? encode_overrides(config.image_config) : Result<std::string>("");
  if (!image_config) return fail(image_config.error());
  return database.run("INSERT OR REPLACE INTO functions VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", record.name,
                      config.description, config.role, config.handler, config.runtime, std::int64_t{config.memory_mib},
                      std::int64_t{config.timeout_seconds}, std::int64_t{config.ephemeral_storage_mib}, *environment,
                      *tags, record.code_sha256, record.code_bytes, relative_to(state_dir, record.code_path),
                      record.revision_id, record.last_modified_ms, widen(record.reserved_concurrency), *image,
                      *image_config);
}

Status delete_function(Database& database, const std::string& name) {
  return database.run("DELETE FROM functions WHERE name = ?", name);
}

Status load_functions(Database& database, const std::string& state_dir, std::vector<FunctionRecord>& out) {
  out.clear();
  Status decoded;
  Status status = database.query("SELECT * FROM functions ORDER BY name", [&](const Row& row) {
    FunctionRecord record = function_of(row, state_dir);
    Result<StringMap> environment = decode_map(row.text(8), record.name, "environment");
    Result<StringMap> tags = decode_map(row.text(9), record.name, "tags");
    if (!environment) decoded = fail(environment.error());
    if (!tags) decoded = fail(tags.error());
    Status image = read_image(row, record);
    if (!image) decoded = image;
    if (!environment || !tags || !image) return;
    record.config.environment = std::move(*environment);
    record.config.tags = std::move(*tags);
    out.push_back(std::move(record));
  });
  return status ? decoded : status;
}

Status put_event(Database& database, const QueuedEvent& event) {
  const Invocation& invocation = event.invocation;
  // An upsert keeps the row's place: rowid is the order of acceptance among equal times.
  return database.run(
      "INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT (request_id) DO UPDATE SET "
      "function = excluded.function, payload = excluded.payload, client_context = excluded.client_context, "
      "attempts = excluded.attempts, accepted_ms = excluded.accepted_ms, not_before_ms = excluded.not_before_ms, "
      "trace_id = excluded.trace_id, deadline_ms = excluded.deadline_ms, http = excluded.http",
      invocation.request_id, invocation.function, Blob{invocation.payload}, invocation.client_context,
      std::int64_t{event.attempts}, event.accepted_ms, event.not_before_ms, invocation.trace_id, invocation.deadline_ms,
      Blob{http_text(invocation.http)});
}

Status delete_event(Database& database, const std::string& request_id) {
  return database.run("DELETE FROM events WHERE request_id = ?", request_id);
}

Status load_events(Database& database, std::vector<QueuedEvent>& out) {
  out.clear();
  return database.query("SELECT * FROM events ORDER BY accepted_ms, rowid", [&](const Row& row) {
    out.push_back({.invocation = {.request_id = row.text(0),
                                  .function = row.text(1),
                                  .payload = row.text(2),
                                  .client_context = row.text(3),
                                  .trace_id = row.text(7),
                                  .deadline_ms = row.optional_integer(8),
                                  .http = http_part(row.text(9))},
                   .attempts = static_cast<int>(row.integer(4)),
                   .accepted_ms = row.integer(5),
                   .not_before_ms = row.integer(6)});
  });
}

Status bury_event(Database& database, const DeadLetter& letter) {
  if (Status status = delete_event(database, letter.request_id); !status) return status;
  Status status = database.run(
      "INSERT OR REPLACE INTO dead_letters (request_id, function, payload, error_type, error_message, attempts, "
      "accepted_ms, failed_ms) VALUES (?,?,?,?,?,?,?,?)",
      letter.request_id, letter.function, Blob{letter.payload}, letter.error_type, letter.error_message,
      std::int64_t{letter.attempts}, letter.accepted_ms, letter.failed_ms);
  if (!status) return status;
  return database.run("DELETE FROM dead_letters WHERE id <= (SELECT max(id) FROM dead_letters) - ?", kMaxDeadLetters);
}

Status load_dead_letters(Database& database, const std::string& function, std::size_t limit,
                         std::vector<DeadLetter>& out) {
  out.clear();
  return database.query(
      "SELECT request_id, function, payload, error_type, error_message, attempts, accepted_ms, failed_ms "
      "FROM dead_letters WHERE ?1 = '' OR function = ?1 ORDER BY id DESC LIMIT ?2",
      [&](const Row& row) { out.push_back(dead_letter_of(row)); }, function, static_cast<std::int64_t>(limit));
}

}  // namespace fairlead::store
