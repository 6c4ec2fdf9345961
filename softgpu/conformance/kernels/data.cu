// Sorting, searching, graphs, dynamic programming, clustering.
#include "softgpu/conformance/kernels/common.h"

// Bitonic sort of 2 * blockDim.x keys in shared memory.
KERNEL bitonic_sort(int* keys) {
  extern __shared__ int shared_keys[];
  const unsigned n = 2 * blockDim.x, t = threadIdx.x;
  keys += blockIdx.x * n;
  shared_keys[t] = keys[t];
  shared_keys[t + blockDim.x] = keys[t + blockDim.x];
  for (unsigned size = 2; size <= n; size *= 2) {
    for (unsigned distance = size / 2; distance > 0; distance /= 2) {
      __syncthreads();
      const unsigned low = 2 * t - (t & (distance - 1)), high = low + distance;
      const bool ascending = (low & size) == 0 || size == n;
      const int a = shared_keys[low], b = shared_keys[high];
      if ((a > b) == ascending) {
        shared_keys[low] = b;
        shared_keys[high] = a;
      }
    }
  }
  __syncthreads();
  keys[t] = shared_keys[t];
  keys[t + blockDim.x] = shared_keys[t + blockDim.x];
}

// One pass of a stable radix sort by four bits. Counts per block and digit, then (after a scan of the counts, digit by
// digit) every key finds its place by ranking equal digits within the warp with match.
KERNEL radix_count(int shift, const unsigned* keys, unsigned* counts) {
  __shared__ unsigned local[16];
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&local[keys[global_index()] >> shift & 15], 1u);
  __syncthreads();
  if (threadIdx.x < 16) counts[threadIdx.x * gridDim.x + blockIdx.x] = local[threadIdx.x];
}
KERNEL exclusive_scan_small(int n, unsigned* values) {
  unsigned sum = 0;
  for (int base = 0; base < n; base += warpSize) {
    const int i = base + (int)threadIdx.x;
    const unsigned value = i < n ? values[i] : 0;
    const unsigned inclusive = warp_inclusive_sum(value);
    if (i < n) values[i] = sum + inclusive - value;
    sum += __shfl_sync(kAllLanes, inclusive, 31);
  }
}
KERNEL radix_scatter(int shift, const unsigned* keys, const unsigned* payload, const unsigned* starts,
                     unsigned* out_keys, unsigned* out_payload) {
  __shared__ unsigned warp_counts[8][16];
  const unsigned warp = threadIdx.x / warpSize, lane = threadIdx.x % warpSize;
  if (threadIdx.x < 128) warp_counts[threadIdx.x / 16][threadIdx.x % 16] = 0;
  __syncthreads();
  const unsigned key = keys[global_index()], digit = key >> shift & 15;
  const unsigned peers = __match_any_sync(kAllLanes, digit);
  const unsigned rank = (unsigned)__builtin_popcount(peers & ((1u << lane) - 1));
  if (rank == 0) warp_counts[warp][digit] = (unsigned)__builtin_popcount(peers);
  __syncthreads();
  unsigned place = starts[digit * gridDim.x + blockIdx.x] + rank;
  for (unsigned before = 0; before < warp; ++before) place += warp_counts[before][digit];
  out_keys[place] = key;
  out_payload[place] = payload[global_index()];
}

// Merges two sorted arrays: each thread finds its output's split by binary search along its diagonal.
KERNEL merge_path(int count_a, int count_b, const int* a, const int* b, int* out) {
  const int diagonal = global_index();
  if (diagonal >= count_a + count_b) return;
  int low = max(0, diagonal - count_b), high = min(diagonal, count_a);
  while (low < high) {
    const int middle = (low + high) / 2;
    if (a[middle] <= b[diagonal - middle - 1])
      low = middle + 1;
    else
      high = middle;
  }
  const int from_b = diagonal - low;
  out[diagonal] = low < count_a && (from_b >= count_b || a[low] <= b[from_b]) ? a[low] : b[from_b];
}

// One level of a breadth-first search with queues; `next_count` grows atomically.
KERNEL bfs_level(int count, int level, const int* queue, const int* starts, const int* edges, int* levels,
                 int* next_queue, int* next_count) {
  const int i = global_index();
  if (i >= count) return;
  const int node = queue[i];
  for (int at = starts[node]; at < starts[node + 1]; ++at) {
    const int other = edges[at];
    if (atomicCAS(&levels[other], -1, level) == -1) next_queue[atomicAdd(next_count, 1)] = other;
  }
}

// Bellman and Ford's shortest paths: relaxes every edge; `changed` says whether another round is needed.
KERNEL relax_edges(int count, const int* from, const int* to, const int* lengths, int* distances, int* changed) {
  const int i = global_index();
  if (i >= count || distances[from[i]] == 0x7fffffff) return;
  const int distance = distances[from[i]] + lengths[i];
  if (atomicMin(&distances[to[i]], distance) > distance) atomicExch(changed, 1);
}

// Pathfinder: cheapest way down a grid, `steps` rows per launch, blocks overlap by a halo.
KERNEL pathfinder(int width, int steps, const int* costs, const int* from, int* to) {
  __shared__ int row[2][256];
  const int inner = 256 - 2 * steps, x = (int)blockIdx.x * inner + (int)threadIdx.x - steps;
  const bool inside = x >= 0 && x < width;
  int now = 0;
  row[0][threadIdx.x] = inside ? from[x] : 0x3fffffff;
  for (int step = 0; step < steps; ++step) {
    __syncthreads();
    int best = row[now][threadIdx.x];
    if (threadIdx.x > 0) best = min(best, row[now][threadIdx.x - 1]);
    if (threadIdx.x < 255) best = min(best, row[now][threadIdx.x + 1]);
    now ^= 1;
    row[now][threadIdx.x] = inside ? best + costs[step * width + x] : 0x3fffffff;
  }
  if (inside && (int)threadIdx.x >= steps && (int)threadIdx.x < 256 - steps) to[x] = row[now][threadIdx.x];
}

// Needleman and Wunsch's alignment: tiles of 32 x 32 on one anti-diagonal, a warp each.
KERNEL needle(int* score, const int* a, const int* b, const int* similarity, int residues, int n, int gap,
              int first_row, int first_column) {
  __shared__ int tile[33][33];
  const int x = threadIdx.x, pitch = n + 1;
  const int row = (first_row + (int)blockIdx.x) * 32, column = (first_column - (int)blockIdx.x) * 32;
  int* corner = score + row * pitch + column;
  tile[0][x + 1] = corner[x + 1];
  tile[x + 1][0] = corner[(x + 1) * pitch];
  if (x == 0) tile[0][0] = corner[0];
  const int own = b[column + x];
  __syncwarp();
  for (int step = 0; step < 63; ++step) {
    const int y = step - x;
    if (y >= 0 && y < 32) {
      const int diagonal = tile[y][x] + similarity[a[row + y] * residues + own];
      tile[y + 1][x + 1] = max(diagonal, max(tile[y][x + 1], tile[y + 1][x]) - gap);
    }
    __syncwarp();
  }
  for (int y = 0; y < 32; ++y) corner[(y + 1) * pitch + x + 1] = tile[y + 1][x + 1];
}

// Smith and Waterman's local alignment of one long against many short sequences: a thread each, one row in local memory.
KERNEL smith_waterman(int length, int short_length, const unsigned char* text, const unsigned char* queries,
                      int* best) {
  const int i = global_index();
  int row[24] = {};
  int greatest = 0;
  for (int t = 0; t < length; ++t) {
    int diagonal = 0, left = 0;
    for (int q = 0; q < short_length; ++q) {
      const int match = text[t] == queries[i * short_length + q] ? 3 : -2;
      const int value = max(max(diagonal + match, 0), max(row[q], left) - 2);
      diagonal = row[q];
      row[q] = left = value;
      greatest = max(greatest, value);
    }
  }
  best[i] = greatest;
}

// k-means: nearest centre of each point, and the sums of the new centres in fixed point, which no order can change.
KERNEL kmeans_assign(int points, int centres, const float* x, const float* y, const float* cx, const float* cy,
                     int* nearest, long long* sums, int* counts) {
  const int i = global_index();
  if (i >= points) return;
  int best = 0;
  float least = __builtin_inff();
  for (int c = 0; c < centres; ++c) {
    const float dx = x[i] - cx[c], dy = y[i] - cy[c], distance = fmaf(dx, dx, dy * dy);
    if (distance < least) {
      least = distance;
      best = c;
    }
  }
  nearest[i] = best;
  atomicAdd(&sums[2 * best], (long long)(x[i] * 1048576.0f));
  atomicAdd(&sums[2 * best + 1], (long long)(y[i] * 1048576.0f));
  atomicAdd(&counts[best], 1);
}

// Streamcluster: what opening point `candidate` as a centre would save, per point.
KERNEL streamcluster_gain(int points, int dimensions, int candidate, const float* coordinates, const float* cost,
                          float* gain) {
  extern __shared__ float centre[];
  for (int d = threadIdx.x; d < dimensions; d += (int)blockDim.x) centre[d] = coordinates[d * points + candidate];
  __syncthreads();
  const int i = global_index();
  if (i >= points) return;
  float distance = 0;
  for (int d = 0; d < dimensions; ++d) {
    const float delta = coordinates[d * points + i] - centre[d];
    distance = fmaf(delta, delta, distance);
  }
  gain[i] = fmaxf(cost[i] - distance, 0.0f);
}

// Nearest neighbours of one place: distances, then the block's least as (distance bits, index).
KERNEL nearest_neighbour(int n, float latitude, float longitude, const float* places, unsigned long long* best) {
  const int i = global_index();
  unsigned long long key = ~0ull;
  if (i < n) {
    const float dx = places[2 * i] - latitude, dy = places[2 * i + 1] - longitude;
    const float distance = sqrtf(fmaf(dx, dx, dy * dy));
    key = (unsigned long long)__builtin_bit_cast(unsigned, distance) << 32 | (unsigned)i;
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    const unsigned long long other = __shfl_xor_sync(kAllLanes, key, offset);
    key = other < key ? other : key;
  }
  if (threadIdx.x % warpSize == 0) {
    unsigned long long seen = *best;  // a 64-bit minimum by compare-and-swap
    while (key < seen) {
      const unsigned long long before = atomicCAS(best, seen, key);
      if (before == seen) break;
      seen = before;
    }
  }
}

// Counts the matches of a pattern with Knuth, Morris and Pratt's table; each thread scans its piece and the overlap.
KERNEL string_search(int length, int piece, int pattern_length, const char* text, const char* pattern,
                     const int* failure, int* matches) {
  const int begin = global_index() * piece;
  const int end = min(begin + piece + pattern_length - 1, length);
  int state = 0, found = 0;
  for (int i = begin; i < end; ++i) {
    while (state > 0 && pattern[state] != text[i]) state = failure[state - 1];
    if (pattern[state] == text[i]) ++state;
    if (state == pattern_length) {
      ++found;
      state = failure[state - 1];
    }
  }
  if (found > 0) atomicAdd(matches, found);
}

// Open addressing: inserts keys with linear probing, then looks others up.
KERNEL hash_insert(int n, unsigned mask, const unsigned* keys, unsigned* table) {
  const int i = global_index();
  if (i >= n) return;
  for (unsigned slot = keys[i] * 0x9e3779b1u >> 7 & mask;; slot = (slot + 1) & mask) {
    const unsigned before = atomicCAS(&table[slot], 0u, keys[i]);
    if (before == 0 || before == keys[i]) return;
  }
}
KERNEL hash_find(int n, unsigned mask, const unsigned* keys, const unsigned* table, int* found) {
  const int i = global_index();
  if (i >= n) return;
  unsigned slot = keys[i] * 0x9e3779b1u >> 7 & mask;
  while (table[slot] != 0 && table[slot] != keys[i]) slot = (slot + 1) & mask;
  found[i] = table[slot] == keys[i];
}
