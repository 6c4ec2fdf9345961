#include "node/usage_meter.h"

#include <utility>

#include "base/log.h"

namespace fairlead {
namespace {

constexpr std::int64_t kHourMs = 3'600'000;

}  // namespace

Result<std::unique_ptr<UsageMeter>> UsageMeter::open(boost::asio::io_context& io, UsageOptions options) {
  auto store = store::UsageStore::open(options.state_dir + "/usage.db");
  if (!store) return fail(store.error());
  if ((*store)->was_damaged()) {
    spdlog::error("usage: {0}/usage.db is damaged; it is put aside as usage.db.damaged, and counting begins anew",
                  options.state_dir);
  }
  return std::unique_ptr<UsageMeter>(new UsageMeter(io, std::move(options), *std::move(store)));
}

UsageMeter::UsageMeter(boost::asio::io_context& io, UsageOptions options, std::unique_ptr<store::UsageStore> store)
    : options_(std::move(options)), timer_(io), store_(std::move(store)), worker_(std::make_unique<Worker>(io)) {}

UsageMeter::~UsageMeter() {
  write();
  worker_->finish();
}

std::string_view UsageMeter::name_in(const std::string& tenant, std::string_view function) {
  auto& names = hour_.names[tenant];
  if (names.contains(function)) return function;
  if (names.size() >= kMostUsageNames) return kOtherFunctions;
  names.emplace(function);
  return function;
}

UsageCounts& UsageMeter::of(const std::string& tenant, std::string_view function) {
  const std::int64_t hour = options_.wall_clock_ms() / kHourMs;
  if (hour != hour_.number) hour_ = {.number = hour, .names = {}};
  UsageKey key{.tenant = tenant, .hour = hour, .function = std::string(name_in(tenant, function))};
  write_soon();
  const auto known = pending_.find(key);
  if (known != pending_.end()) return known->second;
  if (pending_.size() < kMostPendingUsage) return pending_[std::move(key)];
  ++lost_;
  return nowhere_;
}

void UsageMeter::write_soon() {
  if (std::exchange(is_waiting_, true)) return;
  timer_.expires_after(kUsageWriteAfter);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) write();
  });
}

void UsageMeter::called(const std::string& tenant, std::string_view function, bool has_failed, Duration gpu_time) {
  of(tenant, function) += {.calls = 1, .errors = has_failed ? 1U : 0U, .gpu_time = gpu_time, .memory_kib_ms = 0};
}

void UsageMeter::charged(const std::string& tenant, std::string_view function, Duration gpu_time) {
  if (gpu_time != Duration(0)) of(tenant, function).gpu_time += gpu_time;
}

Duration UsageMeter::sample_begins(Instant now) {
  const Instant before = std::exchange(sampled_, now);
  return before == Instant() ? Duration(0) : now - before;
}

void UsageMeter::held(const std::string& tenant, std::string_view function, Bytes bytes, Duration elapsed) {
  constexpr std::int64_t kNanosecondsOfMs = 1'000'000;
  const std::int64_t kib_ms = (bytes.count() >> 10) * elapsed.count() / kNanosecondsOfMs;
  if (kib_ms > 0) of(tenant, function).memory_kib_ms += kib_ms;
}

void UsageMeter::write() {
  timer_.cancel();
  is_waiting_ = false;
  if (pending_.empty()) return;
  std::vector<UsageRow> rows;
  rows.reserve(pending_.size());
  for (auto& [key, counts] : pending_) rows.push_back({key, counts});
  pending_.clear();
  struct Written {
    std::vector<UsageRow> rows;
    Status done;
  };
  worker_->run(
      [this, rows = std::move(rows)]() mutable {
        Status done = store_->add(rows);
        return Written{.rows = std::move(rows), .done = std::move(done)};
      },
      life_.guarded([this](Written done) { written(std::move(done.rows), done.done); }));
  forget_old();
}

// Once in an hour: it looks at all rows.
void UsageMeter::forget_old() {
  const std::int64_t hour = options_.wall_clock_ms() / kHourMs;
  if (std::exchange(forgotten_, hour) == hour) return;
  const std::int64_t oldest = hour - std::int64_t{24} * options_.days;
  worker_->run([this, oldest] { return store_->forget_before(oldest); }, [](const Status&) {});
}

// What could not be written is counted again, and written with what comes.
void UsageMeter::written(std::vector<UsageRow> rows, const Status& done) {
  if (done) {
    if (std::exchange(is_failing_, false)) spdlog::info("usage: it is written again; {} rows were lost", lost_);
    return;
  }
  if (!std::exchange(is_failing_, true))
    spdlog::warn("usage: {}; it is kept in memory and tried again", done.error().message);
  write_soon();
  for (UsageRow& row : rows) {
    const auto known = pending_.find(row.key);
    if (known != pending_.end()) {
      known->second += row.counts;
    } else if (pending_.size() < kMostPendingUsage) {
      pending_.emplace(std::move(row.key), row.counts);
    } else {
      ++lost_;
    }
  }
}

void UsageMeter::usage(UsageQuery query, std::function<void(Result<std::vector<UsageRow>>)> done) {
  const std::string who = query.tenant.value_or("");
  if (!reads_.try_add(who, 1)) {
    return done(fail(Errc::kResourceExhausted,
                     "{} questions for usage are being answered, {} of this tenant; ask again later", reads_.used(),
                     reads_.held_by(who)));
  }
  write();
  worker_->run([this, query = std::move(query)] { return store_->read(query); },
               [this, who, done = std::move(done), life = life_.watch()](Result<std::vector<UsageRow>> rows) {
                 if (!life.ended()) reads_.subtract(who, 1);
                 done(std::move(rows));
               });
}

}  // namespace fairlead
