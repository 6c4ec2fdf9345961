#include "sim/shares/function_shapes.h"

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;

constexpr Bytes kContext = mib(300);
constexpr double kLinkBytesPerS = 12e9;

}  // namespace

Duration FunctionShape::return_time() const {
  return from_seconds(static_cast<double>((memory - kContext).count()) / kLinkBytesPerS);
}

const std::vector<FunctionShape>& function_shapes() {
  // fixed and work are what the two throughputs above come to: work = (1 / t12 - 1 / t100) / (1 / 12 - 1 / saturation).
  static const std::vector<FunctionShape> kShapes = {
      {"resnet", {.fixed_ms = 1.06, .work_ms = 310.7, .saturation_percent = 24}, 69ms, mib(1525)},
      {"rnnt", {.fixed_ms = 46.8, .work_ms = 1658, .saturation_percent = 50}, 500ms, gib(2)},
      {"gnmt", {.fixed_ms = 8.5, .work_ms = 2092, .saturation_percent = 80}, 500ms, gib(2)},
      {"bert", {.fixed_ms = 5, .work_ms = 1800, .saturation_percent = 60}, 400ms, gib(2)},
      {"resnext", {.fixed_ms = 4, .work_ms = 2400, .saturation_percent = 60}, 400ms, mib(3800)},
      {"vit-huge", {.fixed_ms = 10, .work_ms = 9000, .saturation_percent = 100}, 800ms, mib(4735)},
  };
  return kShapes;
}

FunctionTerms terms_of(const FunctionShape& shape) {
  return {.objective = shape.objective, .memory = shape.memory, .device_memory = kDeviceMemory};
}

}  // namespace fairlead::sim
