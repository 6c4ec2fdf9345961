// What SOFTGPU_TRACE writes, read as a viewer does.
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "softgpu/driver/driver_testing.h"

namespace softgpu::testing {
namespace {

const Scenario kTraced("traced program", [] {
  use_device();
  CUdeviceptr words = 0;
  std::uint32_t count = 100;
  std::uint32_t host[100];
  EXPECT_EQ(cuMemAlloc_v2(&words, sizeof host), CUDA_SUCCESS);
  void* parameters[] = {&words, &count};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(run_kernel("store_index", parameters, nullptr, 1, 128), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH_v2(host, words, sizeof host), CUDA_SUCCESS);
  }
});

// The array without its end: the format allows it, JSON does not.
nlohmann::json read_trace(const std::string& path) {
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  return nlohmann::json::parse(text + "{}]", nullptr, false);
}

struct Span {
  double begin, end;
};

class TraceFile : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("SOFTGPU_TRACE", path_.c_str(), 1);
    for (int process = 0; process < 2; ++process) ASSERT_TRUE(Fresh("traced program").ran());  // killed at its end
    events_ = read_trace(path_);
    ASSERT_TRUE(events_.is_array());
  }

  const TemporaryHome home_{Environment{{"SOFTGPU_MEMORY_SCALE", "64"}, {"SOFTGPU_MODE", "model"}}};
  const std::string path_ = home_.path() + "/trace.json";
  nlohmann::json events_;
};

TEST_F(TraceFile, TellsEveryKernelAndCopyOfBothProcesses) {
  std::map<std::string, int> count;
  std::map<int, int> processes;
  for (const auto& event : events_) {
    if (event.value("ph", "") != "X") continue;
    ++count[event["name"]];
    ++processes[event["pid"]];
    if (event["name"] == "store_index") {
      EXPECT_EQ(event["args"]["blocks"], 1);
      EXPECT_GT(event["args"]["modelled_ns"], 0);
    }
  }
  EXPECT_EQ(count["store_index"], 6);
  EXPECT_EQ(count["copy from device"], 6);
  EXPECT_EQ(count["wait for the device"], 6);
  EXPECT_EQ(processes.size(), 2U);
}

TEST_F(TraceFile, SpansOfATrackNest) {
  std::map<int, std::vector<Span>> tracks;
  for (const auto& event : events_) {
    if (event.value("ph", "") != "X") continue;
    const double begin = event["ts"];
    tracks[event["tid"]].push_back({begin, begin + event["dur"].get<double>()});
  }
  ASSERT_FALSE(tracks.empty());
  constexpr double kRounding = 0.002;  // times have three decimals
  for (auto& [track, spans] : tracks) {
    for (const Span& a : spans) {
      for (const Span& b : spans) {
        const bool apart = a.end <= b.begin + kRounding || b.end <= a.begin + kRounding;
        const bool inside = (a.begin >= b.begin - kRounding && a.end <= b.end + kRounding) ||
                            (b.begin >= a.begin - kRounding && b.end <= a.end + kRounding);
        EXPECT_TRUE(apart || inside) << track << ": " << a.begin << "-" << a.end << ", " << b.begin << "-" << b.end;
      }
    }
  }
}

TEST_F(TraceFile, SaysWhoHeldTheSms) {
  double held = 0;
  double last = -1;
  for (const auto& event : events_) {
    if (event.value("ph", "") != "C") continue;
    last = event["args"]["SMs"];
    held = std::max(held, last);
  }
  EXPECT_EQ(held, 80);
  EXPECT_EQ(last, 0);
}

}  // namespace
}  // namespace softgpu::testing
