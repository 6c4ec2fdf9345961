#include "store/postgres/connection.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <type_traits>

#include "base/clock.h"
#include "base/read_file.h"

namespace fairlead::postgres {
namespace {

// libpq as it is found when a common store is first asked for: a node with a store of its own needs none, and the program that runs on
// other distributions is not linked with any.
struct Libpq {
  decltype(&PQclear) clear = nullptr;
  decltype(&PQcmdTuples) cmdTuples = nullptr;
  decltype(&PQconnectdbParams) connectdbParams = nullptr;
  decltype(&PQconninfoFree) conninfoFree = nullptr;
  decltype(&PQconninfoParse) conninfoParse = nullptr;
  decltype(&PQconsumeInput) consumeInput = nullptr;
  decltype(&PQmakeEmptyPGresult) makeEmptyPGresult = nullptr;
  decltype(&PQnfields) nfields = nullptr;
  decltype(&PQsetResultAttrs) setResultAttrs = nullptr;
  decltype(&PQsetvalue) setvalue = nullptr;
  decltype(&PQenterPipelineMode) enterPipelineMode = nullptr;
  decltype(&PQerrorMessage) errorMessage = nullptr;
  decltype(&PQexitPipelineMode) exitPipelineMode = nullptr;
  decltype(&PQfinish) finish = nullptr;
  decltype(&PQflush) flush = nullptr;
  decltype(&PQfreemem) freemem = nullptr;
  decltype(&PQgetResult) getResult = nullptr;
  decltype(&PQgetisnull) getisnull = nullptr;
  decltype(&PQgetlength) getlength = nullptr;
  decltype(&PQgetvalue) getvalue = nullptr;
  decltype(&PQisBusy) isBusy = nullptr;
  decltype(&PQnotifies) notifies = nullptr;
  decltype(&PQntuples) ntuples = nullptr;
  decltype(&PQpipelineSync) pipelineSync = nullptr;
  decltype(&PQresultErrorField) resultErrorField = nullptr;
  decltype(&PQresultErrorMessage) resultErrorMessage = nullptr;
  decltype(&PQresultStatus) resultStatus = nullptr;
  decltype(&PQsendPrepare) sendPrepare = nullptr;
  decltype(&PQsendQueryPrepared) sendQueryPrepared = nullptr;
  decltype(&PQsetNoticeProcessor) setNoticeProcessor = nullptr;
  decltype(&PQsetnonblocking) setnonblocking = nullptr;
  decltype(&PQsocket) socket = nullptr;
  decltype(&PQstatus) status = nullptr;
};

std::string g_why_no_libpq;

// Null: g_why_no_libpq.
const Libpq* load_libpq() {
  void* const library = ::dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    g_why_no_libpq = fmt::format("--store needs PostgreSQL's client library (Debian: libpq5): {}", ::dlerror());
    return nullptr;
  }
  static Libpq loaded;
  const auto load = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr)
      g_why_no_libpq = fmt::format("libpq.so.5 has no {}: one of PostgreSQL 14 or later is needed", name);
  };
  load(loaded.clear, "PQclear");
  load(loaded.cmdTuples, "PQcmdTuples");
  load(loaded.connectdbParams, "PQconnectdbParams");
  load(loaded.conninfoFree, "PQconninfoFree");
  load(loaded.conninfoParse, "PQconninfoParse");
  load(loaded.consumeInput, "PQconsumeInput");
  load(loaded.makeEmptyPGresult, "PQmakeEmptyPGresult");
  load(loaded.nfields, "PQnfields");
  load(loaded.setResultAttrs, "PQsetResultAttrs");
  load(loaded.setvalue, "PQsetvalue");
  load(loaded.enterPipelineMode, "PQenterPipelineMode");
  load(loaded.errorMessage, "PQerrorMessage");
  load(loaded.exitPipelineMode, "PQexitPipelineMode");
  load(loaded.finish, "PQfinish");
  load(loaded.flush, "PQflush");
  load(loaded.freemem, "PQfreemem");
  load(loaded.getResult, "PQgetResult");
  load(loaded.getisnull, "PQgetisnull");
  load(loaded.getlength, "PQgetlength");
  load(loaded.getvalue, "PQgetvalue");
  load(loaded.isBusy, "PQisBusy");
  load(loaded.notifies, "PQnotifies");
  load(loaded.ntuples, "PQntuples");
  load(loaded.pipelineSync, "PQpipelineSync");
  load(loaded.resultErrorField, "PQresultErrorField");
  load(loaded.resultErrorMessage, "PQresultErrorMessage");
  load(loaded.resultStatus, "PQresultStatus");
  load(loaded.sendPrepare, "PQsendPrepare");
  load(loaded.sendQueryPrepared, "PQsendQueryPrepared");
  load(loaded.setNoticeProcessor, "PQsetNoticeProcessor");
  load(loaded.setnonblocking, "PQsetnonblocking");
  load(loaded.socket, "PQsocket");
  load(loaded.status, "PQstatus");
  return g_why_no_libpq.empty() ? &loaded : nullptr;
}

const Libpq* found_libpq() {
  static const Libpq* const found = load_libpq();
  return found;
}

// REQUIRES: it was found.
const Libpq& pq() {
  return *found_libpq();
}

using Options = std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)>;

std::string option_of(const PQconninfoOption* options, std::string_view keyword) {
  for (const PQconninfoOption* one = options; one->keyword != nullptr; ++one) {
    if (one->keyword == keyword && one->val != nullptr) return one->val;
  }
  return "";
}

std::string one_line(const char* text) {
  std::string line = text == nullptr ? "" : text;
  while (!line.empty() && line.back() == '\n') line.pop_back();
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

// The first line, which may be followed by an end of line.
Result<std::string> read_password(const std::string& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return fail(errno_error(errno, "--store-password-file " + file));
  if ((status.st_mode & 077) != 0) {
    return fail(Errc::kInvalidArgument, "--store-password-file {} has mode {:o}, others may read it: chmod 600 {}",
                file, status.st_mode & 0777, file);
  }
  auto text = read_whole_file(file);
  if (!text) return fail(text.error());
  return text->substr(0, text->find('\n'));
}

Errc code_of(std::string_view state) {
  if (state.starts_with("08") || state.starts_with("57P")) return Errc::kUnavailable;
  // Another connection may do better: a statement that was cancelled, or waited too long for a lock; one that was prepared is not there any
  // more; a table was altered under its plan.
  if (state == "57014" || state == "55P03" || state == "26000" || state == "0A000") return Errc::kUnavailable;
  if (state == "22021" || state == "22P05") return Errc::kInvalidArgument;
  if (state.starts_with("53")) return Errc::kResourceExhausted;
  if (state == "42501" || state.starts_with("28")) return Errc::kForbidden;
  if (state.starts_with("40")) return Errc::kConflict;
  return Errc::kInternal;
}

int milliseconds_until(Instant deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - monotonic_now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

}  // namespace

Result<Target> parse_target(const std::string& url, const std::string& password_file) {
  if (!url.starts_with("postgresql://") && !url.starts_with("postgres://")) {
    return fail(Errc::kInvalidArgument, "--store is '{}', which is no postgresql://[USER@]HOST[:PORT]/DATABASE",
                url.substr(0, url.find(':') + 1) + "...");
  }
  if (found_libpq() == nullptr) return fail(Errc::kUnavailable, "{}", g_why_no_libpq);
  char* why = nullptr;
  const Options parsed(pq().conninfoParse(url.c_str(), &why), pq().conninfoFree);
  const std::unique_ptr<char, void (*)(void*)> said(why, pq().freemem);
  if (!parsed) return fail(Errc::kInvalidArgument, "--store cannot be read: {}", one_line(why));
  if (!option_of(parsed.get(), "password").empty()) {
    return fail(Errc::kInvalidArgument,
                "--store has a password in it, which every user of this machine could read: put it into a file of mode "
                "600 and give that with --store-password-file, or use PGPASSFILE");
  }
  Target target{.url = url, .password = {}, .label = {}};
  if (!password_file.empty()) {
    auto password = read_password(password_file);
    if (!password) return fail(password.error());
    target.password = *std::move(password);
  }
  const std::string host = option_of(parsed.get(), "host"), port = option_of(parsed.get(), "port");
  target.label = fmt::format("PostgreSQL, database {} at {}{}{}", option_of(parsed.get(), "dbname"), host,
                             port.empty() ? "" : ":", port);
  return target;
}

// ---- rows

Rows::Rows(PGresult* result) : result_(result, pq().clear) {}

Rows Rows::of(const Cells& cells) {
  PGresult* const made = pq().makeEmptyPGresult(nullptr, PGRES_TUPLES_OK);
  Rows rows(made);
  if (made == nullptr || cells.empty()) return rows;
  std::string name;
  std::vector<PGresAttDesc> columns(cells.front().size(), PGresAttDesc{.name = name.data(), .format = 1});
  pq().setResultAttrs(made, static_cast<int>(columns.size()), columns.data());
  for (std::size_t row = 0; row < cells.size(); ++row) {
    for (std::size_t column = 0; column < columns.size(); ++column) {
      std::string bytes = cells[row].at(column).value_or("");
      const int length = cells[row][column] ? static_cast<int>(bytes.size()) : -1;
      pq().setvalue(made, static_cast<int>(row), static_cast<int>(column), bytes.data(), length);
    }
  }
  return rows;
}

Rows::Cells Rows::cells() const {
  Cells cells(static_cast<std::size_t>(size()));
  for (int row = 0; row < size(); ++row) {
    for (int column = 0; column < pq().nfields(result_.get()); ++column) {
      const bool is_null = pq().getisnull(result_.get(), row, column) != 0;
      cells[static_cast<std::size_t>(row)].push_back(is_null ? std::nullopt : std::optional(text(row, column)));
    }
  }
  return cells;
}

int Rows::size() const {
  return pq().ntuples(result_.get());
}

std::int64_t Rows::affected() const {
  const char* count = pq().cmdTuples(result_.get());
  return *count == '\0' ? 0 : std::strtoll(count, nullptr, 10);
}

std::string Rows::text(int row, int column) const {
  return {pq().getvalue(result_.get(), row, column),
          static_cast<std::size_t>(pq().getlength(result_.get(), row, column))};
}

// Big-endian, of one to eight bytes.
std::int64_t Rows::integer(int row, int column) const {
  const auto* bytes = reinterpret_cast<const unsigned char*>(pq().getvalue(result_.get(), row, column));
  const int size = pq().getlength(result_.get(), row, column);
  std::uint64_t value = 0;
  for (int i = 0; i < size; ++i) value = value << 8 | bytes[i];
  if (size > 0 && size < 8 && (bytes[0] & 0x80) != 0) value |= ~std::uint64_t{0} << (8 * size);
  return static_cast<std::int64_t>(value);
}

std::optional<std::int64_t> Rows::optional_integer(int row, int column) const {
  if (pq().getisnull(result_.get(), row, column) != 0) return std::nullopt;
  return integer(row, column);
}

// ---- connection

Result<std::unique_ptr<Connection>> Connection::open(const Target& target) {
  // What stands before the URL is what it does not say otherwise: the last one of a name counts.
  const std::array<std::pair<const char*, const char*>, 10> settings{{{"connect_timeout", "3"},
                                                                      {"target_session_attrs", "read-write"},
                                                                      {"keepalives_idle", "5"},
                                                                      {"keepalives_interval", "2"},
                                                                      {"keepalives_count", "3"},
                                                                      {"tcp_user_timeout", "10000"},
                                                                      {"application_name", "fairlead"},
                                                                      {"dbname", target.url.c_str()},
                                                                      {"password", target.password.c_str()},
                                                                      {"client_encoding", "UTF8"}}};
  std::array<const char*, 11> names{}, values{};
  std::size_t count = 0;
  for (const auto& [name, value] : settings) {
    if (*value == '\0') continue;
    names[count] = name;
    values[count++] = value;
  }
  PGconn* const raw = pq().connectdbParams(names.data(), values.data(), 1);
  std::unique_ptr<Connection> connection(new Connection(raw, target.label));
  if (pq().status(raw) != CONNECTION_OK) {
    return fail(Errc::kUnavailable, "{}: {}", target.label, one_line(pq().errorMessage(raw)));
  }
  pq().setnonblocking(raw, 1);
  pq().setNoticeProcessor(
      raw, [](void*, const char*) {}, nullptr);  // it would print them
  // Accepted is committed: a server that is told to answer before that is told otherwise.
  for (const char* sql :
       {"SET search_path TO fairlead", "SET statement_timeout TO 30000", "SET lock_timeout TO 0",
        "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"}) {
    if (auto set = connection->run({sql, {}}); !set) return fail(set.error());
  }
  return connection;
}

Connection::~Connection() {
  pq().finish(connection_);
}

Error Connection::lose(std::string_view why) {
  is_lost_ = true;
  return {Errc::kUnavailable, fmt::format("{}: {}", label_, why)};
}

Error Connection::error_of(const PGresult* result) {
  const char* state = pq().resultErrorField(result, PG_DIAG_SQLSTATE);
  const char* primary = pq().resultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  const std::string text = one_line(primary != nullptr ? primary : pq().resultErrorMessage(result));
  const Errc code = state == nullptr ? Errc::kUnavailable : code_of(state);
  if (code == Errc::kUnavailable) return lose(text);
  return {code, fmt::format("{}: {}", label_, text)};
}

bool Connection::pump(short events, Instant deadline) {
  const int flushed = pq().flush(connection_);
  if (flushed < 0) return false;
  pollfd wait{
      .fd = pq().socket(connection_), .events = static_cast<short>(events | (flushed > 0 ? POLLOUT : 0)), .revents = 0};
  const int ready = ::poll(&wait, 1, milliseconds_until(deadline));
  if (ready < 0) return errno == EINTR;
  if (ready == 0) return false;
  if ((wait.revents & (POLLIN | POLLHUP | POLLERR)) != 0 && pq().consumeInput(connection_) == 0) return false;
  return pq().status(connection_) == CONNECTION_OK;
}

PGresult* Connection::next_result(Instant deadline) {
  while (pq().isBusy(connection_) != 0) {
    if (pump(POLLIN, deadline)) continue;
    is_lost_ = true;
    return nullptr;
  }
  return pq().getResult(connection_);
}

Status Connection::prepare(const char* sql) {
  if (prepared_.contains(std::string_view(sql))) return {};
  const std::string name = "s" + std::to_string(prepared_.size());
  if (pq().sendPrepare(connection_, name.c_str(), sql, 0, nullptr) == 0)
    return fail(lose(one_line(pq().errorMessage(connection_))));
  Status status;
  const Instant deadline = monotonic_now() + kPatience;
  while (PGresult* const raw = next_result(deadline)) {
    const std::unique_ptr<PGresult, void (*)(PGresult*)> result(raw, pq().clear);
    if (pq().resultStatus(raw) != PGRES_COMMAND_OK && status) status = fail(error_of(raw));
  }
  if (status && is_lost_) return fail(lose("it did not answer, or the connection ended"));
  if (status) prepared_[sql] = name;
  return status;
}

bool Connection::send(const Statement& statement) {
  const std::size_t count = statement.values.size();
  std::vector<const char*> bytes(count);
  std::vector<int> lengths(count), formats(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Value& value = statement.values[i];
    bytes[i] = value.is_null ? nullptr : value.bytes.data();
    lengths[i] = static_cast<int>(value.bytes.size());
    formats[i] = value.is_number ? 0 : 1;  // text of a number, or bytes as they are: a NUL inside is not an end
  }
  return pq().sendQueryPrepared(connection_, prepared_.find(std::string_view(statement.sql))->second.c_str(),
                                static_cast<int>(count), bytes.data(), lengths.data(), formats.data(), 1) != 0;
}

Result<Rows> Connection::run(const Statement& statement) {
  auto rows = transact({statement});
  if (!rows) return fail(rows.error());
  if (rows->empty()) return fail(Errc::kInternal, "{}: a statement without a result", label_);
  return std::move(rows->front());
}

Result<std::vector<Rows>> Connection::transact(const std::vector<Statement>& statements) {
  if (is_lost_) return fail(lose("the connection is lost"));
  for (const Statement& statement : statements) {
    if (Status prepared = prepare(statement.sql); !prepared) return fail(prepared.error());
  }
  bool sent = pq().enterPipelineMode(connection_) != 0;
  for (std::size_t i = 0; sent && i < statements.size(); ++i) sent = send(statements[i]);
  if (!sent || pq().pipelineSync(connection_) == 0) return fail(lose(one_line(pq().errorMessage(connection_))));
  std::vector<Rows> all;
  std::optional<Error> error;
  const Instant deadline = monotonic_now() + kPatience;
  bool is_over = false;
  while (!is_over) {
    PGresult* const raw = next_result(deadline);
    if (raw == nullptr && (is_lost_ || pq().status(connection_) != CONNECTION_OK)) {
      return fail(lose("it did not answer, or the connection ended"));
    }
    if (raw == nullptr) continue;  // the end of a statement's results
    Rows rows(raw);
    switch (pq().resultStatus(raw)) {
      case PGRES_PIPELINE_SYNC: is_over = true; break;
      case PGRES_PIPELINE_ABORTED: break;
      case PGRES_COMMAND_OK:
      case PGRES_TUPLES_OK: all.push_back(std::move(rows)); break;
      default:
        if (!error) error = error_of(raw);
    }
    if (is_lost_) return fail(*error);
  }
  pq().exitPipelineMode(connection_);
  if (error) return fail(*error);
  return all;
}

bool Connection::wait_for_notice(int wake, Instant deadline) {
  if (is_lost_) return false;
  std::array<pollfd, 2> waits{
      {{.fd = pq().socket(connection_), .events = POLLIN, .revents = 0}, {.fd = wake, .events = POLLIN, .revents = 0}}};
  ::poll(waits.data(), waits.size(), milliseconds_until(deadline));
  if (waits[0].revents != 0 && (pq().consumeInput(connection_) == 0 || pq().status(connection_) != CONNECTION_OK))
    is_lost_ = true;
  bool notified = false;
  while (PGnotify* const notice = pq().notifies(connection_)) {
    notified = true;
    pq().freemem(notice);
  }
  return notified;
}

}  // namespace fairlead::postgres
