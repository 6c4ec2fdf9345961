#include "decide/pacing/concurrent_sets.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "decide/pacing/paced_share.h"

namespace fairlead {
namespace {

constexpr double kEpsilon = 1e-9;  // prices and parts are of the order of 1

constexpr int kRooms = 104;  // 0 to 100 % of the SMs, and what makes a loop of a fixed number of steps

// The set whose prices add up to most: the knapsack by room, one line for each bundle.
class BestSet {
 public:
  explicit BestSet(const std::vector<QuotaRow>& rows) : rows_(rows) {
    for (std::size_t row = 0; row < rows.size(); ++row) {
      int left = std::min(rows[row].instances, kWholeDevice / rows[row].width_percent);
      for (int size = 1; left > 0; size *= 2) {  // 1, 2, 4 ... and the rest: any number of instances is a sum of these
        const int taken = std::min(size, left);
        bundles_.push_back({row, taken, taken * rows[row].width_percent});
        left -= taken;
      }
    }
    lines_.resize(bundles_.size() + 1);
    for (Line& line : lines_) line.fill(kNothing);
    std::fill(lines_.front().begin() + kRooms, lines_.front().end(), 0.0);
  }

  // Returns the sum of prices, and in `set` how many of each row.
  double find(const std::vector<double>& prices, std::vector<int>& set) {
    for (std::size_t b = 0; b < bundles_.size(); ++b) {
      const double value = prices[bundles_[b].row] * bundles_[b].instances;
      const double* without = lines_[b].data() + kRooms;
      const double* with = without - bundles_[b].width;
      double* best = lines_[b + 1].data() + kRooms;
      // No branch and a fixed number of steps, so that the compiler takes several rooms at a time.
      for (int room = 0; room < kRooms; ++room) best[room] = std::max(without[room], with[room] + value);
    }
    set.assign(rows_.size(), 0);
    int room = kWholeDevice;
    for (std::size_t b = bundles_.size(); b-- > 0;) {
      const auto at = static_cast<std::size_t>(kRooms + room);
      if (lines_[b + 1][at] <= lines_[b][at]) continue;
      set[bundles_[b].row] += bundles_[b].instances;
      room -= bundles_[b].width;
    }
    return lines_.back()[kRooms + kWholeDevice];
  }

 private:
  static constexpr double kNothing = -1e30;  // there is no room below 0
  struct Bundle {
    std::size_t row;
    int instances;
    int width;
  };
  using Line = std::array<double, std::size_t{2} * kRooms>;  // the first half: rooms below 0
  const std::vector<QuotaRow>& rows_;
  std::vector<Bundle> bundles_;
  std::vector<Line> lines_;
};

// The revised simplex method: the sets of the present schedule, one per row, and the inverse of their matrix.
class Schedule {
 public:
  // Each row by itself, as many side by side as fit.
  explicit Schedule(const std::vector<QuotaRow>& rows) : size_(rows.size()), inverse_(size_ * size_, 0.0) {
    for (std::size_t row = 0; row < size_; ++row) {
      const int together = std::min(rows[row].instances, kWholeDevice / rows[row].width_percent);
      std::vector<int> alone(size_, 0);
      alone[row] = together;
      inverse_[row * size_ + row] = 1.0 / together;
      sets_.push_back(
          {std::move(alone), static_cast<double>(rows[row].instances) * rows[row].quota_percent / together});
    }
  }

  double percent() const {
    double sum = 0;
    for (const ConcurrentSet& set : sets_) sum += set.percent;
    return sum;
  }

  void find_prices(std::vector<double>& prices) const {
    prices.assign(size_, 0);
    for (std::size_t row = 0; row < size_; ++row) {
      for (std::size_t k = 0; k < size_; ++k) prices[k] += inverse_[row * size_ + k];
    }
  }

  // The set joins the schedule and takes the place of the one that ends first.
  // Returns that one's place.
  std::size_t bring_in(const std::vector<int>& set) {
    std::vector<double> weight(size_, 0);  // how much of each present set one unit of the new one replaces
    for (std::size_t k = 0; k < size_; ++k) {
      if (set[k] == 0) continue;
      for (std::size_t row = 0; row < size_; ++row) weight[row] += inverse_[row * size_ + k] * set[k];
    }
    const std::size_t leaves = first_to_end(weight);
    const double percent = std::max(0.0, sets_[leaves].percent / weight[leaves]);
    for (std::size_t row = 0; row < size_; ++row) {
      if (row == leaves || weight[row] == 0) continue;
      sets_[row].percent = std::max(0.0, sets_[row].percent - weight[row] * percent);
      const double factor = weight[row] / weight[leaves];
      for (std::size_t k = 0; k < size_; ++k) inverse_[row * size_ + k] -= factor * inverse_[leaves * size_ + k];
    }
    for (std::size_t k = 0; k < size_; ++k) inverse_[leaves * size_ + k] /= weight[leaves];
    sets_[leaves] = {set, percent};
    return leaves;
  }

  // Of each row, what sets of that row alone give it: what is left to be given side by side.
  void find_left(const std::vector<bool>& is_alone, std::vector<double>& left) const {
    for (std::size_t row = 0; row < size_; ++row) left[row] = is_alone[row] ? sets_[row].percent : 0;
  }

  std::vector<ConcurrentSet> take_sets() { return std::move(sets_); }

 private:
  // Of sets that end together, the one whose row of the inverse is least: the lexicographic rule, under which no schedule returns.
  std::size_t first_to_end(const std::vector<double>& weight) const {
    std::size_t first = size_;
    for (std::size_t row = 0; row < size_; ++row) {
      if (weight[row] <= kEpsilon) continue;
      if (first == size_ || ends_before(row, first, weight)) first = row;
    }
    FL_CHECK(first < size_, "a set of instances replaces nothing of a schedule of {} sets", size_);
    return first;
  }

  bool ends_before(std::size_t a, std::size_t b, const std::vector<double>& weight) const {
    const double difference = sets_[a].percent / weight[a] - sets_[b].percent / weight[b];
    if (difference < -kEpsilon || difference > kEpsilon) return difference < 0;
    for (std::size_t k = 0; k < size_; ++k) {
      const double by_row = inverse_[a * size_ + k] / weight[a] - inverse_[b * size_ + k] / weight[b];
      if (by_row < -kEpsilon || by_row > kEpsilon) return by_row < 0;
    }
    return false;
  }

  const std::size_t size_;
  std::vector<double> inverse_;  // row by row
  std::vector<ConcurrentSet> sets_;
};

// A first schedule that is nearly as short as any: again and again the set that is widest, those first who have most left, until one of
// them has all it needs. Each set takes the place of the row that it ends, so what comes out is a basis like any other.
void fill(const std::vector<QuotaRow>& rows, BestSet& best, Schedule& schedule) {
  std::vector<bool> is_alone(rows.size(), true);
  std::vector<double> left(rows.size(), 0), worth(rows.size(), 0);
  std::vector<int> set;
  for (std::size_t step = 0; step < rows.size(); ++step) {
    schedule.find_left(is_alone, left);
    const double most = *std::max_element(left.begin(), left.end());
    if (most <= kEpsilon) return;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      worth[row] = left[row] <= kEpsilon ? 0 : rows[row].width_percent * (1 + left[row] / most);
    }
    best.find(worth, set);
    is_alone[schedule.bring_in(set)] = false;
  }
}

}  // namespace

LeastTime least_time(const std::vector<QuotaRow>& rows, double enough) {
  LeastTime found;
  Schedule schedule(rows);
  BestSet best(rows);
  std::vector<int> set;
  fill(rows, best, schedule);
  while (true) {
    found.percent = schedule.percent();
    if (found.percent <= enough || found.iterations == kMostIterations) break;
    schedule.find_prices(found.prices);
    if (best.find(found.prices, set) <= 1 + kEpsilon) {
      found.is_least = true;
      break;
    }
    schedule.bring_in(set);
    ++found.iterations;
  }
  found.sets = schedule.take_sets();
  std::erase_if(found.sets, [](const ConcurrentSet& one) { return one.percent <= 0; });
  return found;
}

}  // namespace fairlead
