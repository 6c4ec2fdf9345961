// What tenants used, counted as it happens and kept on disk by the hour (store/usage_store.h).
//
// The core thread adds to a table in memory; a thread of its own adds the table to the file, two seconds after the first change in it. A
// graceful end loses nothing, a killed process the last two seconds and what was being written.
//
// Bounds: a tenant has at most kMostUsageNames functions in an hour, those beyond are one, "(others)", so that one who makes and deletes functions
// fills no disk. A disk that takes nothing costs counts, not memory: beyond kMostPendingUsage rows they are dropped, and logged.
//
// Example: a function of tenant a answers 1,000 calls of 2 ms in a second, from an instance that holds 1 GB on a GPU all the while. Its row of
// this hour grows by 1,000 calls, 2 GPU-seconds and 1 GB-second.
//
// Threads: the io_context's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/byte_budget.h"
#include "base/lifetime.h"
#include "edge/usage_service.h"
#include "node/worker.h"
#include "store/usage_store.h"

namespace fairlead {

struct UsageOptions {
  std::string state_dir;
  int days = 92;                                // that rows are kept
  std::function<std::int64_t()> wall_clock_ms;  // the node's
};

inline constexpr Duration kUsageWriteAfter = std::chrono::seconds(2);
inline constexpr std::size_t kMostUsageNames = 1000;
inline constexpr std::size_t kMostPendingUsage = 100'000;
inline constexpr std::size_t kMostUsageReads = 16;  // that wait or run; of one tenant as many as are left free
inline constexpr std::string_view kOtherFunctions = "(others)";

class UsageMeter final : public UsageService {
 public:
  static Result<std::unique_ptr<UsageMeter>> open(boost::asio::io_context& io, UsageOptions options);
  ~UsageMeter() override;  // writes what is left

  void called(const std::string& tenant, std::string_view function, bool has_failed, Duration gpu_time);
  // After its call was counted: work that went on, and what a device saw and nobody reported.
  void charged(const std::string& tenant, std::string_view function, Duration gpu_time);
  // Memory is looked at again: how long after the last time; 0 at the first.
  Duration sample_begins(Instant now);
  // One instance holds so much on its device, and counts as if it had since the last time.
  void held(const std::string& tenant, std::string_view function, Bytes bytes, Duration elapsed);

  // What was counted before is in it. kResourceExhausted, at once: kMostUsageReads; who asks without end neither keeps others waiting, nor
  // the node's stop.
  void usage(UsageQuery query, std::function<void(Result<std::vector<UsageRow>>)> done) override;

  std::uint64_t lost_rows() const { return lost_; }

 private:
  UsageMeter(boost::asio::io_context& io, UsageOptions options, std::unique_ptr<store::UsageStore> store);
  UsageCounts& of(const std::string& tenant, std::string_view function);
  std::string_view name_in(const std::string& tenant, std::string_view function);
  void write_soon();
  void write();
  void forget_old();
  void written(std::vector<UsageRow> rows, const Status& done);

  const UsageOptions options_;
  boost::asio::steady_timer timer_;
  std::map<UsageKey, UsageCounts> pending_;  // not given to the thread yet
  struct Hour {
    std::int64_t number = 0;
    std::map<std::string, std::set<std::string, std::less<>>, std::less<>> names;  // of functions, by tenant
  } hour_;
  UsageCounts nowhere_;  // where there is no room for a row more
  Instant sampled_;
  bool is_waiting_ = false, is_failing_ = false;
  std::int64_t forgotten_ = 0;  // the hour in which it last forgot old rows
  std::uint64_t lost_ = 0;
  ByteBudget reads_{kMostUsageReads};
  Lifetime life_;

  const std::unique_ptr<store::UsageStore> store_;  // the worker's
  std::unique_ptr<Worker> worker_;                  // last: it ends first
};

}  // namespace fairlead
