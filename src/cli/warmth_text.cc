#include "cli/warmth_text.h"

#include <fmt/core.h>

#include <map>
#include <vector>

#include "cli/format.h"
#include "cli/table.h"

namespace fairlead::cli {
namespace {

using nlohmann::json;
using enum Table::Align;

double number(const json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}
std::string text(const json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}
bool flag(const json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_boolean() && found->get<bool>();
}
const json& child(const json& object, const char* key) {
  static const json kEmpty = json::array();
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && (found->is_array() || found->is_object()) ? *found : kEmpty;
}

// An instance is a process, so it is in host memory at least.
std::string where(const json& instance) {
  if (text(instance, "state") == "starting") return "starting";
  return number(child(instance, "memory"), "resident_bytes") > 0 ? "device" : "host";
}

json seen(const json& instance) {
  json one{{"id", number(instance, "id")},
           {"gpu", number(instance, "gpu")},
           {"state", text(instance, "state")},
           {"where", where(instance)},
           {"device_bytes", number(child(instance, "memory"), "resident_bytes")},
           {"host_bytes", number(child(instance, "memory"), "away_bytes")},
           {"seated", flag(instance, "seated")},
           {"pinned", text(instance, "pinned").empty() ? "none" : text(instance, "pinned")},
           {"over_pin_bound", flag(instance, "over_pin_bound")}};
  if (instance.contains("kept_seconds")) one["kept_seconds"] = number(instance, "kept_seconds");
  return one;
}

}  // namespace

json with_holds(json status, const json& warmth) {
  std::map<double, const json*> holds;
  for (const json& hold : child(warmth, "instances")) holds[number(hold, "id")] = &hold;
  const auto instances = status.is_object() ? status.find("instances") : status.end();
  if (instances == status.end() || !instances->is_array()) return status;
  for (json& instance : *instances) {
    const auto hold = holds.find(number(instance, "id"));
    if (instance.is_object() && hold != holds.end()) instance.update(*hold->second);
  }
  return status;
}

std::string kept_text(const json& instance) {
  if (flag(instance, "seated")) return "always";
  const auto left = instance.find("kept_seconds");
  return left != instance.end() && left->is_number() ? format_seconds(left->get<double>()) : "-";
}

std::string pinned_text(const json& instance) {
  if (flag(instance, "seated")) return "device";
  if (flag(instance, "over_pin_bound")) return "none: pins take all they may (--pin-memory)";
  const std::string pinned = text(instance, "pinned");
  return pinned.empty() ? "none" : pinned;
}

json warmth_of(const json& status) {
  std::map<std::string, json> instances;
  double device = 0, host = 0;
  for (const json& instance : child(status, "instances")) {
    json one = seen(instance);
    device += number(one, "device_bytes");
    host += number(one, "host_bytes");
    json& all = instances[text(instance, "function")];
    if (all.is_null()) all = json::array();
    all.push_back(std::move(one));
  }
  json functions = json::array();
  for (const json& function : child(status, "functions")) {
    const std::string name = text(function, "name");
    json each = instances.contains(name) ? instances[name] : json::array();
    functions.push_back({{"function", name}, {"tenant", text(function, "tenant")}, {"instances", std::move(each)}});
  }
  return {{"functions", std::move(functions)}, {"device_bytes", device}, {"host_bytes", host}};
}

std::string warmth_text(const json& status) {
  Table table({{"FUNCTION"},
               {"TENANT"},
               {"INSTANCE", kRight},
               {"WHERE"},
               {"DEVICE", kRight},
               {"HOST", kRight},
               {"KEPT"},
               {"PINNED"}});
  const json warmth = warmth_of(status);
  std::size_t count = 0;
  for (const json& function : warmth["functions"]) {
    const std::string name = text(function, "function"), tenant = text(function, "tenant");
    if (function["instances"].empty()) table.add_row({name, tenant, "-", "cold", "-", "-", "-", "-"});
    for (const json& one : function["instances"]) {
      ++count;
      const std::string place = where({{"state", one["state"]}, {"memory", {{"resident_bytes", one["device_bytes"]}}}});
      table.add_row({name, tenant, fmt::format("{:.0f}", number(one, "id")),
                     place == "device" ? fmt::format("GPU {:.0f}", number(one, "gpu")) : place,
                     format_bytes(number(one, "device_bytes")), format_bytes(number(one, "host_bytes")), kept_text(one),
                     pinned_text(one)});
    }
  }
  if (table.empty()) return "no functions\n";
  return table.text() + fmt::format("{} instances hold {} of device memory, {} of it moved to the host\n", count,
                                    format_bytes(number(warmth, "device_bytes") + number(warmth, "host_bytes")),
                                    format_bytes(number(warmth, "host_bytes")));
}

}  // namespace fairlead::cli
