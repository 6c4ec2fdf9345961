// libFuzzer: any bytes are a scenario, or a trace of any format, or refused with an error that names where; what is taken is
// valid, and makes arrivals in order. The first byte says which.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "base/fuzz_seeds.h"
#include "sim/scenario.h"

namespace fairlead {

std::vector<std::string> fuzz_seeds() {
  return {
      "0base = \"a\"\nname = \"x\"\npreset = \"paper\"\n[workload]\nkind = \"own\"\n[[function]]\nname = \"f\"\nwarm_s "
      "= 0.5\n"
      "rate_per_s = 2\nburst = 3\ncold_start_s = 1.5\nmemory_mib = 100\nweight = 2\ntenant = \"t\"\n[[tenant]]\nname = "
      "\"t\"\n",
      "0duration_s = 10\n[device]\nslowdown = [1.0, 1.5]\n[pool]\nslots = 3\n[workload]\nchanges = [[0, 0.5], [5, "
      "1]]\n",
      "1at_s,function,service_s\n0.5,a,0.1\n1,\"b\",\n",
      "3app,func,end_timestamp,duration\na,b,1.5,0.5\n",
      "4TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,374,44\n",
      "6time,model\n1,2\n",
  };
}

// The core is not linked here, and what it says of its options not asked.
Status validate(const CoreOptions&) {
  return {};
}

namespace sim {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void read_scenario_text(std::string_view text) {
  const auto scenario = parse_scenario(text, "a file", {});
  if (!scenario) return require(!scenario.error().message.empty());
  require(validate(*scenario).has_value());
  if (scenario->workload.kind == WorkloadKind::kTrace) return;
  const auto arrivals = make_arrivals(*scenario, 1);
  Instant last{};
  for (int i = 0; i < 50; ++i) {
    const auto arrival = arrivals->next();
    if (!arrival) return;
    require(arrival->at >= last);
    last = arrival->at;
  }
}

void read_trace_text(std::string_view text, const std::string& format) {
  static const std::string folder = [] {
    const auto made = std::filesystem::temp_directory_path() / ("scenario_fuzz-" + std::to_string(::getpid()));
    std::filesystem::create_directories(made);
    return made.string();
  }();
  // As a file, and under the names that the formats that are folders look for.
  static const char* const names[] = {"/trace.csv", "/invocations_per_function_md.csv", "/chunk-0-trace.csv",
                                      "/lora_request_trace.csv"};
  for (const char* name : names) std::ofstream(folder + name, std::ios::binary | std::ios::trunc) << text;
  for (const std::string& path : {folder + "/trace.csv", folder}) {
    const auto trace = read_trace(path, format, {FunctionModel{}}, 1);
    if (!trace) {
      require(!trace.error().message.empty());
      continue;
    }
    std::uint64_t last = 0;
    for (const TraceEvent& event : trace->events) {
      require(event.function < trace->functions.size() && event.at_us >= last);
      last = event.at_us;
    }
  }
}

}  // namespace
}  // namespace sim
}  // namespace fairlead

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto formats = fairlead::sim::trace_formats();
  const std::size_t choice = data[0] % 16;
  if (choice == 0 || choice > formats.size()) {
    fairlead::sim::read_scenario_text(text);
  } else {
    fairlead::sim::read_trace_text(text, formats[choice - 1]);
  }
  return 0;
}
