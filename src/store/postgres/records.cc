#include "store/postgres/records.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "store/http_part.h"
#include "store/postgres/record_json.h"
#include "store/weights_json.h"

namespace fairlead::postgres {
namespace {

// First of each change of functions: changes commit in the order of their revisions, or who reads those after the last one it saw would
// miss one that was numbered earlier and committed later.
constexpr const char* kBeginChange = "SELECT pg_advisory_xact_lock(4604226)";
constexpr const char* kTouch =
    "UPDATE functions SET revision = nextval('revisions'), changed = now() WHERE name = $1::text AND NOT deleted";
constexpr const char* kTell = "SELECT pg_notify('fairlead', '')";

// A function's row is held until the commit, so that nothing comes to it while it is being deleted.
#define FL_FUNCTION_IS_THERE "EXISTS (SELECT 1 FROM functions WHERE name = $1::text AND NOT deleted FOR KEY SHARE)"

Statements change_of(const std::string& function, std::vector<Statement> statements) {
  Statements all{{kBeginChange, {}}};
  for (Statement& statement : statements) all.push_back(std::move(statement));
  all.push_back({kTouch, {function}});
  all.push_back({kTell, {}});
  return all;
}

std::optional<std::int64_t> widen(std::optional<int> value) {
  return value ? std::optional<std::int64_t>(*value) : std::nullopt;
}

std::optional<int> narrow(std::optional<std::int64_t> value) {
  return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
}

std::int64_t signed_of(std::uint64_t number) {
  return static_cast<std::int64_t>(number);
}

// 0 stays what it is: no time at all.
std::int64_t to_store(std::int64_t ms, const Writer& writer) {
  return ms == 0 ? 0 : ms + writer.ahead_ms;
}
std::int64_t from_store(std::int64_t ms, const Writer& writer) {
  return ms == 0 ? 0 : ms - writer.ahead_ms;
}
std::optional<std::int64_t> to_store(std::optional<std::int64_t> ms, const Writer& writer) {
  return ms ? std::optional(to_store(*ms, writer)) : std::nullopt;
}

#define FL_EVENT_COLUMNS                                                                                               \
  "request_id, function, payload, client_context, trace_id, http, attempts, accepted_ms, not_before_ms, deadline_ms, " \
  "version"
#define FL_LETTER_COLUMNS                                                                                             \
  "request_id, function, payload, client_context, trace_id, http, error_type, error_message, attempts, accepted_ms, " \
  "failed_ms, "                                                                                                       \
  "version"

QueuedEvent event_of(const Rows& rows, int row, const Writer& writer) {
  QueuedEvent event;
  Invocation& invocation = event.invocation;
  invocation.request_id = rows.text(row, 0);
  invocation.function = rows.text(row, 1);
  invocation.payload = rows.text(row, 2);
  invocation.client_context = rows.text(row, 3);
  invocation.trace_id = rows.text(row, 4);
  invocation.http = store::http_part(rows.text(row, 5));
  event.attempts = static_cast<int>(rows.integer(row, 6));
  event.accepted_ms = from_store(rows.integer(row, 7), writer);
  event.not_before_ms = from_store(rows.integer(row, 8), writer);
  if (const auto deadline = rows.optional_integer(row, 9)) invocation.deadline_ms = from_store(*deadline, writer);
  invocation.version = static_cast<std::uint64_t>(rows.integer(row, 10));
  return event;
}

}  // namespace

// ---- functions

Result<Statements> put_function(const FunctionRecord& record, const std::string& state_dir) {
  auto text = encode_record(record, state_dir);
  if (!text) return fail(text.error());
  // A name is its tenant's for as long as the function exists, whichever nodes they deploy at.
  constexpr const char* kPut = R"(
    INSERT INTO functions (name, tenant, revision, code_digest, record)
    VALUES ($1::text, $2::text, nextval('revisions'), $3::text, $4::text)
    ON CONFLICT (name) DO UPDATE SET tenant = excluded.tenant, revision = excluded.revision, deleted = false,
      code_digest = excluded.code_digest, record = excluded.record, changed = now()
    WHERE functions.deleted OR functions.tenant = excluded.tenant)";
  return Statements{{kBeginChange, {}},
                    {kPut, {record.name, tenant_of(record.config.tags), code_digest(record), *std::move(text)}},
                    {kTell, {}}};
}

// With all that goes by its name: the next function of that name may be somebody else's. The row first, which waits for what is being
// written to it.
Statements delete_function(const std::string& name) {
  Statements all{
      {kBeginChange, {}},
      {"SELECT 1 FROM functions WHERE name = $1::text FOR UPDATE", {name}},
      {"UPDATE functions SET deleted = true, record = '', code_digest = '', revision = nextval('revisions'), "
       "changed = now() WHERE name = $1::text AND NOT deleted",
       {name}}};
  for (const char* sql :
       {"DELETE FROM events WHERE function = $1::text", "DELETE FROM dead_letters WHERE function = $1::text",
        "DELETE FROM event_configs WHERE function = $1::text", "DELETE FROM profiles WHERE function = $1::text",
        "DELETE FROM versions WHERE function = $1::text", "DELETE FROM version_numbers WHERE function = $1::text",
        "DELETE FROM aliases WHERE function = $1::text"}) {
    all.push_back({sql, {name}});
  }
  all.push_back({kTell, {}});
  return all;
}

Statements put_event_config(const std::string& function, const EventInvokeConfig& config) {
  constexpr const char* kPut =
      "INSERT INTO event_configs SELECT $1::text, $2::bigint, $3::bigint, $4::bigint WHERE " FL_FUNCTION_IS_THERE
      " ON CONFLICT (function) DO UPDATE SET retries = excluded.retries, age_seconds = excluded.age_seconds, "
      "last_modified_ms = excluded.last_modified_ms";
  return change_of(function,
                   {{kPut, {function, widen(config.retries), widen(config.age_seconds), config.last_modified_ms}}});
}

Statements delete_event_config(const std::string& function) {
  return change_of(function, {{"DELETE FROM event_configs WHERE function = $1::text", {function}}});
}

Result<Statements> put_version(const FunctionRecord& version, const std::string& state_dir) {
  auto text = encode_record(version, state_dir);
  if (!text) return fail(text.error());
  constexpr const char* kPut =
      "INSERT INTO versions SELECT $1::text, $2::bigint, $3::text, $4::text WHERE " FL_FUNCTION_IS_THERE
      " ON CONFLICT (function, version) DO UPDATE SET code_digest = excluded.code_digest, record = excluded.record";
  constexpr const char* kNumber =
      "INSERT INTO version_numbers SELECT $1::text, $2::bigint WHERE " FL_FUNCTION_IS_THERE
      " ON CONFLICT (function) DO UPDATE SET last = greatest(version_numbers.last, excluded.last)";
  const std::int64_t number = signed_of(version.version);
  return change_of(version.name, {{kPut, {version.name, number, code_digest(version), *std::move(text)}},
                                  {kNumber, {version.name, number}}});
}

Statements delete_version(const std::string& function, std::uint64_t version) {
  return change_of(function, {{"DELETE FROM versions WHERE function = $1::text AND version = $2::bigint",
                               {function, signed_of(version)}}});
}

Statements put_alias(const std::string& function, const FunctionAlias& alias) {
  constexpr const char* kPut =
      "INSERT INTO aliases SELECT $1::text, $2::text, $3::bigint, $4::text, $5::text, $6::text "
      "WHERE " FL_FUNCTION_IS_THERE
      " ON CONFLICT (function, name) DO UPDATE SET version = excluded.version, description = excluded.description, "
      "weights = excluded.weights, revision_id = excluded.revision_id";
  return change_of(function, {{kPut,
                               {function, alias.name, signed_of(alias.version), alias.description,
                                store::encode_weights(alias.weights), alias.revision_id}}});
}

Statements delete_alias(const std::string& function, const std::string& alias) {
  return change_of(function,
                   {{"DELETE FROM aliases WHERE function = $1::text AND name = $2::text", {function, alias}}});
}

Statements put_profile(const FunctionProfile& profile) {
  constexpr const char* kPut =
      "INSERT INTO profiles (function, code_sha256, device, profile, measured_ms) "
      "SELECT $1::text, $2::text, $3::text, $4::text, $5::bigint WHERE " FL_FUNCTION_IS_THERE
      " ON CONFLICT (function, code_sha256, device) DO UPDATE SET profile = excluded.profile, "
      "measured_ms = excluded.measured_ms";
  constexpr const char* kTrim =
      "DELETE FROM profiles WHERE function = $1::text AND id NOT IN (SELECT id FROM profiles WHERE function = $1::text "
      "ORDER BY measured_ms DESC, id DESC LIMIT $2::bigint)";
  return {{kPut, {profile.function, profile.code_sha256, profile.device, to_json(profile), profile.measured_ms}},
          {kTrim, {profile.function, signed_of(Store::kMaxProfilesOfFunction)}}};
}

// ---- events

Row put_event(const QueuedEvent& event, const Writer& writer) {
  // Written again it keeps its place. A function's row is held until the commit, as above.
  using enum RowStatement::Type;
  static const RowStatement kPut{
      .sql = R"(
    WITH new AS MATERIALIZED (
      SELECT * FROM unnest($2::text[], $3::text[], $4::bytea[], $5::bytea[], $6::bytea[], $7::bytea[], $8::bigint[],
        $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[]) WITH ORDINALITY AS e ()" FL_EVENT_COLUMNS
             R"(, place)),
    gone AS MATERIALIZED (
      SELECT name FROM (SELECT DISTINCT function AS name FROM new) asked
      WHERE (SELECT deleted FROM functions WHERE name = asked.name FOR KEY SHARE))
    INSERT INTO events ()" FL_EVENT_COLUMNS R"(, owner)
    SELECT )" FL_EVENT_COLUMNS R"(, $1::bigint FROM new WHERE function NOT IN (SELECT name FROM gone)
      AND EXISTS (SELECT 1 FROM nodes WHERE epoch = $1::bigint AND NOT ended)
    ORDER BY place
    ON CONFLICT (request_id) DO UPDATE SET function = excluded.function, payload = excluded.payload,
      client_context = excluded.client_context, trace_id = excluded.trace_id, http = excluded.http,
      attempts = excluded.attempts, accepted_ms = excluded.accepted_ms, not_before_ms = excluded.not_before_ms,
      deadline_ms = excluded.deadline_ms, version = excluded.version, owner = excluded.owner
    RETURNING request_id)",
      .columns = {kText, kText, kBytes, kBytes, kBytes, kBytes, kNumber, kNumber, kNumber, kNumber, kNumber}};
  const Invocation& invocation = event.invocation;
  return {.statement = &kPut,
          .key = invocation.request_id,
          .shared = {writer.epoch},
          .columns = {invocation.request_id, invocation.function, invocation.payload, invocation.client_context,
                      invocation.trace_id, store::http_text(invocation.http), std::int64_t{event.attempts},
                      to_store(event.accepted_ms, writer), to_store(event.not_before_ms, writer),
                      to_store(invocation.deadline_ms, writer), signed_of(invocation.version)}};
}

bool is_put(const Rows& rows, std::size_t row, const std::string& request_id) {
  // Where all were, each stands at its own place.
  const auto stands_at = [&](int place) { return place < rows.size() && rows.text(place, 0) == request_id; };
  if (stands_at(static_cast<int>(row))) return true;
  for (int place = 0; place < rows.size(); ++place) {
    if (stands_at(place)) return true;
  }
  return false;
}

Statements retry_event(const QueuedEvent& event, const Writer& writer) {
  return {
      {"UPDATE events SET attempts = $2::bigint, not_before_ms = $3::bigint WHERE request_id = $1::text AND owner = "
       "$4::bigint",
       {event.invocation.request_id, std::int64_t{event.attempts}, to_store(event.not_before_ms, writer),
        writer.epoch}}};
}

Row finish_event(const std::string& request_id) {
  static const RowStatement kFinish{.sql = "DELETE FROM events WHERE request_id = ANY ($1::text[])",
                                    .columns = {RowStatement::Type::kText}};
  return {.statement = &kFinish, .key = request_id, .shared = {}, .columns = {request_id}};
}

// What another node has claimed meanwhile is that one's to bury.
Statements bury_event(const DeadLetter& letter, const Writer& writer) {
  constexpr const char* kLetter = R"(
    INSERT INTO dead_letters ()" FL_LETTER_COLUMNS R"()
    SELECT $2::text, $1::text, $3::bytea, $4::bytea, $5::bytea, $6::bytea, $7::text, $8::bytea, $9::bigint, $10::bigint,
      $11::bigint, $12::bigint
    WHERE )" FL_FUNCTION_IS_THERE R"( AND NOT EXISTS (SELECT 1 FROM events WHERE request_id = $2::text)
    ON CONFLICT (request_id) DO UPDATE SET id = excluded.id, function = excluded.function, payload = excluded.payload,
      client_context = excluded.client_context, trace_id = excluded.trace_id, http = excluded.http,
      error_type = excluded.error_type, error_message = excluded.error_message, attempts = excluded.attempts,
      accepted_ms = excluded.accepted_ms, failed_ms = excluded.failed_ms, version = excluded.version)";
  return {{"DELETE FROM events WHERE request_id = $1::text AND owner = $2::bigint", {letter.request_id, writer.epoch}},
          {kLetter,
           {letter.function, letter.request_id, letter.payload, letter.client_context, letter.trace_id,
            store::http_text(letter.http), letter.error_type, letter.error_message, std::int64_t{letter.attempts},
            to_store(letter.accepted_ms, writer), to_store(letter.failed_ms, writer), signed_of(letter.version)}}};
}

// The node's row is held until the commit, so that a claim is void before it or after it.
#define FL_CLAIM_COUNTS(epoch, claim)                                                                                \
  "self AS MATERIALIZED (SELECT 1 FROM nodes WHERE epoch = " epoch "::bigint AND NOT ended AND void_claims < " claim \
  "::bigint FOR SHARE)"

Statements claim_events(const std::vector<std::string>& functions, std::size_t limit, std::int64_t claim,
                        const Writer& writer) {
  constexpr const char* kClaim = "WITH " FL_CLAIM_COUNTS("$1", "$4") R"(,
    claimed AS (
      UPDATE events SET owner = $1::bigint, claim = $4::bigint
      WHERE EXISTS (SELECT 1 FROM self) AND request_id IN (
        SELECT e.request_id FROM events e JOIN nodes n ON n.epoch = e.owner
        WHERE n.ended AND e.function IN (SELECT json_array_elements_text($2::text::json))
        ORDER BY e.seq LIMIT $3::bigint FOR UPDATE OF e SKIP LOCKED)
      RETURNING )" FL_EVENT_COLUMNS R"(, seq)
    SELECT )" FL_EVENT_COLUMNS R"( FROM claimed ORDER BY seq)";
  return {{kClaim, {writer.epoch, nlohmann::json(functions).dump(), signed_of(limit), claim}}};
}

Statements void_claim(std::int64_t claim, const Writer& writer) {
  return {{"UPDATE nodes SET void_claims = greatest(void_claims, $2::bigint) WHERE epoch = $1::bigint",
           {writer.epoch, claim}},
          {"UPDATE events SET owner = 0 WHERE owner = $1::bigint AND claim = $2::bigint", {writer.epoch, claim}}};
}

Statements take_over(std::int64_t earlier_epoch, const Writer& writer) {
  return {
      {"UPDATE events SET owner = $1::bigint WHERE owner = $2::bigint", {writer.epoch, earlier_epoch}},
      {"SELECT " FL_EVENT_COLUMNS " FROM events WHERE owner = $1::bigint ORDER BY accepted_ms, seq", {writer.epoch}}};
}

std::vector<QueuedEvent> events_of(const Rows& rows, const Writer& writer) {
  std::vector<QueuedEvent> events;
  for (int row = 0; row < rows.size(); ++row) events.push_back(event_of(rows, row, writer));
  return events;
}

// ---- dead letters

Statements list_dead_letters(const std::string& function, std::size_t limit) {
  constexpr const char* kList = "SELECT " FL_LETTER_COLUMNS R"( FROM (
      SELECT *, sum(length(payload)) OVER (ORDER BY id DESC) AS bytes, row_number() OVER (ORDER BY id DESC) AS place
      FROM dead_letters WHERE $1::text = '' OR function = $1::text) d
    WHERE place <= $2::bigint AND (place = 1 OR bytes <= $3::bigint) ORDER BY id DESC)";
  return {{kList, {function, signed_of(limit), signed_of(Store::kMaxLetterBytes)}}};
}

std::vector<DeadLetter> letters_of(const Rows& rows, const Writer& writer) {
  std::vector<DeadLetter> letters;
  for (int row = 0; row < rows.size(); ++row) {
    DeadLetter letter;
    letter.request_id = rows.text(row, 0);
    letter.function = rows.text(row, 1);
    letter.payload = rows.text(row, 2);
    letter.client_context = rows.text(row, 3);
    letter.trace_id = rows.text(row, 4);
    letter.http = store::http_part(rows.text(row, 5));
    letter.error_type = rows.text(row, 6);
    letter.error_message = rows.text(row, 7);
    letter.attempts = static_cast<int>(rows.integer(row, 8));
    letter.accepted_ms = from_store(rows.integer(row, 9), writer);
    letter.failed_ms = from_store(rows.integer(row, 10), writer);
    letter.version = static_cast<std::uint64_t>(rows.integer(row, 11));
    letters.push_back(std::move(letter));
  }
  return letters;
}

// Of two nodes that redrive at once one finds a letter gone: what it removed is what it makes an event.
Statements redrive(const std::string& function, std::size_t limit, std::int64_t accepted_ms, std::int64_t claim,
                   const Writer& writer) {
  constexpr const char* kRedrive = "WITH " FL_CLAIM_COUNTS("$5", "$6") R"(,
    wanted AS (
      SELECT d.id, sum(length(d.payload)) OVER (ORDER BY d.id) AS bytes, row_number() OVER (ORDER BY d.id) AS place
      FROM dead_letters d JOIN functions f ON f.name = d.function AND NOT f.deleted
      WHERE $1::text = '' OR d.function = $1::text),
    gone AS (
      DELETE FROM dead_letters d USING wanted w
      WHERE d.id = w.id AND w.place <= $2::bigint AND (w.place = 1 OR w.bytes <= $3::bigint)
        AND EXISTS (SELECT 1 FROM self)
      RETURNING d.*),
    made AS (
      INSERT INTO events ()" FL_EVENT_COLUMNS R"(, owner, claim)
      SELECT request_id, function, payload, client_context, trace_id, http, 0, $4::bigint, 0, NULL, version, $5::bigint,
        $6::bigint
      FROM gone ORDER BY id
      ON CONFLICT (request_id) DO NOTHING
      RETURNING )" FL_EVENT_COLUMNS R"(, seq)
    SELECT )" FL_EVENT_COLUMNS R"(, (SELECT count(*) FROM wanted) - (SELECT count(*) FROM gone) FROM made
    UNION ALL
    SELECT '', '', '', '', '', '', 0, 0, 0, NULL, 0, (SELECT count(*) FROM wanted) - (SELECT count(*) FROM gone))";
  return {{kRedrive,
           {function, signed_of(limit), signed_of(Store::kMaxLetterBytes), to_store(accepted_ms, writer), writer.epoch,
            claim}}};
}

// The last row is no event: it has the count alone.
Redriven redriven_of(const Rows& rows, const Writer& writer) {
  Redriven redriven;
  constexpr int kLeft = 11;
  for (int row = 0; row < rows.size(); ++row) {
    redriven.left = static_cast<std::size_t>(std::max<std::int64_t>(0, rows.integer(row, kLeft)));
    QueuedEvent event = event_of(rows, row, writer);
    if (!event.invocation.request_id.empty()) redriven.events.push_back(std::move(event));
  }
  return redriven;
}

// As store/records.cc has it: whoever has most of them loses its oldest.
Statements trim_dead_letters() {
  constexpr const char* kTrim = R"(
    WITH owned AS (
      SELECT d.id, f.tenant, row_number() OVER (PARTITION BY d.function ORDER BY d.id DESC) AS depth
      FROM dead_letters d LEFT JOIN functions f ON f.name = d.function)
    DELETE FROM dead_letters WHERE (SELECT count(*) FROM owned) > $1::bigint + $1::bigint / 100 AND id IN (
      SELECT id FROM owned
      WHERE tenant IS NOT DISTINCT FROM (SELECT tenant FROM owned GROUP BY tenant ORDER BY count(*) DESC, tenant LIMIT 1)
      ORDER BY depth DESC, id LIMIT greatest(0, (SELECT count(*) FROM owned) - $1::bigint)))";
  return {{kTrim, {kMaxDeadLetters}}};
}

// ---- reading

Result<std::vector<FunctionRecord>> functions_of(const Rows& rows, const std::string& state_dir) {
  std::vector<FunctionRecord> functions;
  for (int row = 0; row < rows.size(); ++row) {
    auto record = decode_record(rows.text(row, 0), rows.text(row, 1), state_dir);
    if (!record) return fail(record.error());
    functions.push_back(*std::move(record));
  }
  return functions;
}

Statements load_published(const std::string& function) {
  return {
      {"SELECT function, record, version FROM versions WHERE $1::text = '' OR function = $1::text ORDER BY function, "
       "version",
       {function}},
      {"SELECT function, last FROM version_numbers WHERE $1::text = '' OR function = $1::text", {function}},
      {"SELECT function, name, version, description, weights, revision_id FROM aliases WHERE $1::text = '' OR function "
       "= "
       "$1::text ORDER BY function, name",
       {function}}};
}

Result<PublishedState> published_of(const std::vector<Rows>& rows, std::size_t first, const std::string& state_dir) {
  PublishedState published;
  auto versions = functions_of(rows[first], state_dir);
  if (!versions) return fail(versions.error());
  published.versions = *std::move(versions);
  for (int row = 0; row < rows[first].size(); ++row) {
    published.versions[static_cast<std::size_t>(row)].version = static_cast<std::uint64_t>(rows[first].integer(row, 2));
  }
  const Rows& numbers = rows[first + 1];
  for (int row = 0; row < numbers.size(); ++row) {
    published.last_numbers[numbers.text(row, 0)] = static_cast<std::uint64_t>(numbers.integer(row, 1));
  }
  const Rows& aliases = rows[first + 2];
  for (int row = 0; row < aliases.size(); ++row) {
    published.aliases[aliases.text(row, 0)].push_back({.name = aliases.text(row, 1),
                                                       .version = static_cast<std::uint64_t>(aliases.integer(row, 2)),
                                                       .description = aliases.text(row, 3),
                                                       .weights = store::decode_weights(aliases.text(row, 4)),
                                                       .revision_id = aliases.text(row, 5)});
  }
  return published;
}

std::map<std::string, EventInvokeConfig> event_configs_of(const Rows& rows) {
  std::map<std::string, EventInvokeConfig> configs;
  for (int row = 0; row < rows.size(); ++row) {
    configs[rows.text(row, 0)] = {.retries = narrow(rows.optional_integer(row, 1)),
                                  .age_seconds = narrow(rows.optional_integer(row, 2)),
                                  .last_modified_ms = rows.integer(row, 3)};
  }
  return configs;
}

// ---- documents

Statements change_documents(const DocumentChanges& changes) {
  Statements all{{"UPDATE document_clock SET revision = revision + 1 RETURNING revision", {}}};
  for (const DocumentChanges::One& one : changes.all) {
    if (one.body) {
      all.push_back(
          {"INSERT INTO documents (kind, name, body) SELECT $1::text, $2::text, $3::text WHERE $4::text = '' OR "
           "EXISTS (SELECT 1 FROM documents WHERE kind = $1::text AND name = $4::text) "
           "ON CONFLICT (kind, name) DO UPDATE SET body = excluded.body",
           {changes.kind, one.name, *one.body, changes.needs}});
    } else {
      all.push_back(
          {"DELETE FROM documents WHERE kind = $1::text AND name = $2::text AND ($3::text = '' OR "
           "EXISTS (SELECT 1 FROM documents WHERE kind = $1::text AND name = $3::text))",
           {changes.kind, one.name, changes.needs}});
    }
  }
  all.push_back({kTell, {}});
  return all;
}

Result<std::int64_t> revision_of(const std::vector<Rows>& rows, const DocumentChanges& changes) {
  const bool is_made = changes.all.empty() || changes.needs.empty() || rows[1].affected() > 0;
  if (is_made) return rows[0].integer(0, 0);
  return fail(Errc::kNotFound, "there is no {} {} any more: it was removed at another node", changes.kind,
              changes.needs);
}

SharedDocuments documents_of(const Rows& rows) {
  SharedDocuments found;
  for (int row = 0; row < rows.size(); ++row) {
    found.revision = rows.integer(row, 0);
    std::string kind = rows.text(row, 1);
    if (!kind.empty()) found.documents.push_back({std::move(kind), rows.text(row, 2), rows.text(row, 3)});
  }
  return found;
}

}  // namespace fairlead::postgres
