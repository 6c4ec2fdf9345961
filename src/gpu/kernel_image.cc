#include "gpu/kernel_image.h"

#include <algorithm>
#include <map>

#include "gpu/image_formats.h"

namespace fairlead {
namespace {

// Code of several architectures for one kernel: which of them will run is not known yet, so its strictest limits count.
class Merge {
 public:
  Status add(const KernelImage& image) {
    for (const KernelSignature& kernel : image.kernels) {
      const auto [found, is_new] = kernels_.emplace(kernel.name, kernel);
      if (is_new) continue;
      KernelSignature& merged = found->second;
      if (merged.parameters != kernel.parameters || merged.required_threads != kernel.required_threads) {
        return fail(Errc::kInvalidArgument,
                    "fat binary: kernel '{}' has other parameters or other required threads for sm_{} than before",
                    kernel.name.substr(0, 64), image.targets.front());
      }
      // 0 is the device's own limit, the largest of all.
      merged.max_threads = std::min(merged.max_threads - 1, kernel.max_threads - 1) + 1;
      merged.static_shared_bytes = std::max(merged.static_shared_bytes, kernel.static_shared_bytes);
    }
    targets_.insert(targets_.end(), image.targets.begin(), image.targets.end());
    return {};
  }

  KernelImage take() {
    KernelImage image{.format = ImageFormat::kFatbin, .kernels = {}, .targets = std::move(targets_)};
    for (auto& [name, kernel] : kernels_) image.kernels.push_back(std::move(kernel));
    std::sort(image.targets.begin(), image.targets.end());
    image.targets.erase(std::unique(image.targets.begin(), image.targets.end()), image.targets.end());
    return image;
  }

 private:
  std::map<std::string, KernelSignature> kernels_;
  std::vector<std::uint32_t> targets_;
};

Result<KernelImage> read_one(std::string_view image) {
  return is_cubin(image) ? read_cubin(image) : read_ptx(image);
}

}  // namespace

Result<KernelImage> read_kernel_image(std::string_view image) {
  if (!is_fatbin(image)) return read_one(image);
  const auto parts = unpack_fatbin(image);
  if (!parts) return fail(parts.error());
  Merge merge;
  for (const std::string& part : *parts) {
    const auto read = read_one(part);
    if (!read) return fail(Errc::kInvalidArgument, "fat binary: {}", read.error().message);
    if (Status status = merge.add(*read); !status) return fail(status.error());
  }
  return merge.take();
}

bool is_binary(std::string_view image) {
  return is_cubin(image) || is_fatbin(image);
}

Result<std::string> ptx_of_image(std::string_view image, std::uint32_t architecture) {
  std::vector<std::string> parts;
  if (is_fatbin(image)) {
    auto unpacked = unpack_fatbin(image);
    if (!unpacked) return fail(unpacked.error());
    parts = *std::move(unpacked);
  } else {
    parts.emplace_back(image);
  }
  const std::string* best = nullptr;
  std::uint32_t best_target = 0;
  std::uint32_t newer = 0;
  for (const std::string& part : parts) {
    if (is_cubin(part)) continue;
    const auto read = read_ptx(part);
    if (!read) return fail(read.error());
    const std::uint32_t target = read->targets.front();
    if (target > architecture && (newer == 0 || target < newer)) newer = target;
    if (target > architecture || (best != nullptr && target <= best_target)) continue;
    best = &part;
    best_target = target;
  }
  if (best != nullptr) return best->substr(0, best->find('\0'));  // padded in fat binaries
  if (newer != 0) {
    return fail(Errc::kInvalidArgument, "its PTX is for sm_{} and later, the device is an sm_{}", newer, architecture);
  }
  return fail(Errc::kInvalidArgument,
              "it has machine code and no PTX: build it with PTX (nvcc -gencode ...,code=compute_70)");
}

}  // namespace fairlead
