// Sorting, searching, graphs, dynamic programming, clustering.
#include <algorithm>
#include <climits>
#include <numeric>
#include <queue>

#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/inputs.h"
#include "softgpu/conformance/test.h"

namespace softgpu::conformance {
namespace {

unsigned blocks(int count, int size) {
  return static_cast<unsigned>((count + size - 1) / size);
}

void bitonic_sort(Test& test) {
  const int arrays = 5, size = 512;
  auto keys = integers(arrays * size, 1, -100000, 100000);
  const auto device = test.upload(keys);
  test.launch("bitonic_sort", {arrays, size / 2, size * sizeof(int)}, device);
  for (int array = 0; array < arrays; ++array) {
    std::sort(keys.begin() + array * size, keys.begin() + (array + 1) * size);
  }
  test.equal("sorted", test.download(device), keys);
}

void radix_sort(Test& test) {
  const int size = 256, groups = 16, n = size * groups;
  const auto keys = words(n, 2, 5000);
  std::vector<unsigned> order(n);
  std::iota(order.begin(), order.end(), 0u);
  auto from = test.upload(keys), from_payload = test.upload(order);
  auto to = test.zeros<unsigned>(n), to_payload = test.zeros<unsigned>(n);
  const auto counts = test.zeros<unsigned>(16 * groups);
  for (int shift = 0; shift < 16; shift += 4) {
    test.launch("radix_count", {groups, size}, shift, from, counts);
    test.launch("exclusive_scan_small", {1, 32}, 16 * groups, counts);
    test.launch("radix_scatter", {groups, size}, shift, from, from_payload, counts, to, to_payload);
    std::swap(from, to);
    std::swap(from_payload, to_payload);
  }
  std::stable_sort(order.begin(), order.end(), [&](unsigned a, unsigned b) { return keys[a] < keys[b]; });
  test.equal("payload", test.download(from_payload), order);
}

void merge_path(Test& test) {
  auto a = integers(700, 3, 0, 999), b = integers(450, 4, 0, 999);
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  const auto out = test.zeros<int>(a.size() + b.size());
  test.launch("merge_path", {5, 256}, 700, 450, test.upload(a), test.upload(b), out);
  std::vector<int> want;
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(want));
  test.equal("merged", test.download(out), want);
}

struct Graph {
  std::vector<int> starts{0}, edges;
};

Graph random_graph(int nodes) {
  Graph graph;
  for (int node = 0; node < nodes; ++node) {
    for (unsigned i = 0; i < 2 + random_word(5, node) % 3; ++i) {
      graph.edges.push_back(static_cast<int>(random_word(6 + node, i) % nodes));
    }
    graph.starts.push_back(static_cast<int>(graph.edges.size()));
  }
  return graph;
}

std::vector<int> levels_of(const Graph& graph, int nodes) {
  std::vector<int> levels(nodes, -1);
  std::queue<int> open({0});
  levels[0] = 0;
  for (; !open.empty(); open.pop()) {
    for (int at = graph.starts[open.front()]; at < graph.starts[open.front() + 1]; ++at) {
      if (levels[graph.edges[at]] != -1) continue;
      levels[graph.edges[at]] = levels[open.front()] + 1;
      open.push(graph.edges[at]);
    }
  }
  return levels;
}

void bfs(Test& test) {
  const int nodes = 1500;
  const Graph graph = random_graph(nodes);
  std::vector<int> start(nodes, -1);
  start[0] = 0;
  const auto levels = test.upload(start), starts = test.upload(graph.starts), edges = test.upload(graph.edges);
  auto queue = test.zeros<int>(nodes), next = test.zeros<int>(nodes);
  const auto count = test.zeros<int>(1);
  int open = 1;
  for (int level = 1; open > 0 && level < nodes && test.ok(); ++level) {
    test.check(driver().cuMemsetD32(count.address, 0, 1), "cuMemsetD32");
    test.launch("bfs_level", {blocks(open, 128), 128}, open, level, queue, starts, edges, levels, next, count);
    std::swap(queue, next);
    open = test.download(count)[0];
  }
  test.equal("levels", test.download(levels), levels_of(graph, nodes));
}

void shortest_paths(Test& test) {
  const int nodes = 400, edges = 1600;
  const auto from = integers(edges, 7, 0, nodes - 1), to = integers(edges, 8, 0, nodes - 1);
  const auto lengths = integers(edges, 9, 1, 100);
  std::vector<int> want(nodes, INT_MAX);
  want[0] = 0;
  const auto distances = test.upload(want), changed = test.zeros<int>(1);
  const auto device_from = test.upload(from), device_to = test.upload(to), device_lengths = test.upload(lengths);
  for (int round = 0; round < nodes && test.ok(); ++round) {
    test.check(driver().cuMemsetD32(changed.address, 0, 1), "cuMemsetD32");
    test.launch("relax_edges", {blocks(edges, 256), 256}, edges, device_from, device_to, device_lengths, distances,
                changed);
    if (test.download(changed)[0] == 0) break;
  }
  for (bool again = true; again;) {
    again = false;
    for (int i = 0; i < edges; ++i) {
      if (want[from[i]] == INT_MAX || want[from[i]] + lengths[i] >= want[to[i]]) continue;
      want[to[i]] = want[from[i]] + lengths[i];
      again = true;
    }
  }
  test.equal("distances", test.download(distances), want);
}

void pathfinder(Test& test) {
  const int width = 900, rows = 24, steps = 8;
  const auto costs = integers(width * rows, 10, 0, 9);
  std::vector<int> row(width);
  const auto device_costs = test.upload(costs);
  auto from = test.upload(row), to = test.zeros<int>(width);
  for (int first = 0; first < rows; first += steps) {
    const Buffer<int> part{device_costs.address + sizeof(int) * first * width, static_cast<std::size_t>(steps * width)};
    test.launch("pathfinder", {blocks(width, 256 - 2 * steps), 256}, width, steps, part, from, to);
    std::swap(from, to);
  }
  for (int y = 0; y < rows; ++y) {
    const std::vector<int> above = row;
    for (int x = 0; x < width; ++x) {
      const int left = above[std::max(x - 1, 0)], right = above[std::min(x + 1, width - 1)];
      row[x] = std::min({above[x], left, right}) + costs[y * width + x];
    }
  }
  test.equal("costs", test.download(from), row);
}

void needle(Test& test) {
  const int n = 128, residues = 24, gap = 10, tiles = n / 32;
  const auto a = integers(n, 11, 0, residues - 1), b = integers(n, 12, 0, residues - 1);
  const auto similarity = integers(residues * residues, 13, -4, 11);
  std::vector<int> score((n + 1) * (n + 1));
  for (int i = 0; i <= n; ++i) score[i] = score[i * (n + 1)] = -i * gap;
  const auto device = test.upload(score), device_a = test.upload(a), device_b = test.upload(b);
  const auto device_similarity = test.upload(similarity);
  for (int diagonal = 0; diagonal < 2 * tiles - 1; ++diagonal) {
    const int first_row = std::max(0, diagonal - tiles + 1), first_column = std::min(diagonal, tiles - 1);
    const auto count = static_cast<unsigned>(std::min(diagonal, tiles - 1) - first_row + 1);
    test.launch("needle", {count, 32}, device, device_a, device_b, device_similarity, residues, n, gap, first_row,
                first_column);
  }
  for (int i = 1; i <= n; ++i) {
    for (int j = 1; j <= n; ++j) {
      const int diagonal = score[(i - 1) * (n + 1) + j - 1] + similarity[a[i - 1] * residues + b[j - 1]];
      score[i * (n + 1) + j] =
          std::max({diagonal, score[(i - 1) * (n + 1) + j] - gap, score[i * (n + 1) + j - 1] - gap});
    }
  }
  test.equal("scores", test.download(device), score);
}

void smith_waterman(Test& test) {
  const int length = 150, short_length = 20, queries = 96;
  const auto letters = words(length + queries * short_length, 14, 4);
  const std::vector<unsigned char> text(letters.begin(), letters.begin() + length);
  const std::vector<unsigned char> shorts(letters.begin() + length, letters.end());
  const auto best = test.zeros<int>(queries);
  test.launch("smith_waterman", {3, 32}, length, short_length, test.upload(text), test.upload(shorts), best);
  std::vector<int> want(queries);
  for (int i = 0; i < queries; ++i) {
    std::vector<std::vector<int>> table(length + 1, std::vector<int>(short_length + 1));
    for (int t = 1; t <= length; ++t) {
      for (int q = 1; q <= short_length; ++q) {
        const int match = text[t - 1] == shorts[i * short_length + q - 1] ? 3 : -2;
        table[t][q] = std::max({0, table[t - 1][q - 1] + match, table[t - 1][q] - 2, table[t][q - 1] - 2});
        want[i] = std::max(want[i], table[t][q]);
      }
    }
  }
  test.equal("best", test.download(best), want);
}

void kmeans(Test& test) {
  const int points = 1000, centres = 5;
  const auto x = uniform(points, 15), y = uniform(points, 16), cx = uniform(centres, 17), cy = uniform(centres, 18);
  const auto nearest = test.zeros<int>(points), counts = test.zeros<int>(centres);
  const auto sums = test.zeros<long long>(2 * centres);
  test.launch("kmeans_assign", {8, 128}, points, centres, test.upload(x), test.upload(y), test.upload(cx),
              test.upload(cy), nearest, sums, counts);
  std::vector<int> want_nearest(points), want_counts(centres);
  std::vector<long long> want_sums(2 * centres);
  for (int i = 0; i < points; ++i) {
    float least = INFINITY;
    for (int c = 0; c < centres; ++c) {
      const float dx = x[i] - cx[c], dy = y[i] - cy[c], distance = std::fma(dx, dx, dy * dy);
      if (distance < least) {
        least = distance;
        want_nearest[i] = c;
      }
    }
    want_sums[2 * want_nearest[i]] += static_cast<long long>(x[i] * 1048576.0f);
    want_sums[2 * want_nearest[i] + 1] += static_cast<long long>(y[i] * 1048576.0f);
    ++want_counts[want_nearest[i]];
  }
  test.equal("nearest", test.download(nearest), want_nearest);
  test.equal("sums", test.download(sums), want_sums);
  test.equal("counts", test.download(counts), want_counts);
}

void streamcluster(Test& test) {
  const int points = 600, dimensions = 12, candidate = 17;
  const auto coordinates = uniform(points * dimensions, 19), cost = uniform(points, 20, 0, 8);
  const auto gain = test.zeros<float>(points);
  test.launch("streamcluster_gain", {5, 128, dimensions * sizeof(float)}, points, dimensions, candidate,
              test.upload(coordinates), test.upload(cost), gain);
  std::vector<float> want(points);
  for (int i = 0; i < points; ++i) {
    float distance = 0;
    for (int d = 0; d < dimensions; ++d) {
      const float delta = coordinates[d * points + i] - coordinates[d * points + candidate];
      distance = std::fma(delta, delta, distance);
    }
    want[i] = std::max(cost[i] - distance, 0.0f);
  }
  test.equal("gain", test.download(gain), want);
}

void nearest_neighbour(Test& test) {
  const int n = 3000;
  const float latitude = 0.25f, longitude = -0.5f;
  const auto places = uniform(2 * n, 21);
  const auto best = test.upload(std::vector<unsigned long long>{~0ull});
  test.launch("nearest_neighbour", {blocks(n, 256), 256}, n, latitude, longitude, test.upload(places), best);
  unsigned long long want = ~0ull;
  for (int i = 0; i < n; ++i) {
    const float dx = places[2 * i] - latitude, dy = places[2 * i + 1] - longitude;
    const float distance = std::sqrt(std::fma(dx, dx, dy * dy));
    std::uint32_t bits = 0;
    std::memcpy(&bits, &distance, sizeof bits);
    want = std::min(want, static_cast<unsigned long long>(bits) << 32 | static_cast<unsigned>(i));
  }
  test.equal("nearest", test.download(best), {want});
}

void string_search(Test& test) {
  const std::string pattern = "abaab";
  const int length = 20000, piece = 40, size = static_cast<int>(pattern.size());
  std::vector<char> text(length);
  for (int i = 0; i < length; ++i) text[i] = random_word(22, i) % 2 == 0 ? 'a' : 'b';
  std::vector<int> failure(size);
  for (int i = 1, state = 0; i < size; ++i) {
    while (state > 0 && pattern[state] != pattern[i]) state = failure[state - 1];
    failure[i] = state += pattern[state] == pattern[i];
  }
  const auto matches = test.zeros<int>(1);
  test.launch("string_search", {blocks(length, piece * 100), 100}, length, piece, size, test.upload(text),
              test.upload(std::vector<char>(pattern.begin(), pattern.end())), test.upload(failure), matches);
  int want = 0;
  for (int i = 0; i + size <= length; ++i) want += std::equal(pattern.begin(), pattern.end(), text.begin() + i);
  test.equal("matches", test.download(matches), {want});
}

void hash_table(Test& test) {
  const int n = 3000;
  const unsigned mask = 8191;
  auto keys = words(n, 23, 10000), others = words(n, 24, 10000);
  for (unsigned& key : keys) ++key;  // 0 marks an empty slot
  for (unsigned& key : others) ++key;
  const auto table = test.zeros<unsigned>(mask + 1);
  const auto found = test.zeros<int>(n);
  test.launch("hash_insert", {24, 128}, n, mask, test.upload(keys), table);
  test.launch("hash_find", {24, 128}, n, mask, test.upload(others), table, found);
  std::vector<char> known(10001);
  for (const unsigned key : keys) known[key] = 1;
  std::vector<int> want(n);
  for (int i = 0; i < n; ++i) want[i] = known[others[i]];
  test.equal("found", test.download(found), want);
}

constexpr Case kCases[] = {
    {"bitonic_sort", "data", bitonic_sort},
    {"radix_sort", "data", radix_sort},
    {"merge_path", "data", merge_path},
    {"bfs", "data", bfs},
    {"shortest_paths", "data", shortest_paths},
    {"pathfinder", "data", pathfinder},
    {"needle", "data", needle},
    {"smith_waterman", "data", smith_waterman},
    {"kmeans", "data", kmeans},
    {"streamcluster", "data", streamcluster},
    {"nearest_neighbour", "data", nearest_neighbour},
    {"string_search", "data", string_search},
    {"hash_table", "data", hash_table},
};

}  // namespace

const Field kData{"data", kCases};

}  // namespace softgpu::conformance
