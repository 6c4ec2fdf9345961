#include "store/sqlite.h"

namespace fairlead::store {
namespace {

Errc errc_of(int sqlite_code) {
  switch (sqlite_code & 0xff) {  // the primary code of an extended one
    case SQLITE_FULL: return Errc::kResourceExhausted;
    case SQLITE_NOMEM: return Errc::kResourceExhausted;
    case SQLITE_CORRUPT: return Errc::kCorrupt;
    case SQLITE_NOTADB: return Errc::kCorrupt;
    case SQLITE_IOERR: return Errc::kIo;
    case SQLITE_CANTOPEN: return Errc::kIo;
    case SQLITE_READONLY: return Errc::kIo;
    case SQLITE_BUSY: return Errc::kConflict;
    case SQLITE_TOOBIG: return Errc::kTooLarge;
    default: return Errc::kInternal;
  }
}

}  // namespace

std::optional<std::int64_t> Row::optional_integer(int column) const {
  if (sqlite3_column_type(statement_, column) == SQLITE_NULL) return std::nullopt;
  return integer(column);
}

std::string Row::text(int column) const {
  const void* bytes = sqlite3_column_blob(statement_, column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes), static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

Result<std::unique_ptr<Database>> Database::open(const std::string& path) {
  sqlite3* connection = nullptr;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  int code = sqlite3_open_v2(path.c_str(), &connection, flags, nullptr);
  auto database = std::unique_ptr<Database>(new Database(connection, path));
  if (code != SQLITE_OK) return fail(database->error("open"));
  sqlite3_extended_result_codes(connection, 1);
  sqlite3_busy_timeout(connection, 5000);  // a person's sqlite3 shell may hold the file for a moment
  return database;
}

Database::~Database() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close_v2(connection_);
}

Result<sqlite3_stmt*> Database::prepare(std::string_view sql) {
  if (auto known = statements_.find(sql); known != statements_.end()) return known->second;
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v3(connection_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                &statement, nullptr);
  if (code != SQLITE_OK) return fail(error(sql));
  statements_.emplace(sql, statement);
  return statement;
}

Error Database::error(std::string_view what) const {
  if (connection_ == nullptr) return Error{Errc::kResourceExhausted, path_ + ": out of memory"};
  Errc code = errc_of(sqlite3_extended_errcode(connection_));
  std::string message = fmt::format("{}: {} ({})", path_, sqlite3_errmsg(connection_), what.substr(0, what.find('\n')));
  if ((sqlite3_errcode(connection_) & 0xff) == SQLITE_FULL) message += "; free space on the disk that holds it";
  return Error{code, std::move(message)};
}

void Database::bind(sqlite3_stmt* statement, int index, std::int64_t value) {
  sqlite3_bind_int64(statement, index, value);
}

void Database::bind(sqlite3_stmt* statement, int index, std::optional<std::int64_t> value) {
  if (value)
    sqlite3_bind_int64(statement, index, *value);
  else
    sqlite3_bind_null(statement, index);
}

void Database::bind(sqlite3_stmt* statement, int index, std::string_view text) {
  // A null pointer would bind NULL; an empty text is a value.
  const char* data = text.data() == nullptr ? "" : text.data();
  sqlite3_bind_text64(statement, index, data, text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

void Database::bind(sqlite3_stmt* statement, int index, Blob blob) {
  const char* data = blob.bytes.data() == nullptr ? "" : blob.bytes.data();
  sqlite3_bind_blob64(statement, index, data, blob.bytes.size(), SQLITE_STATIC);
}

}  // namespace fairlead::store
