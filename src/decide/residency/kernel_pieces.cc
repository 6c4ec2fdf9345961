#include "decide/residency/kernel_pieces.h"

#include <algorithm>
#include <utility>

namespace fairlead {
namespace {

constexpr std::uint64_t kMostBlocks = 2147483647;  // of a row of blocks, as devices have it

}  // namespace

KernelPieces::KernelPieces(std::vector<Kernel> kernels, std::uint32_t iterations)
    : kernels_(std::move(kernels)),
      iterations_(kernels_.empty() ? 0 : iterations),
      ns_per_block_(kernels_.size(), 0),
      iteration_(iterations_) {}

// Whole waves, at least one.
std::uint64_t KernelPieces::blocks_for(std::size_t kernel, double ns) const {
  const Kernel& of = kernels_[kernel];
  const std::uint64_t left = of.blocks - block_;
  if (!of.can_be_cut) return left;
  const std::uint64_t wave = std::max<std::uint64_t>(1, of.wave);
  const double fits = is_known(kernel) ? ns / ns_per_block_[kernel] : 0;
  const auto most = static_cast<std::uint64_t>(std::clamp(fits, 0.0, static_cast<double>(kMostBlocks)));
  const std::uint64_t blocks = std::max(wave, most / wave * wave);
  // A rest of less than a wave would take as long as one.
  return std::min(left, kMostBlocks) <= blocks || left - blocks < wave / 2 ? std::min(left, kMostBlocks) : blocks;
}

KernelPieces::Piece KernelPieces::next(Duration left) {
  const auto budget = static_cast<double>(std::clamp(left, kLeast, kMost).count());
  Piece piece;
  double ns = 0;
  while (!is_over()) {
    const bool is_first = piece.ranges.empty();
    if (!is_first && !is_known(kernel_)) break;
    const Range range{kernel_, block_, blocks_for(kernel_, budget - ns)};
    if (!is_first && ns + ns_of(range) > budget) break;
    const bool was_known = is_known(kernel_);
    piece.ranges.push_back(range);
    ns += ns_of(range);
    advance(range.count);
    if (!was_known) break;
  }
  piece.estimate = Duration(static_cast<std::int64_t>(ns));
  return piece;
}

void KernelPieces::advance(std::uint64_t blocks) {
  block_ += blocks;
  if (block_ < kernels_[kernel_].blocks) return;
  block_ = 0;
  if (++kernel_ < kernels_.size()) return;
  kernel_ = 0;
  ++iteration_;
}

void KernelPieces::measured(const Piece& piece, Duration took) {
  const auto ns = static_cast<double>(std::max<std::int64_t>(took.count(), 1));
  const auto estimate = static_cast<double>(piece.estimate.count());
  for (const Range& range : piece.ranges) {
    if (estimate <= 0) {
      learn(range.kernel, ns / static_cast<double>(range.count));
    } else {
      learn(range.kernel, ns_per_block_[range.kernel] * ns / estimate);
    }
  }
}

void KernelPieces::learn(std::size_t kernel, double ns_per_block) {
  double& known = ns_per_block_[kernel];
  known = ns_per_block > known ? ns_per_block : known - (known - ns_per_block) / 4;
}

void KernelPieces::measured_whole(Duration took) {
  const auto known = estimate();
  if (!known || took <= *known || *known <= Duration(0)) return;
  const double longer = static_cast<double>(took.count()) / static_cast<double>(known->count());
  for (double& ns : ns_per_block_) ns *= longer;
}

std::optional<Duration> KernelPieces::estimate() const {
  double ns = 0;
  for (std::size_t k = 0; k < kernels_.size(); ++k) {
    if (!is_known(k)) return std::nullopt;
    ns += ns_per_block_[k] * static_cast<double>(kernels_[k].blocks);
  }
  return Duration(static_cast<std::int64_t>(ns * iterations_));
}

}  // namespace fairlead
