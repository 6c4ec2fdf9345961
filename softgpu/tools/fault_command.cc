// softgpu fault: what goes wrong with a device, for tests.
#include <cstdlib>

#include "softgpu/device/device.h"
#include "softgpu/device/key_value.h"
#include "softgpu/tools/command.h"

namespace softgpu::tools {
namespace {

constexpr char kUsage[] =
    "usage: softgpu fault xid NUMBER | hang | lost | alloc [--count N] [--after N] | slow-link --factor F | clear"
    "  [--gpu N]";

Result<std::uint64_t> number_option(const CommandLine& line, std::string_view name, std::uint64_t low,
                                    std::uint64_t fallback) {
  const auto found = line.options.find(name);
  if (found == line.options.end()) return fallback;
  return parse_number("--" + std::string(name), found->second, low, UINT32_MAX);
}

Status fail_allocations(const CommandLine& line, Faults faults) {
  const auto count = number_option(line, "count", 1, 1);
  if (!count) return failure(count.error());
  const auto after = number_option(line, "after", 0, 0);
  if (!after) return failure(after.error());
  faults.fail_allocations(static_cast<std::uint32_t>(*after), static_cast<std::uint32_t>(*count));
  return {};
}

Status slow_link(const CommandLine& line, Faults faults) {
  const auto found = line.options.find("factor");
  if (found == line.options.end()) return failure(kUsage);
  char* end = nullptr;
  const double factor = std::strtod(found->second.c_str(), &end);
  if (*end != '\0' || !(factor >= 1 && factor <= Faults::kMaxLinkFactor)) {
    return failure("--factor is '" + found->second + "': expected a number between 1 and 1000000");
  }
  faults.slow_link(factor);
  return {};
}

Status inject(const CommandLine& line, Faults faults) {
  const std::string& what = line.words.front();
  if (what == "xid" && line.words.size() == 2) {
    const auto xid = parse_number("the Xid", line.words[1], 1, Faults::kHighestXid);
    if (!xid) return failure(xid.error());
    faults.raise_xid(static_cast<unsigned>(*xid));
    return {};
  }
  if (line.words.size() != 1) return failure(kUsage);
  if (what == "alloc") return fail_allocations(line, faults);
  if (what == "slow-link") return slow_link(line, faults);
  if (what == "hang") {
    faults.hang();
  } else if (what == "lost") {
    faults.lose();
  } else if (what == "clear") {
    faults.clear();
  } else {
    return failure(kUsage);
  }
  return {};
}

}  // namespace

int fault(Arguments arguments) {
  const auto line = parse_command_line(arguments, {"gpu", "count", "after", "factor"});
  if (!line) return fail(line.error());
  if (line->words.empty()) return fail(kUsage);
  const auto machine = open_machine();
  if (!machine) return fail(machine.error());
  const auto gpu = gpu_of(*line, *machine);
  if (!gpu) return fail(gpu.error());
  const auto clients = Clients::open(*machine);
  if (!clients) return fail(clients.error());
  const auto view = DeviceView::open(*machine, *clients, *gpu);
  if (!view) return fail(view.error());
  const auto injected = inject(*line, (*view)->faults());
  return injected ? 0 : fail(injected.error());
}

}  // namespace softgpu::tools
