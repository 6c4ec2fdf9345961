#include "softgpu/device/time/trace.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "softgpu/device/files.h"

namespace softgpu {
namespace {

std::atomic<int> g_file = -1;  // never closed: threads of streams may outlive static destruction

// Devices are shown as processes of their own, beyond all real process ids.
constexpr unsigned kFirstDevicePid = 1U << 30;

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result.push_back('\\');
    if (static_cast<unsigned char>(c) >= 0x20) result.push_back(c);
  }
  return result + "\"";
}

std::string microseconds(std::uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%llu.%03u", static_cast<unsigned long long>(ns / 1000),
                static_cast<unsigned>(ns % 1000));
  return text;
}

// One write of a whole line: appending writes of several processes do not mix.
void write_event(const std::string& members) {
  const std::string line = "{" + members + "},\n";
  if (::write(g_file.load(std::memory_order_relaxed), line.data(), line.size()) < 0) {
    g_file.store(-1);  // the disk is full: the program goes on without its trace
  }
}

void name_process(unsigned pid, std::string_view name) {
  write_event("\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" + std::to_string(pid) +
              ",\"args\":{\"name\":" + quoted(name) + "}");
}

std::string program_name() {
  std::string name = "?";
  if (std::FILE* file = std::fopen("/proc/self/comm", "re"); file != nullptr) {
    char text[64] = {};
    if (std::fgets(text, sizeof text, file) != nullptr) name.assign(text, std::strcspn(text, "\n"));
    std::fclose(file);
  }
  return name;
}

}  // namespace

Status open_trace(std::string path) {
  if (const auto at = path.find("%p"); at != std::string::npos) path.replace(at, 2, std::to_string(::getpid()));
  if (const auto created = create_file_once(path, "[\n"); !created) return failure("SOFTGPU_TRACE: " + created.error());
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return failure("SOFTGPU_TRACE: cannot write " + path + ": " + std::strerror(errno));
  g_file.store(file);
  name_process(static_cast<unsigned>(::getpid()), program_name());
  return {};
}

bool tracing() {
  return g_file.load(std::memory_order_relaxed) >= 0;
}

TraceArguments& TraceArguments::add(std::string_view name, std::uint64_t value) {
  text_ += (text_.empty() ? "" : ",") + quoted(name) + ":" + std::to_string(value);
  return *this;
}

TraceArguments& TraceArguments::add(std::string_view name, std::string_view value) {
  text_ += (text_.empty() ? "" : ",") + quoted(name) + ":" + quoted(value);
  return *this;
}

void trace_span(std::string_view category, std::string_view name, std::uint64_t begin_ns, std::uint64_t end_ns,
                const TraceArguments& arguments) {
  if (!tracing()) return;
  write_event("\"ph\":\"X\",\"cat\":" + quoted(category) + ",\"name\":" + quoted(name) +
              ",\"pid\":" + std::to_string(::getpid()) + ",\"tid\":" + std::to_string(::gettid()) +
              ",\"ts\":" + microseconds(begin_ns) + ",\"dur\":" + microseconds(end_ns - begin_ns) + ",\"args\":{" +
              arguments.text() + "}");
}

void trace_sms(unsigned device, std::uint64_t milli_sms, std::uint64_t now_ns) {
  if (!tracing()) return;
  const unsigned pid = kFirstDevicePid + device;
  static std::atomic<std::uint64_t> named = 0;  // a bit for each device
  const std::uint64_t bit = std::uint64_t{1} << device;
  if ((named.fetch_or(bit) & bit) == 0) name_process(pid, "GPU " + std::to_string(device));
  write_event("\"ph\":\"C\",\"name\":\"SMs of " + std::to_string(::getpid()) + "\",\"pid\":" + std::to_string(pid) +
              ",\"ts\":" + microseconds(now_ns) + ",\"args\":{\"SMs\":" + microseconds(milli_sms) + "}");
}

}  // namespace softgpu
