#include "runtime/device_server/kernel_session.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/log.h"
#include "decide/residency/kernel_width.h"
#include "gpu/fence/block_ranges.h"
#include "runtime/device_server/range_allocator.h"

namespace fairlead {
namespace {

constexpr std::size_t kArgumentAlignment = 16;

}  // namespace

Result<std::unique_ptr<LaunchLane>> LaunchLane::create(CudaContext& cuda) {
  Streams streams{};
  for (CUstream& stream : streams) {
    const auto made = cuda.make_stream();
    if (!made) return fail(made.error());
    stream = *made;
  }
  return create(cuda, streams);
}

Result<std::unique_ptr<LaunchLane>> LaunchLane::create(CudaContext& cuda, const Streams& streams) {
  auto lane = std::make_unique<LaunchLane>();
  lane->streams_ = streams;
  const auto fork = cuda.make_event(false);
  if (!fork) return fail(fork.error());
  lane->fork_ = *fork;
  for (CUevent& join : lane->joins_) {
    const auto made = cuda.make_event(false);
    if (!made) {
      lane->destroy_events(cuda);
      return fail(made.error());
    }
    join = *made;
  }
  return lane;
}

Status LaunchLane::need_events(CudaContext& cuda, std::uint32_t count) {
  while (events_.size() < count) {
    const auto event = cuda.make_event(false);
    if (!event) return fail(event.error());
    events_.push_back(*event);
  }
  return {};
}

void LaunchLane::destroy_events(CudaContext& cuda) {
  cuda.destroy_event(fork_);
  for (const CUevent event : joins_) {
    if (event != nullptr) cuda.destroy_event(event);
  }
  for (const CUevent event : events_) cuda.destroy_event(event);
  events_.clear();
}

Result<std::unique_ptr<KernelSession>> KernelSession::create(CudaContext& cuda, KernelTask task,
                                                             const std::vector<CUmodule>& modules, Launching launching,
                                                             Cublas* cublas, const std::vector<bool>& twins) {
  auto session = std::make_unique<KernelSession>();
  session->task_ = std::move(task);
  session->cublas_ = cublas;
  if (Status resolved = session->resolve(cuda, modules, twins); !resolved) return fail(resolved.error());
  session->lay_out_arguments();
  const auto before = dependencies(session->task_);
  session->plan_ = make_launch_plan(before, LaunchLane::kStreams);
  if (cublas != nullptr) session->find_products();
  session->lay_out_temporaries();
  const bool many = session->kernels_.size() * session->task_.iterations >= kMinGraphLaunches;
  if (launching == Launching::kGraphs && many && session->cublas_calls() == 0) session->instantiate(cuda, before);
  return session;
}

std::size_t KernelSession::cublas_calls() const {
  return static_cast<std::size_t>(
      std::count_if(kernels_.begin(), kernels_.end(), [](const Kernel& kernel) { return kernel.product.has_value(); }));
}

std::uint64_t KernelSession::most_blocks() const {
  if (cublas_calls() > 0) return std::numeric_limits<std::uint64_t>::max();
  std::vector<std::uint64_t> blocks;
  for (const KernelLaunch& launch : task_.kernels) blocks.push_back(blocks_of(launch.grid));
  return most_blocks_at_once(dependencies(task_), blocks);
}

// A workspace is a temporary as any other, so that it is counted, makes room and stays within the tenant's addresses.
void KernelSession::find_products() {
  std::array<std::optional<std::uint32_t>, LaunchLane::kStreams> workspaces;  // of each stream
  for (std::size_t k = 0; k < kernels_.size(); ++k) {
    kernels_[k].product = gemm_call(task_, k);
    if (!kernels_[k].product) continue;
    auto& workspace = workspaces.at(plan_.steps[k].stream);
    if (!workspace) {
      workspace = static_cast<std::uint32_t>(task_.buffers.size());
      task_.buffers.push_back({.name = "workspace of cuBLAS", .bytes = Bytes(Cublas::kWorkspaceBytes)});
    }
    kernels_[k].workspace = *workspace;
  }
}

Status KernelSession::resolve(CudaContext& cuda, const std::vector<CUmodule>& modules, const std::vector<bool>& twins) {
  for (std::size_t k = 0; k < task_.kernels.size(); ++k) {
    const KernelLaunch& launch = task_.kernels[k];
    const auto function = cuda.find_kernel(modules.at(launch.module), launch.kernel, launch.shared_bytes);
    if (!function) {
      return fail(Errc::kInvalidArgument, "kernels[{}] ({}) of {}: {}", k, launch.kernel,
                  task_.modules[launch.module].name, function.error().message);
    }
    kernels_.push_back({.function = *function});
    if (k >= twins.size() || !twins[k]) continue;
    const auto twin = cuda.find_kernel(modules.at(launch.module), fence::twin_of(launch.kernel), launch.shared_bytes);
    if (!twin) return fail(twin.error().code, "kernels[{}] ({}): {}", k, launch.kernel, twin.error().message);
    kernels_.back().twin = *twin;
  }
  return {};
}

void KernelSession::lay_out_arguments() {
  const auto reserve = [this](std::size_t bytes) {
    values_.resize((values_.size() + kArgumentAlignment - 1) / kArgumentAlignment * kArgumentAlignment);
    value_offsets_.push_back(static_cast<std::uint32_t>(values_.size()));
    values_.resize(values_.size() + bytes);
    return value_offsets_.back();
  };
  for (std::uint32_t kernel = 0; kernel < task_.kernels.size(); ++kernel) {
    kernels_[kernel].first_argument = static_cast<std::uint32_t>(value_offsets_.size());
    for (const KernelArgument& argument : task_.kernels[kernel].arguments) {
      if (const auto* buffer = std::get_if<BufferArgument>(&argument)) {
        patches_.push_back({kernel, reserve(sizeof(CUdeviceptr)), buffer->buffer, buffer->offset});
        continue;
      }
      const auto& literal = std::get<LiteralArgument>(argument);
      const std::uint32_t at = reserve(literal.bytes.size());
      std::memcpy(values_.data() + at, literal.bytes.data(), literal.bytes.size());
      for (const LiteralArgument::Relocation& relocation : literal.relocations) {
        patches_.push_back({kernel, at + relocation.at, relocation.target.buffer, relocation.target.offset});
      }
    }
  }
  for (const std::uint32_t offset : value_offsets_) parameters_.push_back(values_.data() + offset);
}

void KernelSession::lay_out_temporaries() {
  std::uint64_t end = 0;
  for (const BufferSpec& buffer : task_.buffers) {
    const bool temporary = buffer.role == BufferRole::kTemporary;
    temporary_offsets_.push_back(temporary ? end : 0);
    if (temporary) end += RangeAllocator::round_up(static_cast<std::uint64_t>(buffer.bytes.count()));
  }
  temporary_bytes_ = Bytes(static_cast<std::int64_t>(end));
}

CUresult KernelSession::launch(CudaContext& cuda, LaunchLane& lane, const std::vector<CUdeviceptr>& addresses) {
  rekey(addresses);
  if (graph_ && std::exchange(graph_is_stale_, false)) {
    changed_.resize(kernels_.size());
    std::iota(changed_.begin(), changed_.end(), 0);
  }
  std::uint32_t left = task_.iterations;
  CUresult code = graph_ ? launch_graph(cuda, lane, left) : CUDA_SUCCESS;
  for (; left > 0 && code == CUDA_SUCCESS; --left) code = launch_once(cuda, lane, addresses);
  return code;
}

void KernelSession::rekey(const std::vector<CUdeviceptr>& addresses) {
  changed_.clear();
  for (const Patch& patch : patches_) {
    const CUdeviceptr address = addresses[patch.buffer] + patch.offset;
    char* const value = values_.data() + patch.at;
    if (std::memcmp(value, &address, sizeof address) == 0) continue;
    std::memcpy(value, &address, sizeof address);
    if (changed_.empty() || changed_.back() != patch.kernel) changed_.push_back(patch.kernel);
  }
}

void KernelSession::place_buffers(const std::vector<CUdeviceptr>& addresses) {
  rekey(addresses);
  graph_is_stale_ |= !changed_.empty();
}

CUresult KernelSession::launch_blocks(CudaContext& cuda, std::size_t kernel, std::uint64_t first, std::uint64_t count,
                                      CUstream stream, const std::vector<CUdeviceptr>& addresses) {
  const KernelLaunch& launch = task_.kernels[kernel];
  const Kernel& own = kernels_[kernel];
  void** const parameters = parameters_.data() + own.first_argument;
  if (count == blocks_of(launch.grid)) {
    return own.product ? multiply(cuda, kernel, stream, addresses) : launch_kernel(cuda, kernel, stream, parameters);
  }
  FL_CHECK(own.twin != nullptr, "{} of the blocks of {}, which has no twin", count, launch.kernel);
  fence::RangeWords words = fence::range_words(launch.grid, first);
  std::vector<void*> all(parameters, parameters + launch.arguments.size());
  all.push_back(&words);
  const Dim3 row{static_cast<std::uint32_t>(count), 1, 1};
  return cuda.launch(own.twin, row, launch.block, launch.shared_bytes, stream, all.data());
}

std::uint64_t KernelSession::blocks_at_once(const Occupancy& occupancy, std::size_t kernel) const {
  const KernelLaunch& launch = task_.kernels[kernel];
  const std::uint32_t threads = launch.block[0] * launch.block[1] * launch.block[2];
  return occupancy.blocks_at_once(kernels_[kernel].function, threads, launch.shared_bytes);
}

void KernelSession::instantiate(CudaContext& cuda, const std::vector<std::vector<std::uint32_t>>& before) {
  std::vector<CUDA_KERNEL_NODE_PARAMS_v1> nodes;
  for (std::size_t k = 0; k < kernels_.size(); ++k) {
    const KernelLaunch& launch = task_.kernels[k];
    CUDA_KERNEL_NODE_PARAMS_v1 node{};
    node.func = kernels_[k].function;
    node.gridDimX = launch.grid[0], node.gridDimY = launch.grid[1], node.gridDimZ = launch.grid[2];
    node.blockDimX = launch.block[0], node.blockDimY = launch.block[1], node.blockDimZ = launch.block[2];
    node.sharedMemBytes = launch.shared_bytes;
    node.kernelParams = parameters_.data() + kernels_[k].first_argument;
    nodes.push_back(node);
  }
  auto graph = KernelGraph::create(cuda, std::move(nodes), before, task_.iterations);
  if (!graph) return give_up_graph(graph.error().message);
  graph_ = *std::move(graph);
}

void KernelSession::give_up_graph(const std::string& why) {
  graph_.reset();
  static bool said = false;
  if (!std::exchange(said, true))
    spdlog::warn("a kernel task is launched kernel by kernel instead of as a graph: {}", why);
}

// Iterations that the graph does are taken off `left`. Where it is refused before anything ran, they are all left.
CUresult KernelSession::launch_graph(CudaContext& cuda, LaunchLane& lane, std::uint32_t& left) {
  CUresult code = CUDA_SUCCESS;
  for (const std::uint32_t kernel : changed_) {
    if (code == CUDA_SUCCESS) code = graph_->update(kernel);
  }
  while (left >= graph_->iterations() && code == CUDA_SUCCESS) {
    code = graph_->launch(lane.main());
    if (code == CUDA_SUCCESS) left -= graph_->iterations();
  }
  if (code == CUDA_SUCCESS || left < task_.iterations) return code;
  give_up_graph(cuda.describe(code));
  return CUDA_SUCCESS;
}

// Streams beyond the first begin after everything before them on the first, and the first goes on after all of them.
CUresult KernelSession::launch_once(CudaContext& cuda, LaunchLane& lane, const std::vector<CUdeviceptr>& addresses) {
  CUresult code = CUDA_SUCCESS;
  const auto check = [&code](CUresult result) {
    if (code == CUDA_SUCCESS) code = result;
  };
  if (plan_.streams > 1) {
    check(cuda.record(lane.fork(), lane.main()));
    for (std::uint32_t s = 1; s < plan_.streams; ++s) check(cuda.wait(lane.stream(s), lane.fork()));
  }
  for (std::size_t k = 0; k < kernels_.size() && code == CUDA_SUCCESS; ++k) {
    const LaunchPlan::Step& step = plan_.steps[k];
    const CUstream stream = lane.stream(step.stream);
    for (const std::uint32_t event : step.waits) check(cuda.wait(stream, lane.event(event)));
    check(kernels_[k].product ? multiply(cuda, k, stream, addresses)
                              : launch_kernel(cuda, k, stream, parameters_.data() + kernels_[k].first_argument));
    if (step.records >= 0) check(cuda.record(lane.event(static_cast<std::uint32_t>(step.records)), stream));
  }
  for (std::uint32_t s = 1; s < plan_.streams; ++s) {
    check(cuda.record(lane.join(s), lane.stream(s)));
    check(cuda.wait(lane.main(), lane.join(s)));
  }
  return code;
}

CUresult KernelSession::launch_kernel(CudaContext& cuda, std::size_t kernel, CUstream stream, void** parameters) {
  const KernelLaunch& launch = task_.kernels[kernel];
  return cuda.launch(kernels_[kernel].function, launch.grid, launch.block, launch.shared_bytes, stream, parameters);
}

// What cuBLAS refuses the kernel does, now and in later calls. It computes C anew from what cuBLAS has not written, unless C
// is itself an addend: of that a call that failed may have written a part.
CUresult KernelSession::multiply(CudaContext& cuda, std::size_t kernel, CUstream stream,
                                 const std::vector<CUdeviceptr>& addresses) {
  Kernel& own = kernels_[kernel];
  const GemmCall& call = *own.product;
  void** const parameters = parameters_.data() + own.first_argument;
  const auto address = [&addresses](const GemmCall::Matrix& matrix) {
    return addresses[matrix.buffer] + matrix.offset;
  };
  CUresult code = CUDA_SUCCESS;
  if (call.brings_addend) {
    code = launch_kernel(cuda, kernel, stream, addend_parameters(call.element, parameters).data());
    if (code != CUDA_SUCCESS) return code;
  }
  const cublasStatus_t status = cublas_->multiply(call,
                                                  {.left = address(call.left),
                                                   .right = address(call.right),
                                                   .c = address(call.c),
                                                   .workspace = addresses[own.workspace]},
                                                  stream);
  if (status == CUBLAS_STATUS_SUCCESS) {
    if (!call.finishes) return CUDA_SUCCESS;
    return launch_kernel(cuda, kernel, stream, finish_parameters(call.element, parameters).data());
  }
  spdlog::warn("kernels[{}] ({}) of a kernel task: cuBLAS answers {}: the built-in kernel is used", kernel,
               task_.kernels[kernel].kernel, cublas_->describe(status));
  const bool can_be_done_again = !call.in_place || Cublas::is_refusal(status);
  own.product.reset();
  return can_be_done_again ? launch_kernel(cuda, kernel, stream, parameters) : CUDA_ERROR_LAUNCH_FAILED;
}

}  // namespace fairlead
