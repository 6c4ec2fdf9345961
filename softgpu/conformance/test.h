// What a case works with: device buffers, launches, comparisons. The first failure ends the case in effect: every later
// operation does nothing, and downloads give zeros, so that a case reads as straight code without a check per line.
//
//   void saxpy(Test& test) {
//     const std::vector<float> x = uniform(n, 1), y = uniform(n, 2);
//     auto device_y = test.upload(y);
//     test.launch("saxpy", {blocks, 256}, n, 2.5f, test.upload(x), device_y);
//     test.equal("y", test.download(device_y), reference);
//   }
//
// Threads: a test belongs to one thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "softgpu/conformance/case.h"
#include "softgpu/conformance/driver.h"

namespace softgpu::conformance {

// As CUDA's dim3: a number is a size along x.
struct Dim {
  unsigned x = 1, y = 1, z = 1;
  Dim(unsigned x_value, unsigned y_value = 1, unsigned z_value = 1)  // NOLINT(google-explicit-constructor)
      : x(x_value), y(y_value), z(z_value) {}
};

struct Shape {
  Dim grid;
  Dim block;
  unsigned dynamic_shared_bytes = 0;
  CUstream stream = nullptr;
  bool cooperative = false;
};

// Device memory with `count` elements. Owned by the test and freed with it.
template <class T>
struct Buffer {
  CUdeviceptr address = 0;
  std::size_t count = 0;
};

class Test {
 public:
  // REQUIRES: a current context.
  explicit Test(const Case& description);
  ~Test();
  Test(const Test&) = delete;
  Test& operator=(const Test&) = delete;

  // ---- Device ----
  template <class T>
  Buffer<T> upload(const std::vector<T>& values) {
    const Buffer<T> buffer{allocate(values.size() * sizeof(T)), values.size()};
    if (ok()) check(driver().cuMemcpyHtoD(buffer.address, values.data(), values.size() * sizeof(T)), "cuMemcpyHtoD");
    return buffer;
  }
  // Elements whose bytes are all zero.
  template <class T>
  Buffer<T> zeros(std::size_t count) {
    const Buffer<T> buffer{allocate(count * sizeof(T)), count};
    if (ok()) check(driver().cuMemsetD8(buffer.address, 0, count * sizeof(T)), "cuMemsetD8");
    return buffer;
  }
  template <class T>
  std::vector<T> download(const Buffer<T>& buffer) {
    std::vector<T> values(buffer.count);
    if (ok()) check(driver().cuMemcpyDtoH(values.data(), buffer.address, buffer.count * sizeof(T)), "cuMemcpyDtoH");
    return values;
  }

  // Launches a kernel of the case's module. Arguments have exactly the kernel's parameter types; a Buffer is a pointer.
  template <class... Arguments>
  void launch(const char* kernel, const Shape& shape, const Arguments&... arguments) {
    const std::tuple<decltype(parameter(arguments))...> values{parameter(arguments)...};
    std::apply([&](const auto&... value) { launch_with(kernel, shape, {const_cast<void*>(as_void(&value))...}); },
               values);
  }
  // Waits for all work and reports a fault.
  void synchronize() {
    if (ok()) check(driver().cuCtxSynchronize(), "cuCtxSynchronize");
  }
  // Loads the case's module, once; before the case runs, because a capture refuses it.
  bool load();
  CUfunction function(const char* kernel);
  // The variable of the case's module, as one buffer of T.
  template <class T>
  Buffer<T> global(const char* name) {
    Buffer<T> buffer;
    std::size_t bytes = 0;
    if (load()) check(driver().cuModuleGetGlobal(&buffer.address, &bytes, module_, name), "cuModuleGetGlobal");
    buffer.count = bytes / sizeof(T);
    return buffer;
  }
  int attribute(CUdevice_attribute attribute) const;

  // ---- Results ----
  bool ok() const { return result_.status == Status::kPass; }
  void fail(const std::string& why);
  void skip(const std::string& why);
  // An unexpected error code ends the case; CUDA_ERROR_NOT_SUPPORTED and a refused module make it kRefused.
  bool check(CUresult result, const char* what);
  void expect(bool condition, const char* what) {
    if (ok() && !condition) fail(what);
  }
  // The driver answered `got`; its documentation says `want`.
  void expect_code(const char* what, CUresult got, CUresult want);
  // A number that the driver reports; part of the digest and of the report.
  void expect_value(const char* what, long long got, long long want);

  // What the driver did where the documentation says nothing: in the report, judged by nobody.
  void observe(const std::string& what, const std::string& value) {
    result_.observed.emplace_back("open: " + what, value);
  }

  // Bit for bit.
  template <class T>
  void equal(const char* what, const std::vector<T>& got, const std::vector<T>& want) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (!ok()) return;
    add_to_digest(got.data(), got.size() * sizeof(T));
    if (got.size() != want.size()) return fail(std::string(what) + ": sizes differ");
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (std::memcmp(&got[i], &want[i], sizeof(T)) != 0) return mismatch(what, i, text(got[i]), text(want[i]));
    }
  }
  // |got - want| <= tolerance * max(1, |want|) for every element; NaN equals NaN.
  template <class T>
  void near(const char* what, const std::vector<T>& got, const std::vector<T>& want, double tolerance) {
    if (!ok()) return;
    add_to_digest(got.data(), got.size() * sizeof(T));
    if (got.size() != want.size()) return fail(std::string(what) + ": sizes differ");
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double g = static_cast<double>(got[i]), w = static_cast<double>(want[i]);
      if (g == w || (std::isnan(g) && std::isnan(w))) continue;
      const double error = std::fabs(g - w) / std::fmax(1, std::fabs(w));
      if (!(error <= tolerance)) return mismatch(what, i, text(got[i]), text(want[i]));
      result_.max_error = std::fmax(result_.max_error, error);
    }
  }

  CaseResult take_result();

 private:
  static const void* as_void(const void* pointer) { return pointer; }
  template <class T>
  static CUdeviceptr parameter(const Buffer<T>& buffer) {
    return buffer.address;
  }
  template <class T>
  static T parameter(const T& value) {
    return value;
  }
  template <class T>
  static std::string text(const T& value) {
    if constexpr (std::is_arithmetic_v<T>) return number(static_cast<double>(value));
    return "(a structure)";
  }
  static std::string number(double value);

  CUdeviceptr allocate(std::size_t bytes);
  void launch_with(const char* kernel, const Shape& shape, std::vector<void*> parameters);
  void mismatch(const char* what, std::size_t index, const std::string& got, const std::string& want);
  void add_to_digest(const void* bytes, std::size_t count);

  const Case& description_;
  CUmodule module_ = nullptr;
  std::vector<CUdeviceptr> allocations_;
  CaseResult result_;
};

}  // namespace softgpu::conformance
