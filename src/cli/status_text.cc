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

// An older node counts its warm starts as one.
double all_starts(const json& counts) {
  double starts = 0;
  for (const char* kind : {"device_warm_starts", "host_warm_starts", "cold_starts", "warm_starts"}) {
    starts += number(counts, kind);
  }
  return starts;
}

// Nothing on a node that has had none.
std::string requests_text(const json& status) {
  const json& requests = child(status, "task_requests");
  if (number(requests, "requests") + number(requests, "kept") == 0) return "";
  return fmt::format("one-off tasks {} kept  {} queued  {} running  requests {}  errors {}  cold {}  GPU {}\n",
                     count(requests, "kept"), count(requests, "queued"), count(requests, "in_flight"),
                     count(requests, "requests"), count(requests, "errors"), count(requests, "cold_starts"),
                     format_seconds(number(requests, "service_seconds")));
}

std::string mean_seconds(double total_seconds, double calls) {
  return calls > 0 ? format_seconds(total_seconds / calls) : "-";
}

}  // namespace

std::string summary_text(const json& status) {
  const json& counters = child(status, "counters");
  const json& memory = child(counters, "memory");
  const double starts = all_starts(counters);
  const std::string sharing = text(status, "sharing");
  return fmt::format(
             "fairlead {}  {}{}{}  up {}{}\n"
             "queued {}  invoked {}  done {}  failed {}  refused {}  host-warm {}  cold {}  evicted {}\n"
             "memory {}  swapped in {} ({})  out {} ({})  prefetched in time {}  late {}  room granted {}  refused "
             "{}\n",
             text(status, "version"), text(status, "policy"), sharing.empty() ? "" : "  sharing ", sharing,
             format_seconds(number(status, "uptime_seconds")), status.value("draining", false) ? "  DRAINING" : "",
             count(status, "queued"), count(counters, "arrived"), count(counters, "completed"),
             count(counters, "failed"), count(counters, "rejected"),
             share(number(counters, "host_warm_starts"), starts), share(number(counters, "cold_starts"), starts),
             count(counters, "evictions"), text(status, "memory_policy"), count(memory, "swap_ins"),
             format_bytes(number(memory, "bytes_in")), count(memory, "swap_outs"),
             format_bytes(number(memory, "bytes_out")), count(memory, "prefetches_in_time"),
             count(memory, "prefetches_late"), count(memory, "room_granted"), count(memory, "room_refused")) +
         requests_text(status);
}

std::string gpus_text(const json& status) {
  Table table({{"GPU"},
               {"NAME"},
               {"STATE"},
               {"SLOTS", kRight},
               {"INSTANCES", kRight},
               {"MEMORY", kRight},
               {"OF", kRight},
               {"UTIL", kRight}});
  for (const json& gpu : child(status, "gpus")) {
    // An older node says neither its state nor D.
    const std::string slots =
        gpu.contains("slots") ? count(gpu, "slots_in_use") + "/" + count(gpu, "slots") : count(gpu, "slots_in_use");
    const std::string reason = text(gpu, "reason");
    const std::string state = reason.empty() ? text(gpu, "state") : text(gpu, "state") + ": " + reason;
    table.add_row({count(gpu, "id"), text(gpu, "name"), state, slots, count(gpu, "instances"),
                   format_bytes(number(gpu, "memory_used_bytes")), format_bytes(number(gpu, "memory_total_bytes")),
                   format_percent(number(gpu, "utilisation"))});
  }
  return table.empty() ? "no GPU\n" : table.text();
}

std::string pipelines_text(const json& status) {
  Table table({{"PIPELINE"},
               {"STATE"},
               {"STAGE"},
               {"GPU", kRight},
               {"SLICE"},
               {"RING", kRight},
               {"REQUESTS", kRight},
               {"GPU TIME", kRight},
               {"RESTARTS", kRight}});
  std::string why;
  for (const json& pipeline : child(status, "pipelines")) {
    const std::string name = text(pipeline, "function");
    why += fmt::format("{}: {}\n", name, text(pipeline, "why"));
    if (child(pipeline, "stages").empty()) table.add_row({name, text(pipeline, "state"), "", "", "", "", "", "", ""});
    for (const json& stage : child(pipeline, "stages")) {
      std::string names;
      for (const json& component : child(stage, "components")) {
        if (component.is_string()) names += (names.empty() ? "" : ", ") + component.get<std::string>();
      }
      const json& ring = child(stage, "ring");
      table.add_row({name, text(pipeline, "state"), names, count(stage, "gpu"), text(stage, "slice"),
                     count(ring, "used") + "/" + count(ring, "depth"), count(stage, "requests"),
                     format_seconds(number(stage, "gpu_seconds")), count(stage, "restarts")});
    }
  }
  const std::string cut = text(child(status, "slice_cuts"), "last");
  if (!cut.empty()) why += fmt::format("slices cut anew: {}\n", cut);
  return (table.empty() ? "" : table.text()) + why;
}

std::string starts_text(const json& function) {
  const json& stats = child(function, "stats");
  return fmt::format("{} device-warm, {} host-warm, {} cold", count(stats, "device_warm_starts"),
                     count(stats, "host_warm_starts"), count(stats, "cold_starts"));
}

std::string memory_text(const json& function) {
  const json& memory = child(function, "memory");
  const auto bytes = [&](const char* key) { return format_bytes(number(memory, key)); };
  return fmt::format("{} expected per instance; {} held: {} on the GPU, {} on the host, {} cannot move",
                     bytes("expected_bytes"), bytes("held_bytes"), bytes("resident_bytes"), bytes("away_bytes"),
                     bytes("fixed_bytes"));
}

std::string tenants_text(const json& status) {
  Table table({{"TENANT"},
               {"WEIGHT", kRight},
               {"MOST", kRight},
               {"FUNCTIONS", kRight},
               {"QUEUED", kRight},
               {"RUNNING", kRight},
               {"GPU TIME", kRight}});
  for (const json& tenant : child(status, "tenants")) {
    const bool is_limited = number(tenant, "max_in_flight") > 0;
    table.add_row({text(tenant, "name"), fmt::format("{:g}", number(tenant, "weight")),
                   is_limited ? count(tenant, "max_in_flight") : "-", count(tenant, "functions"),
                   count(tenant, "queued"), count(tenant, "in_flight"),
                   format_seconds(number(tenant, "service_seconds"))});
  }
  return table.empty() ? "" : table.text() + "\n";
}

// Which of the function's instances computed outside of their turns; "" when none did.
std::string evaded_text(const json& function) {
  const json& evaded = child(child(function, "share"), "turns_evaded");
  if (number(evaded, "named") + number(evaded, "stopped") <= 0) return "";
  return fmt::format("{} computes outside of its turns: {}; {} of its instances were stopped\n", text(function, "name"),
                     text(evaded, "last"), count(evaded, "stopped"));
}

std::string shares_text(const json& status) {
  Table table({{"FUNCTION"},
               {"REQUEST", kRight},
               {"LIMIT", kRight},
               {"OF THE SMS", kRight},
               {"MEMORY", kRight},
               {"SEATS", kRight},
               {"ON GPU", kRight},
               {"DELIVERED", kRight},
               {"LAST MIN", kRight},
               {"CREDIT", kRight},
               {"MEAN WAIT", kRight}});
  const auto percent = [](const json& share, const char* name) {
    return share.contains(name) && share[name].is_number() ? fmt::format("{:.1f}%", number(share, name)) : "-";
  };
  std::string missing;
  for (const json& function : child(status, "functions")) {
    const json& share = child(function, "share");
    missing += evaded_text(function);
    const double limit = share.contains("quota_limit_percent") ? number(share, "quota_limit_percent") : 100;
    if (number(share, "seats_wanted") == 0 && limit == 100) continue;
    std::string gpus;
    for (const json& gpu : child(share, "seats")) gpus += (gpus.empty() ? "" : ",") + gpu.dump();
    const double memory = number(share, "memory_mib");
    table.add_row({text(function, "name"), count(share, "quota_request_percent") + "%", fmt::format("{:.0f}%", limit),
                   count(share, "compute_percent") + "%", memory > 0 ? format_bytes(memory * (1 << 20)) : "-",
                   fmt::format("{}/{}", child(share, "seats").size(), count(share, "seats_wanted")),
                   gpus.empty() ? "-" : gpus, percent(share, "delivered_percent"),
                   percent(share, "delivered_last_minute_percent"),
                   share.contains("credit_seconds") && share["credit_seconds"].is_number()
                       ? format_seconds(number(share, "credit_seconds"))
                       : "-",
                   number(share, "gate_waits") > 0
                       ? format_seconds(number(share, "gate_wait_seconds") / number(share, "gate_waits"))
                       : "-"});
    if (const std::string lacking = text(share, "lacking"); !lacking.empty()) {
      missing += fmt::format("{} lacks seats: {}\n", text(function, "name"), lacking);
    }
  }
  if (table.empty()) return missing.empty() ? "" : missing + "\n";
  return table.text() + missing + "\n";
}

// Who reports less than the device says; "" when nobody does.
std::string false_reports_text(const json& status) {
  std::string lines;
  for (const json& function : child(status, "functions")) {
    const double missing = number(child(function, "stats"), "gpu_time_not_reported_seconds");
    if (missing <= 0) continue;
    lines += fmt::format("{} reports less GPU time than the device says; {} was charged by the device's account\n",
                         text(function, "name"), format_seconds(missing));
  }
  return lines;
}

// Of answers that were streamed; "" where none was.
std::string first_bytes_text(const json& status) {
  std::string lines;
  for (const json& function : child(status, "functions")) {
    const json& stats = child(function, "stats");
    const double streamed = number(stats, "streamed");
    if (streamed <= 0) continue;
    lines += fmt::format("{} streamed {:.0f} answers, the first byte after {} on average\n", text(function, "name"),
                         streamed, mean_seconds(number(stats, "first_byte_seconds"), streamed));
  }
  return lines;
}

std::string start_failures_text(const json& status) {
  std::string lines;
  for (const json& function : child(status, "functions")) {
    const std::string why = text(function, "start_failure");
    if (!why.empty()) lines += fmt::format("{} does not start: {}\n", text(function, "name"), why);
  }
  return lines;
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
               {"HOST-WARM", kRight},
               {"COLD", kRight},
               {"ON GPU", kRight},
               {"ON HOST", kRight},
               {"GPU TIME", kRight},
               {"MEAN", kRight},
               {"WAIT", kRight}});
  for (const json& function : child(status, "functions")) {
    const json& stats = child(function, "stats");
    const double calls = number(stats, "invocations");
    const json& memory = child(function, "memory");
    const double starts = all_starts(stats);
    const double ahead = number(function, "virtual_time_seconds") - global;
    const bool inactive = text(function, "state") == "inactive";
    table.add_row(
        {text(function, "name"), text(function, "state"), count(function, "queued"), count(function, "in_flight"),
         inactive ? "-" : format_seconds(ahead), count(child(function, "instances"), "idle"),
         count(stats, "invocations"), count(stats, "errors"), share(number(stats, "host_warm_starts"), starts),
         share(number(stats, "cold_starts"), starts), format_bytes(number(memory, "resident_bytes")),
         format_bytes(number(memory, "away_bytes")), format_seconds(number(stats, "service_seconds")),
         mean_seconds(number(stats, "service_seconds"), calls), mean_seconds(number(stats, "queue_seconds"), calls)});
  }
  if (table.empty()) return "no functions\n";
  return table.text() + first_bytes_text(status) + false_reports_text(status);
}

}  // namespace fairlead::cli
