// hello-cpp: adds two vectors on the GPU.
// Payload: {"n": 1000}. Response: {"n":1000,"last":2997}: a[i] = i, b[i] = 2i, and the last of a + b.
#include <memory>
#include <numeric>

#include "fairlead/gpu.h"
#include "fairlead/json.h"
#include "fairlead/runtime.h"
#include "kernels_ptx.h"

namespace {

// Made once, when the instance starts: the device, the kernels and whatever else is worth keeping warm.
class VectorAdd {
 public:
  fairlead::Response handle(const fairlead::Event& event) {
    fairlead::Parameters parameters(event.payload);
    const int n = static_cast<int>(parameters.integer("n", 1000, {1, 1'000'000}));
    parameters.check_all_used();

    std::vector<float> a(static_cast<std::size_t>(n));
    std::iota(a.begin(), a.end(), 0.0f);
    std::vector<float> b = a;
    for (float& value : b) value *= 2;

    fairlead::DeviceArray<float> on_gpu_a(gpu_, a);
    const fairlead::DeviceArray<float> on_gpu_b(gpu_, b);
    constexpr unsigned kThreads = 256;
    add_.launch({(static_cast<unsigned>(n) + kThreads - 1) / kThreads}, {kThreads}, on_gpu_a, on_gpu_b, n);
    return fairlead::Response(fairlead::JsonObject().add("n", n).add("last", double{on_gpu_a.download().back()}).str());
  }

 private:
  fairlead::Gpu gpu_;
  fairlead::Module module_{gpu_, kernels_ptx};
  fairlead::Kernel add_ = module_.kernel("vector_add");
};

}  // namespace

int main() {
  return fairlead::run_with_init([]() -> fairlead::Handler {
    auto function = std::make_shared<VectorAdd>();  // shared: std::function copies its target
    return [function](const fairlead::Event& event) { return function->handle(event); };
  });
}
