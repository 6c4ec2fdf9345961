// The least time against a plain linear program over every concurrent set, instance by instance; and by its own two proofs: the
// schedule, which is long enough for everybody, and the prices, under which no shorter one can be.
#include "decide/pacing/concurrent_sets.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "decide/pacing/admission.h"

namespace fairlead {
namespace {

using Instances = std::vector<std::pair<int, int>>;  // width, quota

std::vector<QuotaRow> rows_of(Instances instances) {
  std::sort(instances.begin(), instances.end());
  std::vector<QuotaRow> rows;
  for (const auto& [width, quota] : instances) {
    if (!rows.empty() && rows.back().width_percent == width && rows.back().quota_percent == quota) {
      ++rows.back().instances;
    } else {
      rows.push_back({width, quota, 1});
    }
  }
  return rows;
}

// Sets as bit masks.
std::vector<unsigned> all_sets(const Instances& instances) {
  std::vector<unsigned> sets;
  for (unsigned set = 1; set < 1u << instances.size(); ++set) {
    int width = 0;
    for (std::size_t i = 0; i < instances.size(); ++i) width += (set >> i & 1) != 0 ? instances[i].first : 0;
    if (width <= 100) sets.push_back(set);
  }
  return sets;
}

// The dual, by the textbook tableau with Bland's rule: maximise the sum of quota x price so that no set's prices exceed 1.
double naive_least_time(const Instances& instances) {
  const std::vector<unsigned> sets = all_sets(instances);
  const std::size_t n = instances.size(), m = sets.size();
  std::vector<std::vector<double>> table(m + 1, std::vector<double>(n + m + 1, 0));
  std::vector<std::size_t> basis(m);
  for (std::size_t r = 0; r < m; ++r) {
    for (std::size_t i = 0; i < n; ++i) table[r][i] = sets[r] >> i & 1;
    table[r][n + r] = table[r][n + m] = 1;
    basis[r] = n + r;
  }
  for (std::size_t i = 0; i < n; ++i) table[m][i] = -instances[i].second;
  while (true) {
    std::size_t enters = 0;
    while (enters < n + m && table[m][enters] > -1e-9) ++enters;
    if (enters == n + m) return table[m][n + m];
    std::size_t leaves = m;
    for (std::size_t r = 0; r < m; ++r) {
      if (table[r][enters] <= 1e-9) continue;
      const double ratio = table[r][n + m] / table[r][enters];
      const double best = leaves == m ? 0 : table[leaves][n + m] / table[leaves][enters];
      if (leaves == m || ratio < best - 1e-12 || (ratio < best + 1e-12 && basis[r] < basis[leaves])) leaves = r;
    }
    const double pivot = table[leaves][enters];
    for (double& cell : table[leaves]) cell /= pivot;
    for (std::size_t r = 0; r <= m; ++r) {
      const double factor = table[r][enters];
      if (r == leaves || factor == 0) continue;
      for (std::size_t c = 0; c <= n + m; ++c) table[r][c] -= factor * table[leaves][c];
    }
    basis[leaves] = enters;
  }
}

void check_schedule(const std::vector<QuotaRow>& rows, const LeastTime& found) {
  std::vector<double> given(rows.size(), 0);
  double percent = 0;
  for (const ConcurrentSet& set : found.sets) {
    int width = 0;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      RC_ASSERT(set.instances[row] >= 0 && set.instances[row] <= rows[row].instances);
      width += set.instances[row] * rows[row].width_percent;
      given[row] += set.instances[row] * set.percent;
    }
    RC_ASSERT(width <= 100);
    percent += set.percent;
  }
  RC_ASSERT(std::abs(percent - found.percent) < 1e-5);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    RC_ASSERT(std::abs(given[row] - rows[row].instances * rows[row].quota_percent) < 1e-5);
  }
}

auto some_instances(std::size_t most) {
  // Few different widths and quotas: instances that are alike, and ties. Or any.
  const auto alike = rc::gen::pair(rc::gen::elementOf(std::vector<int>{6, 12, 24, 50, 60, 80, 100}),
                                   rc::gen::elementOf(std::vector<int>{20, 40, 60, 80, 100}));
  const auto any = rc::gen::pair(rc::gen::inRange(1, 101), rc::gen::inRange(1, 101));
  return rc::gen::mapcat(rc::gen::inRange<std::size_t>(1, most + 1), [=](std::size_t count) {
    return rc::gen::oneOf(rc::gen::container<Instances>(count, alike), rc::gen::container<Instances>(count, any));
  });
}

RC_GTEST_PROP(LeastTime, IsThatOfALinearProgramOverAllSets, ()) {
  const Instances instances = *some_instances(7);
  const LeastTime found = least_time(rows_of(instances), 0);
  RC_ASSERT(found.is_least);
  RC_ASSERT(std::abs(found.percent - naive_least_time(instances)) < 1e-5);
}

RC_GTEST_PROP(LeastTime, HasAScheduleAndPricesThatProveIt, ()) {
  const Instances instances = *some_instances(14);
  const std::vector<QuotaRow> rows = rows_of(instances);
  const LeastTime found = least_time(rows, 0);
  RC_ASSERT(found.is_least);
  check_schedule(rows, found);
  const auto row_of = [&](const std::pair<int, int>& one) {
    for (std::size_t row = 0;; ++row) {
      if (rows[row].width_percent == one.first && rows[row].quota_percent == one.second) return row;
    }
  };
  double worth = 0;
  for (const auto& one : instances) worth += found.prices[row_of(one)] * one.second;
  RC_ASSERT(std::abs(worth - found.percent) < 1e-5);
  for (const unsigned set : all_sets(instances)) {
    double price = 0;
    for (std::size_t i = 0; i < instances.size(); ++i) {
      if ((set >> i & 1) != 0) price += found.prices[row_of(instances[i])];
    }
    RC_ASSERT(price <= 1 + 1e-6);
  }
}

RC_GTEST_PROP(LeastTime, ASearchThatEndsEarlyHasASchedule, ()) {
  const Instances instances = *some_instances(48);
  const std::vector<QuotaRow> rows = rows_of(instances);
  const LeastTime early = least_time(rows, 97);
  check_schedule(rows, early);
  RC_ASSERT(early.percent <= 97 + 1e-6 || early.is_least);
  RC_ASSERT((early.percent <= 97 + 1e-6) == (least_time(rows, 0).percent <= 97 + 1e-6));
}

RC_GTEST_PROP(Admission, FewerInstancesFitWhereMoreDo, ()) {
  const Instances instances = *some_instances(10);
  Admission admission({.reserve_percent = 3});
  std::vector<PacedShare> shares;
  double before = 0;
  for (const auto& [width, quota] : instances) {
    shares.push_back({.width_percent = width, .request_percent = quota});
    const double now =
        least_time(rows_of(Instances(instances.begin(), instances.begin() + std::ssize(shares))), 0).percent;
    RC_ASSERT(now >= before - 1e-6);
    RC_ASSERT(admission.ask(shares).fits() == (now <= 97 + 1e-4));
    before = now;
  }
  std::reverse(shares.begin(), shares.end());
  RC_ASSERT(admission.ask(shares).fits() == (before <= 97 + 1e-4));
}

}  // namespace
}  // namespace fairlead
