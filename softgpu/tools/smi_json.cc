#include <cstdio>

#include "softgpu/tools/smi.h"

namespace softgpu::tools {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    char escape[8];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string field(const char* name, std::uint64_t value) {
  return quoted(name) + ":" + std::to_string(value);
}

std::string field(const char* name, const std::string& value) {
  return quoted(name) + ":" + quoted(value);
}

// [a,b,c] of what `write` makes of each item.
template <typename Items, typename Write>
std::string list(const Items& items, Write write) {
  std::string out = "[";
  for (const auto& item : items) out += (out.size() > 1 ? "," : "") + write(item);
  return out + "]";
}

std::string process_json(const SmiProcess& process) {
  return "{" + field("pid", static_cast<std::uint64_t>(process.pid)) + "," + field("command", process.command) + "," +
         field("memory_bytes", process.bytes) + "}";
}

// The fields that GPUs and MIG devices have alike, without braces.
std::string device_fields(const SmiDevice& device) {
  char busy[32];
  std::snprintf(busy, sizeof busy, "\"busy\":%.3f", device.busy);
  return field("name", device.part.profile.name) + "," + field("uuid", device.part.uuid_text()) + "," +
         field("sm_count", device.part.profile.sm_count) + "," + field("memory_used_bytes", device.used_bytes) + "," +
         field("memory_total_bytes", device.total_bytes) + "," + busy +
         ",\"processes\":" + list(device.processes, process_json);
}

std::string mig_json(const SmiDevice& device) {
  return "{" + field("gpu_instance", device.part.mig->gpu_instance) + "," +
         field("compute_instance", device.part.mig->compute_instance) + "," + device_fields(device) + "}";
}

std::string gpu_json(const SmiGpu& gpu) {
  const unsigned index = gpu.whole.part.gpu;
  const std::string mig = !gpu.mig_supported ? "unsupported" : gpu.mig_enabled ? "enabled" : "disabled";
  return "{" + field("index", index) + "," + field("bus", pci_bus_id(index)) + "," +
         field("compute_mode", static_cast<std::uint64_t>(gpu.compute_mode)) + "," + field("mig", mig) + "," +
         device_fields(gpu.whole) + ",\"mig_devices\":" + list(gpu.mig_devices, mig_json) + "}";
}

}  // namespace

std::string smi_json(const Smi& all) {
  return "{" + field("home", all.home) + "," + field("mode", all.mode) + ",\"gpus\":" + list(all.gpus, gpu_json) +
         "}\n";
}

}  // namespace softgpu::tools
