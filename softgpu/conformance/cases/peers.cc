// Two devices: who may use whose memory. The documentation of cuCtxEnablePeerAccess and cuMemcpyPeer.
#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/inputs.h"
#include "softgpu/conformance/test.h"

namespace softgpu::conformance {
namespace {

// The primary contexts of the first two devices, the first current, and 1000 words on the second.
class Pair {
 public:
  // Skips the case where there is one device, or two that cannot reach each other.
  explicit Pair(Test& test) : test_(test) {
    int devices = 0, reachable = 0;
    driver().cuDeviceGetCount(&devices);
    if (devices < 2) test.skip("one device");
    if (test.ok()) driver().cuDeviceCanAccessPeer(&reachable, 0, 1);
    if (reachable == 0) test.skip("the first two devices are no peers");
    if (!test.ok()) return;
    driver().cuCtxGetCurrent(&first_);
    if (!test.check(driver().cuDevicePrimaryCtxRetain(&second_, 1), "cuDevicePrimaryCtxRetain")) return;
    driver().cuCtxSetCurrent(second_);
    test.check(driver().cuMemAlloc(&memory_.address, 4000), "cuMemAlloc on the second");
    memory_.count = 1000;
    driver().cuCtxSetCurrent(first_);
  }
  ~Pair() {
    if (second_ == nullptr) return;
    driver().cuCtxSetCurrent(first_);
    driver().cuCtxSynchronize();
    driver().cuCtxDisablePeerAccess(second_);
    driver().cuCtxSetCurrent(second_);
    driver().cuMemFree(memory_.address);
    driver().cuCtxSetCurrent(first_);
    driver().cuDevicePrimaryCtxRelease(1);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  CUcontext first() const { return first_; }
  CUcontext second() const { return second_; }
  const Buffer<unsigned>& memory() const { return memory_; }
  std::vector<unsigned> content() {
    driver().cuCtxSetCurrent(second_);
    auto values = test_.download(memory_);
    driver().cuCtxSetCurrent(first_);
    return values;
  }

 private:
  Test& test_;
  CUcontext first_ = nullptr, second_ = nullptr;
  Buffer<unsigned> memory_;
};

void enabled(Test& test) {
  Pair pair(test);
  if (!test.ok()) return;
  test.expect_code("not enabled", driver().cuCtxDisablePeerAccess(pair.second()), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  test.expect_code("cuCtxEnablePeerAccess", driver().cuCtxEnablePeerAccess(pair.second(), 0), CUDA_SUCCESS);
  test.expect_code("twice", driver().cuCtxEnablePeerAccess(pair.second(), 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  test.expect_code("flags are reserved", driver().cuCtxEnablePeerAccess(pair.second(), 1), CUDA_ERROR_INVALID_VALUE);
  const int n = 1000;
  test.launch("store_index", {4, 256}, n, pair.memory());
  test.synchronize();
  std::vector<unsigned> want(1000);
  for (unsigned i = 0; i < 1000; ++i) want[i] = i;
  test.equal("a kernel of the first wrote it", pair.content(), want);
  int ordinal = -1;
  test.check(driver().cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pair.memory().address),
             "ordinal");
  test.expect_value("it belongs to the second", ordinal, 1);
  test.expect_code("cuCtxDisablePeerAccess", driver().cuCtxDisablePeerAccess(pair.second()), CUDA_SUCCESS);
}

// Copies between devices need no access.
void copies(Test& test) {
  Pair pair(test);
  if (!test.ok()) return;
  const auto data = words(1000, 1);
  const auto source = test.upload(data), back = test.zeros<unsigned>(1000);
  test.expect_code("cuMemcpyPeer",
                   driver().cuMemcpyPeer(pair.memory().address, pair.second(), source.address, pair.first(), 4000),
                   CUDA_SUCCESS);
  test.synchronize();
  test.equal("there", pair.content(), data);
  test.expect_code("cuMemcpyDtoD", driver().cuMemcpyDtoD(back.address, pair.memory().address, 4000), CUDA_SUCCESS);
  test.equal("and back", test.download(back), data);
}

void not_enabled(Test& test) {
  Pair pair(test);
  if (!test.ok()) return;
  const int n = 32;
  test.launch("store_index", {1, 32}, n, pair.memory());
  test.expect_code("cuCtxSynchronize", driver().cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

constexpr Case kCases[] = {
    {"enabled", "driver", enabled},
    {"copies", nullptr, copies},
    {.name = "not_enabled", .kernels = "driver", .run = not_enabled, .isolated = true},
};

}  // namespace

const Field kPeers{"peers", kCases};

}  // namespace softgpu::conformance
