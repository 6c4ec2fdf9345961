#include "runtime/model_server/tensor_memory.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"

namespace fairlead::model_server {
namespace {

constexpr std::uint64_t kPieceBytes = 16 << 20;
static_assert(kBlockBytes % kPieceBytes == 0);

Bytes bytes_of(std::uint64_t count) {
  return Bytes(static_cast<std::int64_t>(count));
}

}  // namespace

Result<std::unique_ptr<TensorMemory>> TensorMemory::create(CudaContext& cuda, ShareableMemory shareable) {
  std::unique_ptr<TensorMemory> memory(new TensorMemory(cuda, std::move(shareable)));
  if (cuda.mapping_granularity() > bytes_of(kGranuleBytes)) {
    return fail(Errc::kUnavailable, "the device maps memory in units of {} bytes, models are in units of {}",
                cuda.mapping_granularity().count(), kGranuleBytes);
  }
  const auto window = cuda.reserve_addresses(bytes_of(kBlockBytes), bytes_of(kGranuleBytes));
  if (!window) return fail(window.error());
  memory->window_ = *window;
  const auto stream = cuda.make_stream();
  if (!stream) return fail(stream.error());
  memory->stream_ = *stream;
  const auto staging = cuda.allocate_pinned(bytes_of(kPieceBytes));
  if (!staging) return fail(staging.error());
  memory->staging_ = static_cast<char*>(*staging);
  return memory;
}

TensorMemory::~TensorMemory() {
  for (const auto& [id, tensor] : tensors_) {
    for (const Block& block : tensor.blocks) cuda_.release_memory(block.memory);
  }
  if (staging_ != nullptr) cuda_.free_pinned(staging_);
}

template <typename Use>
Status TensorMemory::with_mapped(const Block& block, Use use) {
  if (is_window_stuck_) {
    // Those stay as they are: what is mapped there cannot be taken away.
    const auto other = cuda_.reserve_addresses(bytes_of(kBlockBytes), bytes_of(kGranuleBytes));
    if (!other) return fail(other.error());
    window_ = *other;
    is_window_stuck_ = false;
  }
  if (Status mapped = cuda_.map(window_, bytes_of(block.bytes), block.memory); !mapped) return mapped;
  Status used = use(window_);
  Status unmapped = cuda_.unmap(window_, bytes_of(block.bytes));
  is_window_stuck_ = !unmapped;
  if (!unmapped) spdlog::error("model server: a block stays mapped: {}", unmapped.error().message);
  return used;
}

Result<TensorMemory::Block> TensorMemory::make_block(std::uint64_t bytes) {
  const auto memory = shareable_.create(bytes_of(bytes));
  if (!memory) return fail(memory.error());
  const Block block{*memory, bytes};
  const Status zeroed = with_mapped(block, [&](CUdeviceptr address) -> Status {
    if (Status filled = cuda_.check(cuda_.fill_zero(address, bytes, stream_), "zero a model's memory"); !filled)
      return filled;
    return cuda_.synchronize(stream_);
  });
  if (zeroed) return block;
  cuda_.release_memory(block.memory);
  return fail(zeroed.error());
}

Result<std::vector<UniqueFd>> TensorMemory::add(std::uint64_t id, std::uint64_t bytes) {
  FL_CHECK(!tensors_.contains(id), "tensor {} made twice", id);
  Tensor tensor{.bytes = bytes, .blocks = {}};
  std::vector<UniqueFd> descriptors;
  const auto undo = [&](Error error) {
    for (const Block& block : tensor.blocks) cuda_.release_memory(block.memory);
    return fail(std::move(error));
  };
  const std::uint64_t end = rounded(bytes);
  for (std::uint64_t at = 0; at < end; at += kBlockBytes) {
    const auto block = make_block(std::min(kBlockBytes, end - at));
    if (!block) return undo(block.error());
    tensor.blocks.push_back(*block);
    auto descriptor = shareable_.share(block->memory);
    if (!descriptor) return undo(descriptor.error());
    descriptors.push_back(*std::move(descriptor));
  }
  tensors_[id] = std::move(tensor);
  return descriptors;
}

void TensorMemory::drop(std::uint64_t id) {
  const auto found = tensors_.find(id);
  if (found == tensors_.end()) return;
  for (const Block& block : found->second.blocks) cuda_.release_memory(block.memory);
  hashing_.erase(id);
  tensors_.erase(found);
}

Result<std::optional<TensorMemory::Digest>> TensorMemory::hash_on(std::uint64_t id) {
  const auto found = tensors_.find(id);
  if (found == tensors_.end()) return fail(Errc::kNotFound, "tensor {} is not there", id);
  const auto [begun, is_new] = hashing_.try_emplace(id);
  Hashing& hashing = begun->second;
  if (is_new) crypto_generichash_init(&hashing.state, nullptr, 0, crypto_generichash_BYTES);
  const Tensor& tensor = found->second;
  const std::uint64_t begin = hashing.done;
  const std::uint64_t size = std::min(kPieceBytes, tensor.bytes - begin);
  const Block& block = tensor.blocks[begin / kBlockBytes];
  const Status read = with_mapped(block, [&](CUdeviceptr address) -> Status {
    const CUresult code = cuda_.copy_out(staging_, address + begin % kBlockBytes, size, stream_);
    if (Status copied = cuda_.check(code, "read a model back"); !copied) return copied;
    return cuda_.synchronize(stream_);
  });
  if (!read) {
    hashing_.erase(begun);
    return fail(read.error());
  }
  crypto_generichash_update(&hashing.state, reinterpret_cast<const unsigned char*>(staging_), size);
  hashing.done += size;
  if (hashing.done < tensor.bytes) return std::optional<Digest>();
  Digest digest;
  crypto_generichash_final(&hashing.state, digest.data(), digest.size());
  hashing_.erase(begun);
  return std::optional<Digest>(digest);
}

}  // namespace fairlead::model_server
