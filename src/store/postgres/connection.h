// A connection to PostgreSQL (libpq) for a thread that may wait: statements prepared once, several of them in one round trip, and
// errors as Result. Nothing waits for longer than its patience, whatever the server does.
//
//   rows = connection.run({"SELECT name FROM functions WHERE revision > $1::bigint", {revision}});
//   all = connection.transact({insert, remove, notify});   // all or nothing
//
// The idea: a transaction costs a round trip and a sync. In pipeline mode its statements are sent together, and the server commits
// them at the end as one. 64 inserts cost what one does, and 64 times the server's own work.
//
// Errors: kUnavailable (the connection is lost, lost() says so too; whether a commit took place is not known then), kInvalidArgument
// (text that is not UTF-8), kResourceExhausted (its disk is full), kForbidden (a right is missing), kConflict (a deadlock: run it
// again), kInternal. The message names the server, and no password.
// Threads: one at a time.
#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace fairlead::postgres {

// Where the server is, and who asks.
struct Target {
  std::string url;       // postgresql://..., without a password
  std::string password;  // "": PGPASSFILE, or none is asked for
  std::string label;     // for people: "db at host:port"
};
// kInvalidArgument: it is no URL of PostgreSQL, or has a password in it, which every user of the machine could read.
Result<Target> parse_target(const std::string& url, const std::string& password_file);

// What a statement is given: NULL, a number, or bytes as they are.
struct Value {
  Value(std::int64_t number) : is_number(true), bytes(std::to_string(number)) {}  // NOLINT(google-explicit-constructor)
  Value(std::string text) : bytes(std::move(text)) {}                             // NOLINT(google-explicit-constructor)
  // NOLINTNEXTLINE(google-explicit-constructor)
  Value(std::optional<std::int64_t> number) : is_null(!number), is_number(true) {
    if (number) bytes = std::to_string(*number);
  }
  bool is_null = false;
  bool is_number = false;
  std::string bytes;
};

struct Statement {
  const char* sql;  // a literal: what is prepared is remembered by its text
  std::vector<Value> values;
};

class Rows {
 public:
  // Bytes as the server sent them; none: NULL.
  using Cells = std::vector<std::vector<std::optional<std::string>>>;

  explicit Rows(PGresult* result);
  static Rows of(const Cells& cells);  // REQUIRES: libpq was found; all rows have as many
  Cells cells() const;
  int size() const;
  std::int64_t affected() const;  // rows that a statement wrote
  std::string text(int row, int column) const;
  std::int64_t integer(int row, int column) const;  // of any width; a boolean is 0 or 1
  std::optional<std::int64_t> optional_integer(int row, int column) const;

 private:
  std::unique_ptr<PGresult, void (*)(PGresult*)> result_;
};

class Connection {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(10);  // with one transaction

  // kUnavailable says why there is none. Takes at most 3 s a host.
  static Result<std::unique_ptr<Connection>> open(const Target& target);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Result<Rows> run(const Statement& statement);
  // One transaction; the results in the order of the statements.
  Result<std::vector<Rows>> transact(const std::vector<Statement>& statements);

  // Until somebody notified (true), `wake` is readable, or the time has come. REQUIRES: LISTEN was run.
  bool wait_for_notice(int wake, Instant deadline);

  bool lost() const { return is_lost_; }
  const std::string& label() const { return label_; }

 private:
  Connection(PGconn* connection, std::string label) : connection_(connection), label_(std::move(label)) {}

  Status prepare(const char* sql);
  bool send(const Statement& statement);
  bool pump(short events, Instant deadline);  // whether bytes may have come or gone; false: it is lost
  PGresult* next_result(Instant deadline);    // null: the end of a statement's, or lost
  Error lose(std::string_view why);
  Error error_of(const PGresult* result);

  PGconn* const connection_;
  const std::string label_;
  bool is_lost_ = false;
  std::map<std::string, std::string, std::less<>> prepared_;  // names by SQL
};

}  // namespace fairlead::postgres
