// The product of two matrices, one square tile of the result per block; what matrix products and convolutions have in
// common. A strip of each factor, kDepth deep, is brought to shared memory, every thread multiplies a 4 x 4 patch of
// the tile from it, and the strips move on. A 64 x 64 tile over a depth of 16 reads 2 x 1,024 elements for 65,536
// products; without sharing it would read 131,072.
//
// Tiles of 64 need 256 threads, tiles of 32 need 64: the smaller ones are for results that would not fill a device.
#pragma once

#include "element.h"

template <typename T, int kTile>
struct TileProduct {
  static constexpr int kDepth = 16;
  static constexpr int kPatch = 4;
  static constexpr int kSide = kTile / kPatch;
  static constexpr int kThreads = kSide * kSide;
  static constexpr int kPitch = kTile + 4;  // patches stay aligned, and a column of a strip is spread over the banks

  struct Strips {
    T left[kDepth][kPitch];
    T right[kDepth][kPitch];
  };

  // left(row, k) and right(k, column) give the factors' elements, zero outside of them; store(row, column, value) takes
  // the result. `depth_first` of a factor: neighbouring threads read neighbouring k of it, not neighbouring rows or
  // columns; whichever is contiguous in memory is faster.
  template <typename Left, typename Right, typename Store>
  static __device__ inline __attribute__((always_inline)) void run(int depth, bool left_depth_first,
                                                                   bool right_depth_first, Strips& strips,
                                                                   const Left& left, const Right& right,
                                                                   const Store& store) {
    const int first_row = (int)blockIdx.y * kTile;
    const int first_column = (int)blockIdx.x * kTile;
    const int patch_row = (int)threadIdx.x / kSide * kPatch;
    const int patch_column = (int)threadIdx.x % kSide * kPatch;
    T sum[kPatch][kPatch] = {};
    for (int first = 0; first < depth; first += kDepth) {
      for (int i = (int)threadIdx.x; i < kTile * kDepth; i += kThreads) {
        const int k_left = left_depth_first ? i % kDepth : i / kTile;
        const int row = left_depth_first ? i / kDepth : i % kTile;
        strips.left[k_left][row] = left(first_row + row, first + k_left);
        const int k_right = right_depth_first ? i % kDepth : i / kTile;
        const int column = right_depth_first ? i / kDepth : i % kTile;
        strips.right[k_right][column] = right(first + k_right, first_column + column);
      }
      __syncthreads();
#pragma unroll 4
      for (int k = 0; k < kDepth; ++k) {
        T a[kPatch];
        T b[kPatch];
        for (int i = 0; i < kPatch; ++i) a[i] = strips.left[k][patch_row + i];
        for (int i = 0; i < kPatch; ++i) b[i] = strips.right[k][patch_column + i];
        for (int i = 0; i < kPatch; ++i) {
          for (int j = 0; j < kPatch; ++j) sum[i][j] = multiply_add(a[i], b[j], sum[i][j]);
        }
      }
      __syncthreads();
    }
    for (int i = 0; i < kPatch; ++i) {
      for (int j = 0; j < kPatch; ++j) store(first_row + patch_row + i, first_column + patch_column + j, sum[i][j]);
    }
  }
};
