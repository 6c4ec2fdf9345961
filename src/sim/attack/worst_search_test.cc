#include "sim/attack/worst_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace fairlead::sim {
namespace {

double square(double x) {
  return x * x;
}

// Two peaks of different scores, and a third whose ridge is narrow.
std::vector<double> peaks(const std::vector<double>& at) {
  return {-square(at[0] - 1) - square(at[1] + 2), -square(at[0] + 1.5) - square(at[1] - 0.5),
          -10 * square(at[0] - at[1]) - square(at[0] - 0.7)};
}

double best(const std::vector<ScoredPoint>& points, std::size_t score) {
  double greatest = -1e9;
  for (const ScoredPoint& point : points) greatest = std::max(greatest, point.scores[score]);
  return greatest;
}

TEST(WorstSearch, FindsThePeakOfEachScore) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const auto points = search_worst({.coordinates = 2, .scores = 3, .evaluations = 600, .seed = seed}, peaks, nullptr);
    for (std::size_t score = 0; score < 3; ++score) EXPECT_GT(best(points, score), -0.04) << score << " seed " << seed;
  }
}

// All of 17 coordinates have to be near their edge: random points never are.
TEST(WorstSearch, ClimbsWhereRandomPointsDoNotGet) {
  const auto score = [](const std::vector<double>& at) {
    double sum = 0;
    for (const double x : at) sum += x;
    return std::vector<double>{sum};
  };
  const auto points = search_worst({.coordinates = 17, .scores = 1, .evaluations = 2000}, score, nullptr);
  const auto random = search_worst({.coordinates = 17, .scores = 1, .evaluations = 500}, score, nullptr);
  EXPECT_GT(best(points, 0), 2 * 17 * 0.9);
  EXPECT_LT(best({random.begin(), random.begin() + 125}, 0), 2 * 17 * 0.9) << "the test asks for nothing";
}

TEST(WorstSearch, StaysInTheBoxAndTriesAsOftenAsItMay) {
  const SearchOptions options{.coordinates = 3, .scores = 1, .least = -0.5, .most = 0.25, .evaluations = 333};
  const auto points = search_worst(
      options, [](const std::vector<double>& at) { return std::vector<double>{at[0]}; }, nullptr);
  EXPECT_EQ(points.size(), 333u);
  for (const ScoredPoint& point : points) {
    for (const double x : point.at) {
      EXPECT_GE(x, -0.5);
      EXPECT_LE(x, 0.25);
    }
  }
  EXPECT_NEAR(best(points, 0), 0.25, 1e-3);
}

TEST(WorstSearch, TheNumberOfThreadsChangesNothingAndTheSeedDoes) {
  const auto points = [](unsigned threads, std::uint64_t seed) {
    std::vector<std::vector<double>> at;
    for (const ScoredPoint& point : search_worst(
             {.coordinates = 2, .scores = 3, .evaluations = 200, .seed = seed, .threads = threads}, peaks, nullptr)) {
      at.push_back(point.at);
    }
    return at;
  };
  EXPECT_EQ(points(1, 1), points(5, 1));
  EXPECT_NE(points(1, 1), points(1, 2));
}

}  // namespace
}  // namespace fairlead::sim
