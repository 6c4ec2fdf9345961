#include "softgpu/conformance/report.h"

#include <cinttypes>
#include <cstdio>
#include <fstream>

namespace softgpu::conformance {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
    if (c == '\n') out += "\\n";
  }
  return out + '"';
}

std::string json_of(const Entry& entry) {
  const CaseResult& result = entry.result;
  char numbers[160];
  std::snprintf(numbers, sizeof numbers,
                "\"bits\": \"%s\", \"max_error\": %.9g, \"digest\": \"%016" PRIx64 "\", \"milliseconds\": %.3f",
                entry.bits == Bits::kSame ? "same" : "free", result.max_error, result.digest, result.milliseconds);
  std::string out = "{\"name\": " + quoted(entry.name) + ", \"status\": " + quoted(text_of(result.status)) + ", " +
                    numbers + ", \"detail\": " + quoted(result.detail) + ", \"observed\": {";
  for (const auto& [what, value] : result.observed) {
    if (out.back() != '{') out += ", ";
    out += quoted(what) + ": " + quoted(value);
  }
  return out + "}}";
}

}  // namespace

const char* text_of(Status status) {
  switch (status) {
    case Status::kPass: return "pass";
    case Status::kFail: return "fail";
    case Status::kRefused: return "refused";
    case Status::kSkipped: return "skipped";
  }
  return "";
}

std::string table_line(const Entry& entry) {
  const CaseResult& result = entry.result;
  char line[160];
  std::snprintf(line, sizeof line, "%-8s %-42s %9.1f ms  %-9.2g %016" PRIx64, text_of(result.status),
                entry.name.c_str(), result.milliseconds, result.max_error, result.digest);
  return result.detail.empty() ? line : std::string(line) + "\n         " + result.detail;
}

bool write_json(const std::string& path, const DeviceFacts& device, const std::vector<Entry>& entries) {
  std::ofstream out(path);
  out << "{\"device\": " << quoted(device.name) << ", \"devices\": " << device.devices
      << ", \"capability\": " << device.capability << ", \"driver_version\": " << device.driver_version
      << ", \"cases\": [\n";
  for (const Entry& entry : entries) out << json_of(entry) << (&entry == &entries.back() ? "\n" : ",\n");
  out << "]}\n";
  out.flush();
  return out.good();
}

}  // namespace softgpu::conformance
