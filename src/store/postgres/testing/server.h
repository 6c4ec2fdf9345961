// A PostgreSQL server of a test's own: in a temporary folder, at a Unix socket there, gone with the test. As an ordinary user where the
// test is root, whom initdb refuses.
#pragma once

#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/check.h"
#include "base/clock.h"
#include "store/postgres/connection.h"

namespace fairlead::postgres {

class TestServer {
 public:
  // Why there cannot be one; empty: there can.
  static std::string obstacle() {
    if (::access((binaries() + "/initdb").c_str(), X_OK) != 0) {
      return "no PostgreSQL server is installed (" + binaries() + "/initdb)";
    }
    if (::geteuid() == 0 && user() == nullptr)
      return "initdb refuses root, and there is neither a user postgres nor nobody";
    return "";
  }

  TestServer() : folder_((std::filesystem::temp_directory_path() / "fairlead-pg-XXXXXX").string()) {
    FL_CHECK(mkdtemp(folder_.data()) != nullptr);
    if (const passwd* const other = ::geteuid() == 0 ? user() : nullptr) {
      FL_CHECK(::chown(folder_.c_str(), other->pw_uid, other->pw_gid) == 0);
    }
    FL_CHECK(run({binaries() + "/initdb", "--pgdata=" + data(), "--username=fairlead", "--auth=trust", "--no-sync",
                  "--encoding=UTF8", "--no-locale"}) == 0,
             "initdb failed: {}/log", folder_);
    start();
  }
  TestServer(const TestServer&) = delete;
  ~TestServer() {
    stop("immediate");
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string url() const { return url_of("fairlead", "postgres"); }
  std::string url_of(const std::string& role, const std::string& database) const {
    return "postgresql://" + role + "@/" + database + "?host=" + folder_;
  }
  // pg_ctl waits until it answers.
  void start() {
    FL_CHECK(run({binaries() + "/pg_ctl", "start", "--wait", "--timeout=30", "--pgdata=" + data(),
                  "--log=" + folder_ + "/log",
                  "--options=-k " + folder_ + " -h '' -c max_connections=40 -c shared_buffers=16MB"}) == 0,
             "pg_ctl start failed: {}/log", folder_);
  }
  void stop(const std::string& how) {
    run({binaries() + "/pg_ctl", "stop", "--wait", "--mode=" + how, "--pgdata=" + data()});
  }
  pid_t pid() const {
    pid_t pid = 0;
    std::ifstream(data() + "/postmaster.pid") >> pid;
    return pid;
  }

  // As any client: for what a test looks at.
  Rows query(const char* sql) const {
    auto connection = Connection::open(parse_target(url(), "").value());
    FL_CHECK(connection.has_value(), "{}", connection.error().message);
    auto rows = (*connection)->run({sql, {}});
    FL_CHECK(rows.has_value(), "{}", rows.error().message);
    return *std::move(rows);
  }

 private:
  static std::string binaries() {
    const char* const given = std::getenv("PG_BINARIES");
    return given != nullptr ? given : "/usr/lib/postgresql/15/bin";
  }
  static const passwd* user() {
    const passwd* const own = ::getpwnam("postgres");
    return own != nullptr ? own : ::getpwnam("nobody");
  }
  std::string data() const { return folder_ + "/data"; }

  int run(std::vector<std::string> command) const {
    const passwd* const other = ::geteuid() == 0 ? user() : nullptr;
    const std::string log = folder_ + "/tools-log";
    const pid_t child = fork();
    if (child == 0) {
      if (other != nullptr && (::setgid(other->pw_gid) != 0 || ::setuid(other->pw_uid) != 0)) _exit(126);
      if (::chdir("/") != 0) _exit(126);
      if (std::freopen(log.c_str(), "a", stdout) == nullptr || std::freopen(log.c_str(), "a", stderr) == nullptr)
        _exit(126);
      std::vector<char*> arguments;
      for (std::string& argument : command) arguments.push_back(argument.data());
      arguments.push_back(nullptr);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string folder_;
};

}  // namespace fairlead::postgres
