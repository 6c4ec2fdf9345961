#include "cli/status_text.h"

#include <fmt/core.h>

#include "cli/format.h"
#include "cli/table.h"

namespace fairlead::cli {
namespace {

using nlohmann::json;
using enum Table::Align;

// Absent fields and fields of another type read as zero, "" or empty.
double number(const json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

std::string count(const json& object, const char* key) {
  return fmt::format("{:.0f}", number(object, key));
}

std::string text(const json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

const json& child(const json& object, const char* key) {
  static const json kEmpty = json::object();
  auto found = object.find(key);
  return found != object.end() && (found->is_object() || found->is_array()) ? *found : kEmpty;
}

std::string share(double part, double whole) {
  return whole > 0 ? format_percent(part / whole) : "-";
}

std::string mean_seconds(double total_seconds, double calls) {
  return calls > 0 ? format_seconds(total_seconds / calls) : "-";
}

}  // namespace

std::string summary_text(const json& status) {
  const json& counters = child(status, "counters");
  const double starts = number(counters, "cold_starts") + number(counters, "warm_starts");
  return fmt::format(
      "fairlead {}  {}  up {}{}\n"
      "queued {}  invoked {}  done {}  failed {}  refused {}  cold {}  evicted {}\n",
      text(status, "version"), text(status, "policy"), format_seconds(number(status, "uptime_seconds")),
      status.value("draining", false) ? "  DRAINING" : "", count(status, "queued"), count(counters, "arrived"),
      count(counters, "completed"), count(counters, "failed"), count(counters, "rejected"),
      share(number(counters, "cold_starts"), starts), count(counters, "evictions"));
}

std::string gpus_text(const json& status) {
  Table table({{"GPU"},
               {"NAME"},
               {"TOKENS", kRight},
               {"INSTANCES", kRight},
               {"MEMORY", kRight},
               {"OF", kRight},
               {"UTIL", kRight}});
  for (const json& gpu : child(status, "gpus")) {
    table.add_row({count(gpu, "id"), text(gpu, "name"), count(gpu, "tokens_in_use"), count(gpu, "instances"),
                   format_bytes(number(gpu, "memory_used_bytes")), format_bytes(number(gpu, "memory_total_bytes")),
                   format_percent(number(gpu, "utilisation"))});
  }
  return table.empty() ? "no GPU\n" : table.text();
}

std::string functions_text(const json& status) {
  const double global = number(status, "global_virtual_time_seconds");
  Table table({{"FUNCTION"},
               {"STATE"},
               {"QUEUED", kRight},
               {"RUNNING", kRight},
               {"AHEAD", kRight},
               {"WARM", kRight},
               {"CALLS", kRight},
               {"ERRORS", kRight},
               {"COLD", kRight},
               {"GPU TIME", kRight},
               {"MEAN", kRight},
               {"WAIT", kRight}});
  for (const json& function : child(status, "functions")) {
    const json& stats = child(function, "stats");
    const double calls = number(stats, "invocations");
    const double starts = number(stats, "cold_starts") + number(stats, "warm_starts");
    const double ahead = number(function, "virtual_time_seconds") - global;
    const bool inactive = text(function, "state") == "inactive";
    table.add_row({text(function, "name"), text(function, "state"), count(function, "queued"),
                   count(function, "in_flight"), inactive ? "-" : format_seconds(ahead),
                   count(child(function, "instances"), "idle"), count(stats, "invocations"), count(stats, "errors"),
                   share(number(stats, "cold_starts"), starts), format_seconds(number(stats, "service_seconds")),
                   mean_seconds(number(stats, "service_seconds"), calls),
                   mean_seconds(number(stats, "queue_seconds"), calls)});
  }
  return table.empty() ? "no functions\n" : table.text();
}

}  // namespace fairlead::cli
