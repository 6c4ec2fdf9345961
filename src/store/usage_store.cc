#include "store/usage_store.h"

#include <cstdio>
#include <utility>

#include "store/sqlite.h"

namespace fairlead::store {
namespace {

constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS usage (tenant TEXT NOT NULL, hour INTEGER NOT NULL, function TEXT NOT NULL, "
    "calls INTEGER NOT NULL, errors INTEGER NOT NULL, gpu_ns INTEGER NOT NULL, memory_kib_ms INTEGER NOT NULL, "
    "PRIMARY KEY (tenant, hour, function)) WITHOUT ROWID";

Status prepare(Database& database) {
  for (const char* sql : {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", "PRAGMA quick_check", kSchema}) {
    bool is_whole = true;
    const bool checks = std::string_view(sql).ends_with("quick_check");
    if (Status done = database.query(sql, [&](const Row& row) { is_whole = !checks || row.text(0) == "ok"; }); !done)
      return done;
    if (!is_whole) return fail(Errc::kCorrupt, "{}: quick_check finds it damaged", database.path());
  }
  return {};
}

Result<std::unique_ptr<Database>> open_prepared(const std::string& path) {
  auto database = Database::open(path);
  if (!database) return fail(database.error());
  if (Status ready = prepare(**database); !ready) return fail(ready.error());
  return database;
}

std::int64_t stored(std::uint64_t count) {
  return static_cast<std::int64_t>(count);
}

}  // namespace

UsageStore::UsageStore(std::unique_ptr<Database> database, bool was_damaged)
    : database_(std::move(database)), was_damaged_(was_damaged) {}
UsageStore::~UsageStore() = default;

Result<std::unique_ptr<UsageStore>> UsageStore::open(const std::string& path) {
  auto database = open_prepared(path);
  bool was_damaged = false;
  if (!database && database.error().code == Errc::kCorrupt) {
    was_damaged = true;
    std::rename(path.c_str(), (path + ".damaged").c_str());
    for (const char* beside : {"-wal", "-shm"}) std::remove((path + beside).c_str());
    database = open_prepared(path);
  }
  if (!database) return fail(database.error());
  return std::unique_ptr<UsageStore>(new UsageStore(*std::move(database), was_damaged));
}

Status UsageStore::add(const std::vector<UsageRow>& rows) {
  Status done = database_->run("BEGIN IMMEDIATE");
  for (const auto& [key, counts] : rows) {
    if (!done) break;
    done = database_->run(
        "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, "
        "errors = errors + excluded.errors, gpu_ns = gpu_ns + excluded.gpu_ns, "
        "memory_kib_ms = memory_kib_ms + excluded.memory_kib_ms",
        std::string_view(key.tenant), key.hour, std::string_view(key.function), stored(counts.calls),
        stored(counts.errors), std::int64_t{counts.gpu_time.count()}, counts.memory_kib_ms);
  }
  if (done) done = database_->run("COMMIT");
  if (!done && database_->in_transaction()) (void)database_->run("ROLLBACK");
  return done;
}

Status UsageStore::forget_before(std::int64_t hour) {
  return database_->run("DELETE FROM usage WHERE hour < ?", hour);
}

Result<std::vector<UsageRow>> UsageStore::read(const UsageQuery& query) {
  std::vector<UsageRow> rows;
  const UsageKey after = query.after.value_or(UsageKey());
  const std::string tenant = query.tenant.value_or("");
  const Status done = database_->query(
      "SELECT tenant, hour, function, calls, errors, gpu_ns, memory_kib_ms FROM usage WHERE hour >= ? AND hour < ? AND "
      "(tenant, hour, function) > (?, ?, ?) AND tenant >= ? AND (? = 0 OR tenant = ?) "
      "ORDER BY tenant, hour, function LIMIT ?",
      [&](const Row& row) {
        rows.push_back({.key = {row.text(0), row.integer(1), row.text(2)},
                        .counts = {.calls = static_cast<std::uint64_t>(row.integer(3)),
                                   .errors = static_cast<std::uint64_t>(row.integer(4)),
                                   .gpu_time = Duration(row.integer(5)),
                                   .memory_kib_ms = row.integer(6)}});
      },
      query.from_hour, query.until_hour, std::string_view(after.tenant), after.hour, std::string_view(after.function),
      std::string_view(tenant), std::int64_t{query.tenant ? 1 : 0}, std::string_view(tenant),
      static_cast<std::int64_t>(query.most));
  if (!done) return fail(done.error());
  return rows;
}

}  // namespace fairlead::store
