#include "runtime/device_server/gemm_call.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace fairlead {
namespace {

constexpr std::string_view kModule = "fairlead:gemm";

struct Entry {
  std::string_view name;
  GemmCall::Element element;
  std::uint32_t tile;  // a block makes a square of C so wide
  std::uint32_t threads;
};
constexpr std::array<Entry, 6> kEntries{{{"gemm_f32", GemmCall::Element::kF32, 64, 256},
                                         {"gemm_f64", GemmCall::Element::kF64, 64, 256},
                                         {"gemm_c64", GemmCall::Element::kC64, 64, 256},
                                         {"gemm_f32_small", GemmCall::Element::kF32, 32, 64},
                                         {"gemm_f64_small", GemmCall::Element::kF64, 32, 64},
                                         {"gemm_c64_small", GemmCall::Element::kC64, 32, 64}}};

const Entry* entry_of(const KernelTask& task, const KernelLaunch& launch) {
  if (task.modules[launch.module].name != kModule || launch.arguments.size() != GemmCall::kArguments) return nullptr;
  const auto* found =
      std::find_if(kEntries.begin(), kEntries.end(), [&](const Entry& entry) { return entry.name == launch.kernel; });
  return found == kEntries.end() ? nullptr : found;
}

// One launch's arguments. What is not of the form that the table of the library has is remembered, not answered.
class Arguments {
 public:
  explicit Arguments(const KernelLaunch& launch) : launch_(launch) {}

  template <typename T>
  T value(GemmCall::Argument index) {
    T value{};
    copy(index, &value, sizeof value);
    return value;
  }
  void copy(GemmCall::Argument index, void* target, std::size_t bytes) {
    const auto* literal = std::get_if<LiteralArgument>(&launch_.arguments[index]);
    valid_ = valid_ && literal != nullptr && literal->relocations.empty() && literal->bytes.size() == bytes;
    if (valid_) std::memcpy(target, literal->bytes.data(), bytes);
  }
  // Null where it is the null address.
  const BufferArgument* buffer(GemmCall::Argument index) {
    const auto* buffer = std::get_if<BufferArgument>(&launch_.arguments[index]);
    if (buffer == nullptr) valid_ = value<std::uint64_t>(index) == 0 && valid_;
    return buffer;
  }
  bool valid() const { return valid_; }

 private:
  const KernelLaunch& launch_;
  bool valid_ = true;
};

// A matrix as the library's kernel has it. Strides in elements; of what is there once, they do not matter.
struct Strided {
  const BufferArgument* at = nullptr;
  std::int64_t rows = 0, columns = 0, batches = 0;
  std::int64_t row = 0, column = 0, batch = 0;
};

struct Range {
  std::uint32_t buffer = 0;
  std::uint64_t begin = 0, end = 0;  // bytes
  bool overlaps(const Range& other) const { return buffer == other.buffer && begin < other.end && other.begin < end; }
};

// The bytes that it takes. Nothing: not all of them are in its buffer.
std::optional<Range> range_of(const KernelTask& task, const Strided& matrix, std::size_t element) {
  std::int64_t last = 0;
  for (const auto& [count, stride] : {std::pair{matrix.rows, matrix.row}, std::pair{matrix.columns, matrix.column},
                                      std::pair{matrix.batches, matrix.batch}}) {
    std::int64_t distance = 0;
    if (count == 1) continue;
    if (stride < 0 || __builtin_mul_overflow(count - 1, stride, &distance)) return std::nullopt;
    if (__builtin_add_overflow(last, distance, &last)) return std::nullopt;
  }
  const auto bytes = static_cast<std::uint64_t>(task.buffers[matrix.at->buffer].bytes.count());
  const std::uint64_t offset = matrix.at->offset;
  if (offset % element != 0 || offset > bytes) return std::nullopt;
  if (static_cast<std::uint64_t>(last) >= (bytes - offset) / element) return std::nullopt;
  return Range{matrix.at->buffer, offset, offset + (static_cast<std::uint64_t>(last) + 1) * element};
}

// With one of its sides contiguous, the other at a leading dimension that does not fold it upon itself.
std::optional<GemmCall::Matrix> column_major(const Strided& matrix) {
  const bool in_rows = matrix.columns == 1 || matrix.column == 1;
  const bool in_columns = matrix.rows == 1 || matrix.row == 1;
  if (!in_rows && !in_columns) return std::nullopt;
  const auto make = [&matrix](bool transposed, std::int64_t length, std::int64_t count,
                              std::int64_t stride) -> std::optional<GemmCall::Matrix> {
    const std::int64_t ld = count == 1 ? length : stride;
    if (ld < length || ld > std::numeric_limits<int>::max()) return std::nullopt;
    return GemmCall::Matrix{.buffer = matrix.at->buffer,
                            .offset = matrix.at->offset,
                            .ld = static_cast<int>(ld),
                            .batch = matrix.batches == 1 ? 0 : matrix.batch,
                            .transposed = transposed};
  };
  if (in_rows) {
    if (const auto as_it_is = make(false, matrix.columns, matrix.rows, matrix.row)) return as_it_is;
  }
  if (!in_columns) return std::nullopt;
  return make(true, matrix.rows, matrix.columns, matrix.column);
}

// No element of the batch is in two matrices: they follow each other, or lie beside each other row by row.
bool is_disjoint(const Strided& c) {
  if (c.batches == 1) return true;
  const std::int64_t row = c.rows == 1 ? 0 : c.row;
  const bool follow = c.batch >= (c.rows - 1) * row + c.columns;
  const bool beside = c.batch >= c.columns && (c.rows == 1 || row >= (c.batches - 1) * c.batch + c.columns);
  return follow || beside;
}

bool covers(const KernelLaunch& launch, const Entry& entry, int m, int n) {
  const std::uint64_t wide = std::uint64_t{launch.grid[0]} * entry.tile;
  const std::uint64_t high = std::uint64_t{launch.grid[1]} * entry.tile;
  return launch.block == Dim3{entry.threads, 1, 1} && wide >= static_cast<std::uint64_t>(n) &&
         high >= static_cast<std::uint64_t>(m) && launch.grid[2] >= 1 &&
         launch.grid[2] <= static_cast<std::uint32_t>(std::numeric_limits<int>::max());
}

bool is_zero(GemmCall::Element element, const std::array<char, 8>& value) {
  if (element == GemmCall::Element::kF64) {
    double number = 0;
    std::memcpy(&number, value.data(), sizeof number);
    return number == 0;
  }
  std::array<float, 2> parts{};  // of a single number the second is 0
  std::memcpy(parts.data(), value.data(), sizeof parts);
  return parts[0] == 0 && parts[1] == 0;
}

struct Product {
  int m = 0, n = 0, k = 0;
  Strided a, b, c;
  const BufferArgument* d = nullptr;
};

Product read_product(Arguments& from, std::uint32_t batches) {
  using Call = GemmCall;
  Product p{.m = from.value<int>(Call::kM), .n = from.value<int>(Call::kN), .k = from.value<int>(Call::kK)};
  const auto stride = [&from](Call::Argument index) { return from.value<std::int64_t>(index); };
  p.a = {from.buffer(Call::kA), p.m, p.k, batches, stride(Call::kARow), stride(Call::kAColumn), stride(Call::kABatch)};
  p.b = {from.buffer(Call::kB), p.k, p.n, batches, stride(Call::kBRow), stride(Call::kBColumn), stride(Call::kBBatch)};
  p.c = {from.buffer(Call::kC), p.m, p.n, batches, stride(Call::kCRow), 1, stride(Call::kCBatch)};
  p.d = from.buffer(Call::kD);
  return p;
}

// Where everything is, checked.
bool place(const KernelTask& task, const Product& p, GemmCall& call) {
  const std::size_t element = element_bytes(call.element);
  const auto in_a = range_of(task, p.a, element);
  const auto in_b = range_of(task, p.b, element);
  const auto in_c = range_of(task, p.c, element);
  if (!in_a || !in_b || !in_c || in_c->overlaps(*in_a) || in_c->overlaps(*in_b) || !is_disjoint(p.c)) return false;
  const auto left = column_major(p.b);
  const auto right = column_major(p.a);
  const auto c = column_major(p.c);
  if (!left || !right || !c || c->transposed) return false;
  call.left = *left;
  call.right = *right;
  call.c = *c;
  return true;
}

// What the library's kernel is given in place of its own arguments.
struct Constants {
  std::array<char, 8> zero{};
  std::array<float, 2> one_f32{1, 0};  // of a complex number, too
  double one_f64 = 1;
};
const Constants kConstants;

// The driver's parameters are not const, and it only reads them.
void* parameter(const void* value) {
  return const_cast<void*>(value);
}

GemmParameters without_product(GemmCall::Element element, void* const* own) {
  GemmParameters parameters;
  std::copy_n(own, parameters.size(), parameters.begin());
  const bool is_double = element == GemmCall::Element::kF64;
  parameters[GemmCall::kK] = parameters[GemmCall::kAlpha] = parameter(&kConstants.zero);
  parameters[GemmCall::kBeta] = is_double ? parameter(&kConstants.one_f64) : parameter(&kConstants.one_f32);
  return parameters;
}

}  // namespace

std::size_t element_bytes(GemmCall::Element element) {
  return element == GemmCall::Element::kF32 ? 4 : 8;
}

std::optional<GemmCall> gemm_call(const KernelTask& task, std::size_t kernel) {
  const KernelLaunch& launch = task.kernels[kernel];
  const Entry* entry = entry_of(task, launch);
  if (entry == nullptr) return std::nullopt;
  Arguments from(launch);
  const Product p = read_product(from, launch.grid[2]);
  GemmCall call{.element = entry->element, .m = p.n, .n = p.m, .k = p.k};
  from.copy(GemmCall::kAlpha, call.alpha.data(), element_bytes(call.element));
  from.copy(GemmCall::kBeta, call.beta.data(), element_bytes(call.element));
  const BufferArgument* bias = from.buffer(GemmCall::kBias);
  const bool activates = from.value<int>(GemmCall::kActivation) != 0 && call.element == GemmCall::Element::kF32;
  if (!from.valid() || p.a.at == nullptr || p.b.at == nullptr || p.c.at == nullptr) return std::nullopt;
  // 0 times what is no number is 0 for cuBLAS, which does not look.
  if (p.m < 1 || p.n < 1 || p.k < 1 || !covers(launch, *entry, p.m, p.n) || is_zero(call.element, call.alpha)) {
    return std::nullopt;
  }
  call.batches = static_cast<int>(launch.grid[2]);
  if (!place(task, p, call)) return std::nullopt;
  if (!is_zero(call.element, call.beta)) {
    if (p.d == nullptr) return std::nullopt;
    call.in_place = p.d->buffer == p.c.at->buffer && p.d->offset == p.c.at->offset;
    call.brings_addend = !call.in_place;
  }
  call.finishes = bias != nullptr || activates;
  return call;
}

GemmParameters addend_parameters(GemmCall::Element element, void* const* own) {
  GemmParameters parameters = without_product(element, own);
  parameters[GemmCall::kBias] = parameters[GemmCall::kActivation] = parameter(&kConstants.zero);
  return parameters;
}

GemmParameters finish_parameters(GemmCall::Element element, void* const* own) {
  GemmParameters parameters = without_product(element, own);
  parameters[GemmCall::kD] = parameters[GemmCall::kC];
  return parameters;
}

}  // namespace fairlead
