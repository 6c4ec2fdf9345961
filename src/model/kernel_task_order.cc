// The order of a task's kernels. For each buffer the last kernel that wrote it and those that have read it since are
// known; a kernel that reads a buffer follows its writer, one that writes a buffer follows the readers, or where there
// are none, the writer before it. That leaves edges which follow from others:
//
//   k0 writes a;   k1 reads a, writes b;   k2 reads a and b      k2 after k0 and k1, but k1 is after k0: {1} is enough
//
// So each kernel keeps the set of all that come before it, as a row of bits. Its candidates are taken from the latest to
// the earliest: one that is in the row already follows from one taken; else it is taken and its own row added. 16,384
// kernels need rows of 16 MiB together, and one pass over a row (1 KiB on average) for each edge that is answered.
#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "model/kernel_task.h"
#include "model/kernel_task_access.h"

namespace fairlead {
namespace {

// Sets of kernels: row k has a bit for each earlier one.
class Ancestors {
 public:
  void begin_row() {
    begins_.push_back(words_.size());
    words_.resize(words_.size() + begins_.size() / 64 + 1);
  }
  // In the row begun last.
  bool has(std::uint32_t kernel) const { return (words_[begins_.back() + kernel / 64] >> (kernel % 64) & 1) != 0; }
  void add_with_ancestors(std::uint32_t kernel) {
    std::uint64_t* to = words_.data() + begins_.back();
    const std::uint64_t* from = words_.data() + begins_[kernel];
    for (std::size_t i = 0; i <= kernel / 64; ++i) to[i] |= from[i];
    to[kernel / 64] |= std::uint64_t{1} << (kernel % 64);
  }

 private:
  std::vector<std::size_t> begins_;
  std::vector<std::uint64_t> words_;
};

struct BufferState {
  std::optional<std::uint32_t> writer;
  std::vector<std::uint32_t> readers;  // since it wrote
};

// The kernels that `kernel` must follow because of one buffer; afterwards `state` is that behind the kernel.
void follow(BufferState& state, const BufferAccess& access, std::uint32_t kernel, std::vector<std::uint32_t>& found) {
  if (!access.writes || state.readers.empty()) {
    if (state.writer) found.push_back(*state.writer);
  } else {
    found.insert(found.end(), state.readers.begin(), state.readers.end());
  }
  if (!access.writes) {
    state.readers.push_back(kernel);
    return;
  }
  state.writer = kernel;
  state.readers.clear();
}

}  // namespace

std::vector<std::vector<std::uint32_t>> dependencies(const KernelTask& task) {
  std::vector<BufferState> buffers(task.buffers.size());
  std::vector<std::vector<std::uint32_t>> result(task.kernels.size());
  Ancestors ancestors;
  std::vector<std::uint32_t> candidates;
  for (std::uint32_t kernel = 0; kernel < task.kernels.size(); ++kernel) {
    candidates.clear();
    for (const BufferAccess& access : buffer_accesses(task, task.kernels[kernel])) {
      follow(buffers[access.buffer], access, kernel, candidates);
    }
    std::sort(candidates.begin(), candidates.end(), std::greater<>());
    ancestors.begin_row();
    for (const std::uint32_t candidate : candidates) {
      if (ancestors.has(candidate)) continue;
      ancestors.add_with_ancestors(candidate);
      result[kernel].push_back(candidate);
    }
    std::reverse(result[kernel].begin(), result[kernel].end());
  }
  return result;
}

std::vector<BufferAccess> buffer_accesses(const KernelTask& task, const KernelLaunch& kernel) {
  std::vector<BufferAccess> accesses;
  for_each_buffer_argument(kernel, [&](const BufferArgument& argument) {
    FL_CHECK(argument.buffer < task.buffers.size(), "buffer={} of {}", argument.buffer, task.buffers.size());
    accesses.push_back(access_of(argument, task.buffers[argument.buffer].role));
  });
  std::sort(accesses.begin(), accesses.end(),
            [](const BufferAccess& a, const BufferAccess& b) { return a.buffer < b.buffer; });
  std::size_t kept = 0;
  for (const BufferAccess& access : accesses) {
    if (kept != 0 && accesses[kept - 1].buffer == access.buffer) {
      accesses[kept - 1].reads |= access.reads;
      accesses[kept - 1].writes |= access.writes;
    } else {
      accesses[kept++] = access;
    }
  }
  accesses.resize(kept);
  return accesses;
}

}  // namespace fairlead
