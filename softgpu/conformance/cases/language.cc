// What C++ needs from a machine: calls through pointers and tables, recursion, memory in all its spaces, output, faults.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/inputs.h"
#include "softgpu/conformance/test.h"

namespace softgpu::conformance {
namespace {

void function_pointers(Test& test) {
  const auto a = integers(192, 1, -1000, 1000), b = integers(192, 2, -1000, 1000);
  const auto out = test.zeros<int>(192);
  test.launch("function_pointers", {2, 96}, test.upload(a), test.upload(b), out);
  std::vector<int> want(192);
  for (int i = 0; i < 192; ++i) want[i] = i % 3 == 0 ? a[i] + b[i] : i % 3 == 1 ? a[i] - b[i] : a[i] * b[i];
  test.equal("results", test.download(out), want);
}

void virtual_calls(Test& test) {
  const auto out = test.zeros<float>(64);
  test.launch("virtual_calls", {1, 64}, out);
  std::vector<float> want(64);
  for (int i = 0; i < 64; ++i) {
    const auto size = static_cast<float>(i);
    const float measures[] = {3.0f * size * size, size * 2.0f + 4.0f, size * size + 0.5f + 4.0f};
    want[i] = measures[i % 3] + measures[(i + 1) % 3];
  }
  test.equal("areas", test.download(out), want);
}

unsigned ackermann_of(unsigned m, unsigned n) {
  if (m == 0) return n + 1;
  return ackermann_of(m - 1, n == 0 ? 1 : ackermann_of(m, n - 1));
}

void recursion(Test& test) {
  const auto out = test.zeros<unsigned>(96);
  test.launch("recursion", {1, 48}, out);
  std::vector<unsigned> want;
  for (unsigned i = 0; i < 48; ++i) want.insert(want.end(), {ackermann_of(1 + i % 2, i % 6), i % 9 % 2 == 0});
  test.equal("results", test.download(out), want);
}

void thread_quicksort(Test& test) {
  auto values = integers(64 * 24, 3, -500, 500);
  const auto out = test.zeros<int>(values.size());
  test.launch("thread_quicksort", {2, 32}, test.upload(values), out);
  for (auto first = values.begin(); first != values.end(); first += 24) std::sort(first, first + 24);
  test.equal("sorted", test.download(out), values);
}

void variables(Test& test) {
  const int index = 5;
  const auto out = test.zeros<int>(4 * 32);
  test.launch("variables", {1, 32}, index, out);
  const int table[] = {3, 1, 4, 1, 5, 9, 2, 6};
  const std::string message = "a pointer in an initial value";
  std::vector<int> want;
  for (int i = 0; i < 32; ++i) {
    want.insert(want.end(), {(i < 8 ? table[i] : 0) * 10 + table[index], i % 2 * 4 + i % 4 + 1, message[i % 29], 64});
  }
  test.equal("read", test.download(out), want);
  test.equal("counter", test.download(test.global<long long>("counter")), {1000ll + 31 * 32 / 2});
  const auto grid = test.download(test.global<float>("grid"));
  test.equal("grid", grid, {1, 2, 3, 4, 5, 6, 7, 8, 0.5f, 0.5f, 0.5f, 0.5f, 0, 0, 0, 0});
}

void spills(Test& test) {
  const int count = 96, threads = 40;
  const auto in = uniform(count, 4);
  const auto order = integers(count, 5, 0, count - 1);
  const auto out = test.zeros<float>(threads);
  test.launch("spills", {1, threads}, test.upload(in), test.upload(order), out);
  std::vector<float> want;
  for (int thread = 0; thread < threads; ++thread) {
    std::vector<float> values(count);
    for (int i = 0; i < count; ++i) values[i] = in[i] * static_cast<float>(thread + 1);
    for (int step = 0; step < 4 * count; ++step) {
      const int i = step % count, j = order[(i + thread * 5) % count];
      const float swap = values[i];
      values[i] = values[j] + 1.0f;
      values[j] = swap - 1.0f;
    }
    float sum = 0;
    for (int i = 0; i < count; ++i) sum += values[i] * static_cast<float>(i);
    want.push_back(sum);
  }
  test.equal("sums", test.download(out), want);
}

struct Inner {
  double d;
  short s[3];
};
struct Packet {
  char tag;
  Inner inner[2];
  unsigned long long big;
  float f;
};

void structure_parameters(Test& test) {
  const Packet packet{'t', {{1.5, {1, 2, 3}}, {-2.25, {4, 5, 6}}}, 1ull << 40, 0.125f};
  const auto in = integers(32, 6, -9, 9);
  const auto out = test.zeros<double>(32);
  test.launch("structure_parameters", {1, 32}, 'c', packet, static_cast<short>(-7), 0.5, test.upload(in), out);
  std::vector<double> want(32);
  for (int i = 0; i < 32; ++i) {
    want[i] = 'c' + packet.tag + packet.inner[i % 2].d * packet.inner[1 - i % 2].s[i % 3] +
              static_cast<double>(packet.big) + packet.f - 7 + 0.5 * in[i];
  }
  test.equal("sums", test.download(out), want);
}

void generic_pointers(Test& test) {
  const auto in = integers(32, 7, -99, 99);
  const auto out = test.zeros<int>(32);
  test.launch("generic_pointers", {1, 32}, test.upload(in), out);
  std::vector<int> want(32);
  for (int i = 0; i < 32; ++i) {
    want[i] = 2 * (i % 3 == 0 ? in[i] : i % 3 == 1 ? in[31 - i] + 1 : in[i] * (i % 4 + 2));
  }
  test.equal("values", test.download(out), want);
}

void bytes(Test& test) {
  const auto random = words(120, 8, 256);
  const std::vector<unsigned char> in(random.begin(), random.end());
  const auto out = test.zeros<unsigned long long>(32);
  test.launch("bytes", {1, 32}, test.upload(in), out);
  std::vector<unsigned long long> want(32);
  for (int i = 0; i < 32; ++i) {
    unsigned long long word = 0;
    std::memcpy(&word, &in[i * 3 + 1], sizeof word);
    const unsigned long long low = word & 31, middle = word >> 5 & 0x1fff, high = word >> 18 & 0x3fff;
    want[i] = __builtin_bswap64(word) ^ (low << 48 | high << 20 | middle);
  }
  test.equal("words", test.download(out), want);
}

void indices(Test& test) {
  const unsigned blocks = 2 * 3 * 2, threads = 5 * 3 * 4;
  const auto out = test.zeros<unsigned>(blocks * threads);
  test.launch("indices", {{2, 3, 2}, {5, 3, 4}}, out);
  std::vector<unsigned> want;
  for (unsigned i = 0; i < blocks * threads; ++i) {
    want.push_back(i / threads * 10000 + i % threads * 100 + i % threads % 32);
  }
  test.equal("indices", test.download(out), want);
}

void clocks(Test& test) {
  const auto out = test.zeros<unsigned long long>(3);
  test.launch("clocks", {1, 1}, out);
  unsigned x = 0;
  for (int i = 0; i < 1000; ++i) x = x * 1664525u + 1013904223u;
  test.equal("clocks run", test.download(out), {1ull, 1ull, static_cast<unsigned long long>(x)});
}

// Standard output goes to a file for as long as it lives.
class CapturedOutput {
 public:
  CapturedOutput() : file_(std::tmpfile()), saved_(::dup(STDOUT_FILENO)) {
    std::fflush(stdout);
    if (file_ != nullptr) ::dup2(::fileno(file_), STDOUT_FILENO);
  }
  ~CapturedOutput() { restore(); }
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  std::string text() {
    restore();
    std::string result;
    if (file_ == nullptr) return result;
    std::rewind(file_);
    for (int c = 0; (c = std::fgetc(file_)) != EOF;) result += static_cast<char>(c);
    return result;
  }

 private:
  void restore() {
    if (saved_ < 0) return;
    std::fflush(stdout);
    ::dup2(saved_, STDOUT_FILENO);
    ::close(saved_);
    saved_ = -1;
  }
  std::FILE* file_;
  int saved_;
};

void print(Test& test) {
  const std::string word = "words";
  const auto device_word = test.upload(std::vector<char>(word.c_str(), word.c_str() + word.size() + 1));
  CapturedOutput output;
  for (int n = 1; n <= 2; ++n) test.launch("print", {1, 1}, n, device_word);
  test.synchronize();
  const std::string got = output.text();
  const std::string want =
      "block 1 of words:  1.50 -5000000000 z ff%\n"
      "block 2 of words:  3.00 -5000000000 z ff%\n"
      "[ab    |-00042|1.234568e+04|4000000000]\n";
  test.equal("printed", std::vector<char>(got.begin(), got.end()), std::vector<char>(want.begin(), want.end()));
}

// ---- Memory that kernels take themselves

void heap_lists(Test& test) {
  const int length = 10;
  const auto out = test.zeros<long long>(64);
  test.launch("heap_lists", {2, 32}, length, out);
  std::vector<long long> want(64);
  for (int i = 0; i < 64; ++i) want[i] = i % 32 * length * (length - 1) / 2;
  test.equal("sums", test.download(out), want);
}

void heap_between_kernels(Test& test) {
  const auto pieces = test.zeros<unsigned long long>(4);
  const auto out = test.zeros<unsigned>(4 * 64);
  test.launch("heap_take", {4, 64}, pieces);
  test.launch("heap_give_back", {4, 64}, pieces, out);
  std::vector<unsigned> want;
  for (unsigned i = 0; i < 4 * 64; ++i) want.push_back(i / 64 * 1000 + i % 64);
  test.equal("values", test.download(out), want);
}

void heap_exhausted(Test& test) {
  const auto address = test.upload(std::vector<unsigned long>{1});
  test.launch("heap_exhausted", {1, 1}, 1ul << 45, address);
  test.equal("address", test.download(address), {0});
}

// ---- Faults, each in a process of its own

// The launch itself succeeds; the fault shows at synchronisation and at every later call.
void expect_fault(Test& test, CUresult fault) {
  CUdeviceptr address = 0;
  test.expect_code("cuCtxSynchronize", driver().cuCtxSynchronize(), fault);
  test.expect_code("cuMemAlloc afterwards", driver().cuMemAlloc(&address, 4), fault);
  test.expect_code("cuCtxSynchronize again", driver().cuCtxSynchronize(), fault);
}

// Far from every allocation.
constexpr CUdeviceptr kNowhere = 0x10000;

void illegal_read(Test& test) {
  const auto out = test.zeros<unsigned>(32);
  test.launch("read_at", {1, 32}, Buffer<unsigned>{kNowhere, 32}, out);
  expect_fault(test, CUDA_ERROR_ILLEGAL_ADDRESS);
}

void illegal_write(Test& test) {
  test.launch("write_at", {1, 1}, Buffer<unsigned>{kNowhere, 1}, 7u);
  expect_fault(test, CUDA_ERROR_ILLEGAL_ADDRESS);
}

void misaligned_write(Test& test) {
  test.launch("misaligned", {1, 1}, test.zeros<char>(64));
  expect_fault(test, CUDA_ERROR_MISALIGNED_ADDRESS);
}

void trap(Test& test) {
  test.launch("trap", {1, 1});
  expect_fault(test, CUDA_ERROR_LAUNCH_FAILED);
}

void failed_assertion(Test& test) {
  test.launch("assert_positive", {1, 32}, test.upload(integers(32, 9, -5, 0)));
  expect_fault(test, CUDA_ERROR_ASSERT);
}

void passed_assertion(Test& test) {
  test.launch("assert_positive", {1, 32}, test.upload(integers(32, 10, 1, 5)));
  test.expect_code("cuCtxSynchronize", driver().cuCtxSynchronize(), CUDA_SUCCESS);
}

constexpr Case kCases[] = {
    {"function_pointers", "language", function_pointers},
    {"virtual_calls", "language", virtual_calls},
    {"recursion", "language", recursion},
    {"thread_quicksort", "language", thread_quicksort},
    {"variables", "language", variables},
    {"spills", "language", spills},
    {"structure_parameters", "language", structure_parameters},
    {"generic_pointers", "language", generic_pointers},
    {"bytes", "language", bytes},
    {"indices", "language", indices},
    {"clocks", "language", clocks},
    {"print", "language", print},
    {"heap_lists", "heap", heap_lists},
    {"heap_between_kernels", "heap", heap_between_kernels},
    {"heap_exhausted", "heap", heap_exhausted},
    {.name = "illegal_read", .kernels = "language", .run = illegal_read, .isolated = true},
    {.name = "illegal_write", .kernels = "language", .run = illegal_write, .isolated = true},
    {.name = "misaligned_write", .kernels = "language", .run = misaligned_write, .isolated = true},
    {.name = "trap", .kernels = "language", .run = trap, .isolated = true},
    {.name = "failed_assertion", .kernels = "language", .run = failed_assertion, .isolated = true},
    {"passed_assertion", "language", passed_assertion},
};

}  // namespace

const Field kLanguage{"language", kCases};

}  // namespace softgpu::conformance
