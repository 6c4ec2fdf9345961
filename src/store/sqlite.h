// SQLite as values: a connection whose statements are prepared once, and errors as Result. SQL stays visible at the
// call.
//
//   database.run("DELETE FROM events WHERE request_id = ?", id);
//   database.query("SELECT name FROM functions", [&](const Row& row) { names.push_back(row.text(0)); });
//
// Errors: kResourceExhausted (disk full), kCorrupt, kIo, kInternal (wrong SQL); the message names the file.
// Threads: one thread at a time.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fairlead::store {

struct Blob {  // bind as BLOB instead of TEXT
  std::string_view bytes;
};

// The current row of a query; valid inside the callback.
class Row {
 public:
  explicit Row(sqlite3_stmt* statement) : statement_(statement) {}
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  std::optional<std::int64_t> optional_integer(int column) const;
  std::string text(int column) const;  // TEXT or BLOB

 private:
  sqlite3_stmt* statement_;
};

class Database {
 public:
  // Creates the file when there is none.
  static Result<std::unique_ptr<Database>> open(const std::string& path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Bound values must outlive the call only.
  template <typename... Values>
  Status run(std::string_view sql, const Values&... values) {
    return query(
        sql, [](const Row&) {}, values...);
  }

  template <typename OnRow, typename... Values>
  Status query(std::string_view sql, OnRow on_row, const Values&... values) {
    Result<sqlite3_stmt*> statement = prepare(sql);
    if (!statement) return fail(statement.error());
    int index = 0;
    (bind(*statement, ++index, values), ...);
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(*statement)) == SQLITE_ROW) on_row(Row(*statement));
    Status status = code == SQLITE_DONE ? Status() : Status(fail(error(sql)));
    sqlite3_reset(*statement);
    sqlite3_clear_bindings(*statement);
    return status;
  }

  bool in_transaction() const { return sqlite3_get_autocommit(connection_) == 0; }
  const std::string& path() const { return path_; }

 private:
  Database(sqlite3* connection, std::string path) : connection_(connection), path_(std::move(path)) {}

  Result<sqlite3_stmt*> prepare(std::string_view sql);
  Error error(std::string_view what) const;

  static void bind(sqlite3_stmt* statement, int index, std::int64_t value);
  static void bind(sqlite3_stmt* statement, int index, std::optional<std::int64_t> value);
  static void bind(sqlite3_stmt* statement, int index, std::string_view text);
  static void bind(sqlite3_stmt* statement, int index, Blob blob);

  sqlite3* connection_;
  std::string path_;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;  // by SQL text
};

}  // namespace fairlead::store
