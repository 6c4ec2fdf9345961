#include "node/audit_log.h"

#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

namespace fairlead {
namespace {

constexpr std::size_t kPieceBytes = 16 << 20;
constexpr std::size_t kPieces = 3;  // beside the one that is written

}  // namespace

std::string audit_line(const AuditEntry& entry, std::int64_t now_ms) {
  using nlohmann::ordered_json;
  const ordered_json line{{"time_ms", now_ms},
                          {"who", entry.who},
                          {"tenant", entry.tenant ? ordered_json(*entry.tenant) : ordered_json()},
                          {"method", entry.method},
                          {"path", entry.path},
                          {"status", entry.status}};
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Result<AuditLog> AuditLog::open(const std::string& path) {
  try {
    auto sink = std::make_shared<spdlog::sinks::rotating_file_sink_st>(path, kPieceBytes, kPieces);
    auto lines = std::make_shared<spdlog::logger>("audit", std::move(sink));
    lines->set_pattern("%v");
    lines->flush_on(spdlog::level::info);
    return AuditLog(std::move(lines));
  } catch (const spdlog::spdlog_ex& error) {
    return fail(Errc::kIo, "audit log: {}", error.what());
  }
}

void AuditLog::write(const AuditEntry& entry, std::int64_t now_ms) {
  lines_->info("{}", audit_line(entry, now_ms));
}

}  // namespace fairlead
