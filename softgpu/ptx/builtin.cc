#include "softgpu/ptx/builtin.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "softgpu/mutex.h"
#include "softgpu/ptx/budget.h"
#include "softgpu/ptx/memory.h"

namespace softgpu::ptx {
namespace {

constexpr std::size_t kLongestString = 1 << 16;
constexpr std::size_t kLongestLine = 1 << 12;  // of printed text that waits for its end

// Reads device memory for one lane; a failed read raises a fault and leaves `ok` false.
class LaneReader {
 public:
  LaneReader(Warp& warp, const Instruction* at, int lane) : warp_(warp), at_(at), lane_(lane) {}
  bool ok = true;

  template <class T>
  T value(std::uint64_t address) {
    constexpr std::ptrdiff_t kPrice = 4;
    spend(warp_, kPrice);
    const std::uint64_t traffic = warp_.global_bytes;
    const std::byte* host = locate(warp_, at_, Space::kGeneric, address, sizeof(T), lane_);
    warp_.global_bytes = traffic;  // the hardware's printf buffer is not the kernel's traffic
    T result{};
    ok = ok && host != nullptr;
    if (host != nullptr) std::memcpy(&result, host, sizeof result);
    return result;
  }

  std::string text(std::uint64_t address) {
    std::string out;
    while (out.size() < kLongestString) {
      const char c = value<char>(address + out.size());
      if (!ok || c == '\0') break;
      out += c;
    }
    return out;
  }

 private:
  Warp& warp_;
  const Instruction* at_;
  int lane_;
};

template <class T>
T argument(const Warp& warp, const CallSite& site, std::size_t index, int lane) {
  T result{};
  if (index >= site.arguments.size()) return result;
  const FunctionVariable& variable = site.arguments[index];
  const std::byte* begin = warp.frame + variable.frame_offset + static_cast<std::size_t>(lane) * variable.bytes;
  std::memcpy(&result, begin, std::min(sizeof result, variable.bytes));
  return result;
}

template <class T>
void write_result(Warp& warp, const CallSite& site, int lane, T value) {
  if (site.results.empty()) return;
  const FunctionVariable& result = site.results[0];
  std::memcpy(warp.frame + result.frame_offset + static_cast<std::size_t>(lane) * result.bytes, &value,
              std::min(sizeof value, result.bytes));
}

// One conversion of a format: "%-8.3lld" without the length, which the machine's types replace.
struct Conversion {
  std::string flags;  // "%-8.3"
  bool is_long = false;
  char letter = 0;
};

Conversion parse_conversion(const std::string& format, std::size_t& at) {
  Conversion out{"%", false, 0};
  while (at < format.size() && std::strchr("-+ #0123456789.", format[at]) != nullptr) out.flags += format[at++];
  while (at < format.size() && std::strchr("hlzjt", format[at]) != nullptr) out.is_long |= format[at++] != 'h';
  if (at < format.size()) out.letter = format[at++];
  // A width of thousands of characters is a mistake, not a wish.
  if (out.flags.size() > 8) out.flags = "%";
  return out;
}

std::string print(const char* format, ...) {
  char buffer[512];
  va_list values;
  va_start(values, format);
  const int length = std::vsnprintf(buffer, sizeof buffer, format, values);
  va_end(values);
  return {buffer, std::min(static_cast<std::size_t>(std::max(length, 0)), sizeof buffer - 1)};
}

// Arguments lie one behind another, each aligned to its size.
class Formatter {
 public:
  Formatter(LaneReader& reader, std::uint64_t arguments) : reader_(reader), at_(arguments) {}

  std::string run(const std::string& format) {
    std::string out;
    for (std::size_t i = 0; i < format.size() && reader_.ok;) {
      if (format[i] != '%') {
        out += format[i++];
        continue;
      }
      ++i;
      out += convert(parse_conversion(format, i));
    }
    return out;
  }

 private:
  template <class T>
  T next() {
    at_ = align_up(at_, sizeof(T));
    const T value = reader_.value<T>(at_);
    at_ += sizeof(T);
    return value;
  }

  std::string convert(const Conversion& conversion) {
    const auto format = [&](const char* rest) { return conversion.flags + rest; };
    const char letter[] = {conversion.letter, '\0'};
    switch (conversion.letter) {
      case '%': return "%";
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
      case 'c':
        if (conversion.is_long) return print(format("ll").append(letter).c_str(), next<long long>());
        return print(format(letter).c_str(), next<int>());
      case 'f':
      case 'F':
      case 'e':
      case 'E':
      case 'g':
      case 'G':
      case 'a':
      case 'A': return print(format(letter).c_str(), next<double>());
      case 's': return print(format("s").c_str(), reader_.text(next<std::uint64_t>()).c_str());
      case 'p': return print("0x%llx", next<unsigned long long>());
      default: return conversion.flags + letter;
    }
  }

  LaneReader& reader_;
  std::uint64_t at_;
};

// Printing and taking memory cost what so many instructions do, for each lane.
constexpr std::ptrdiff_t kLanePrice = 64;

void pay_for_lanes(Warp& warp) {
  spend(warp, kLanePrice * __builtin_popcount(warp.mask));
}

bool run_vprintf(Warp& warp, const Instruction* at, const CallSite& site) {
  pay_for_lanes(warp);
  std::string out;
  for (std::uint32_t rest = warp.mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    LaneReader reader(warp, at, lane);
    const std::string format = reader.text(argument<std::uint64_t>(warp, site, 0, lane));
    out += Formatter(reader, argument<std::uint64_t>(warp, site, 1, lane)).run(format);
    if (!reader.ok) return false;
    write_result(warp, site, lane, static_cast<std::uint32_t>(format.size()));
  }
  warp.run->program->printer.append(out);
  return true;
}

// A block for each lane; 0 when the heap is full.
bool run_malloc(Warp& warp, const CallSite& site) {
  pay_for_lanes(warp);
  DeviceHeap* heap = warp.run->program->heap;
  for (std::uint32_t rest = warp.mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    const auto bytes = argument<std::uint64_t>(warp, site, 0, lane);
    const std::uint64_t address = heap != nullptr ? heap->allocate(bytes) : 0;
    write_result(warp, site, lane, address);
  }
  return true;
}

bool run_free(Warp& warp, const Instruction* at, const CallSite& site) {
  pay_for_lanes(warp);
  DeviceHeap* heap = warp.run->program->heap;
  for (std::uint32_t rest = warp.mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    const auto address = argument<std::uint64_t>(warp, site, 0, lane);
    if (address == 0 || (heap != nullptr && heap->release(address))) continue;
    raise(warp, at, FaultKind::kIllegalAddress, address, lane);
    return false;
  }
  return true;
}

// __assertfail(message, file, line, function, character size)
bool run_assert_fail(Warp& warp, const Instruction* at, const CallSite& site) {
  const int lane = __builtin_ctz(warp.mask);
  LaneReader reader(warp, at, lane);
  const std::string message = reader.text(argument<std::uint64_t>(warp, site, 0, lane));
  const std::string file = reader.text(argument<std::uint64_t>(warp, site, 1, lane));
  const std::string function = reader.text(argument<std::uint64_t>(warp, site, 3, lane));
  if (!reader.ok) return false;
  const auto line = std::to_string(argument<std::uint32_t>(warp, site, 2, lane));
  std::string detail = file;
  detail.append(":")
      .append(line)
      .append(": ")
      .append(function)
      .append(": assertion `")
      .append(message)
      .append("` failed");
  warp.run->program->printer.append(detail + "\n");
  raise(warp, at, FaultKind::kAssert, std::move(detail));
  return false;
}

}  // namespace

std::optional<Builtin> builtin_from_name(std::string_view name) {
  if (name == "vprintf") return Builtin::kVprintf;
  if (name == "__assertfail") return Builtin::kAssertFail;
  if (name == "malloc") return Builtin::kMalloc;
  if (name == "free") return Builtin::kFree;
  return std::nullopt;
}

bool run_builtin(Builtin builtin, Warp& warp, const Instruction* at, const CallSite& site) {
  switch (builtin) {
    case Builtin::kVprintf: return run_vprintf(warp, at, site);
    case Builtin::kAssertFail: return run_assert_fail(warp, at, site);
    case Builtin::kMalloc: return run_malloc(warp, site);
    case Builtin::kFree: return run_free(warp, at, site);
  }
  return true;
}

void Printer::append(std::string_view text) {
  const LockGuard lock(mutex_);
  pending_ += text;
  const std::size_t newline = pending_.rfind('\n');
  const std::size_t end = pending_.size() > kLongestLine ? pending_.size()
                          : newline == std::string::npos ? 0
                                                         : newline + 1;
  if (end == 0) return;
  if (sink_) sink_(std::string_view(pending_).substr(0, end));
  pending_.erase(0, end);
}

void Printer::flush() {
  const LockGuard lock(mutex_);
  if (!pending_.empty() && sink_) sink_(pending_);
  pending_.clear();
}

}  // namespace softgpu::ptx
