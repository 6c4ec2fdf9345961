#include "runtime/device_server/copy_streams.h"

#include <algorithm>

namespace fairlead {
namespace {

constexpr std::array kLanes{CopyLane::kSmall, CopyLane::kLarge};

std::size_t index_of(CopyLane lane) {
  return static_cast<std::size_t>(lane);
}

}  // namespace

Result<std::unique_ptr<CopyStreams>> CopyStreams::create(CudaContext& cuda) {
  std::unique_ptr<CopyStreams> streams(new CopyStreams(cuda));
  for (CUstream& stream : streams->streams_) {
    const auto made = cuda.make_stream();
    if (!made) return fail(made.error());
    stream = *made;
  }
  return streams;
}

// Its stream waits for what touches that memory on the other one.
CUresult CopyStreams::prepare(CopyLane lane, CUdeviceptr address, std::uint64_t bytes) {
  CopyPoint point = before(address, bytes);
  point[lane] = 0;  // in order anyway
  CUresult code = wait(stream(lane), point);
  if (batch_ != nullptr && batch_->last[lane] == 0 && batch_->begin[index_of(lane)] != nullptr &&
      code == CUDA_SUCCESS) {
    code = cuda_.record(batch_->begin[index_of(lane)], stream(lane));
  }
  const std::uint64_t number = pending_.add(lane, part(address, bytes));
  if (batch_ != nullptr) {
    batch_->last[lane] = number;
    if (lane == CopyLane::kLarge) batch_->large_bytes += bytes;
  }
  return code;
}

CUresult CopyStreams::copy_in(CUdeviceptr to, const void* from, std::uint64_t bytes) {
  const CopyLane lane = copy_lane_of(bytes);
  CUresult code = prepare(lane, to, bytes);
  const auto* source = static_cast<const std::byte*>(from);
  for (std::uint64_t done = 0; done < bytes && code == CUDA_SUCCESS; done += kPieceBytes) {
    code = cuda_.copy_in(to + done, source + done, std::min(kPieceBytes, bytes - done), stream(lane));
  }
  return code;
}

CUresult CopyStreams::copy_out(void* to, CUdeviceptr from, std::uint64_t bytes) {
  const CopyLane lane = copy_lane_of(bytes);
  CUresult code = prepare(lane, from, bytes);
  auto* target = static_cast<std::byte*>(to);
  for (std::uint64_t done = 0; done < bytes && code == CUDA_SUCCESS; done += kPieceBytes) {
    code = cuda_.copy_out(target + done, from + done, std::min(kPieceBytes, bytes - done), stream(lane));
  }
  return code;
}

void CopyStreams::begin(Batch& batch) {
  batch_ = &batch;
  batch.last = {};
  batch.large_bytes = 0;
}

CUresult CopyStreams::end() {
  Batch& batch = *std::exchange(batch_, nullptr);
  CUresult code = CUDA_SUCCESS;
  for (const CopyLane lane : kLanes) {
    if (batch.last[lane] == 0) continue;
    const CUevent end = batch.end[index_of(lane)];
    if (code == CUDA_SUCCESS && end != nullptr) code = cuda_.record(end, stream(lane));
    if (code == CUDA_SUCCESS) code = mark(lane);
  }
  return code;
}

Duration CopyStreams::elapsed(const Batch& batch) const {
  Duration longest(0);
  for (const CopyLane lane : kLanes) {
    if (batch.last[lane] == 0) continue;
    longest = std::max(longest, cuda_.elapsed(batch.begin[index_of(lane)], batch.end[index_of(lane)]));
  }
  return longest;
}

std::optional<double> CopyStreams::bytes_per_second(const Batch& batch) const {
  const std::size_t large = index_of(CopyLane::kLarge);
  const Duration took = batch.large_bytes == 0 ? Duration(0) : cuda_.elapsed(batch.begin[large], batch.end[large]);
  if (took <= Duration(0)) return std::nullopt;
  return static_cast<double>(batch.large_bytes) / to_seconds(took);
}

CUresult CopyStreams::wait(CUstream user, const CopyPoint& point) {
  CUresult code = CUDA_SUCCESS;
  for (const CopyLane lane : kLanes) {
    if (code == CUDA_SUCCESS && point[lane] > pending_.over()[lane]) code = wait(user, lane, point[lane]);
  }
  return code;
}

CUresult CopyStreams::wait(CUstream user, CopyLane lane, std::uint64_t number) {
  auto& all = marks(lane);
  if (all.empty() || all.back().number < number) {
    if (const CUresult code = mark(lane); code != CUDA_SUCCESS) return code;
  }
  const auto behind = std::find_if(all.begin(), all.end(), [&](const Mark& mark) { return mark.number >= number; });
  return cuda_.wait(user, behind->event);
}

// Behind all that is queued there now.
CUresult CopyStreams::mark(CopyLane lane) {
  if (free_events_.empty()) {
    const auto made = cuda_.make_event(false);
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    free_events_.push_back(*made);
  }
  const CUresult code = cuda_.record(free_events_.back(), stream(lane));
  if (code != CUDA_SUCCESS) return code;
  marks(lane).push_back({pending_.queued()[lane], free_events_.back()});
  free_events_.pop_back();
  return code;
}

CopyPoint CopyStreams::over() {
  for (const CopyLane lane : kLanes) {
    if (pending_.over()[lane] == pending_.queued()[lane]) continue;
    auto& all = marks(lane);
    if (all.empty() && mark(lane) != CUDA_SUCCESS) continue;
    while (!all.empty() && cuda_.query(all.front().event) == CUDA_SUCCESS) {
      pending_.over(lane, all.front().number);
      free_events_.push_back(all.front().event);
      all.pop_front();
    }
  }
  return pending_.over();
}

Status CopyStreams::synchronize() {
  for (const CopyLane lane : kLanes) {
    if (Status idle = cuda_.synchronize(stream(lane)); !idle) return idle;
    pending_.over(lane, pending_.queued()[lane]);
    for (const Mark& mark : marks(lane)) free_events_.push_back(mark.event);
    marks(lane).clear();
  }
  return {};
}

}  // namespace fairlead
