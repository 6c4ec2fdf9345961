// Changes that somebody asked for, a line of JSON each, in audit.log of the state folder: kept in pieces of 16 MiB, four of them.
//
// Threads: the io_context's.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "edge/guard.h"

namespace spdlog {
class logger;
}

namespace fairlead {

class AuditLog {
 public:
  static Result<AuditLog> open(const std::string& path);

  // On disk when it returns, but not synced: a power cut may take the last lines.
  void write(const AuditEntry& entry, std::int64_t now_ms);

 private:
  explicit AuditLog(std::shared_ptr<spdlog::logger> lines) : lines_(std::move(lines)) {}

  std::shared_ptr<spdlog::logger> lines_;
};

// {"time_ms":..., "who":"FLK...", "tenant":null, "method":"DELETE", "path":"/...", "status":204}
std::string audit_line(const AuditEntry& entry, std::int64_t now_ms);

}  // namespace fairlead
