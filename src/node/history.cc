#include "node/history.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace fairlead {
namespace {

std::string text_of(const std::vector<InvocationRecord>& records) {
  std::string text;
  text.reserve(records.size() * 96);
  for (const InvocationRecord& record : records) {
    text += to_line(record);
    text += '\n';
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<History>> History::open(boost::asio::io_context& io, const std::string& folder,
                                               std::uint64_t limit) {
  auto log = store::SegmentedLog::open(folder, limit);
  if (!log) return fail(log.error());
  return std::unique_ptr<History>(new History(io, *std::move(log)));
}

History::History(boost::asio::io_context& io, store::SegmentedLog log)
    : timer_(io), log_(std::move(log)), worker_(std::make_unique<Worker>(io)) {
  batch_.reserve(kBatch);
}

History::~History() {
  flush();
  worker_->finish();
}

void History::add(const InvocationRecord& record) {
  if (batch_.empty()) {
    timer_.expires_after(kFlushAfter);
    timer_.async_wait([this](boost::system::error_code error) {
      if (!error) flush();
    });
  }
  batch_.push_back(record);
  if (batch_.size() == kBatch) flush();
}

void History::flush() {
  timer_.cancel();
  if (batch_.empty()) return;
  if (batches_ == kMaxBatches) {
    lost_ += batch_.size();
    spdlog::warn("the history on disk does not keep up: {} invocations of this run are missing in it", lost_);
    batch_.clear();
    return;
  }
  ++batches_;
  std::vector<InvocationRecord> records;
  records.reserve(kBatch);
  batch_.swap(records);
  const std::size_t count = records.size();
  worker_->run([this, records = std::move(records)] { return log_.append(text_of(records)); },
               life_.guarded([this, count](const Status& written) {
                 --batches_;
                 if (written) return;
                 lost_ += count;
                 spdlog::warn("history: {}; {} invocations of this run are missing in it", written.error().message,
                              lost_);
               }));
}

void History::read(std::uint64_t from, std::size_t most, std::function<void(Result<HistoryPage>)> done) {
  flush();
  worker_->run([this, from, most] { return log_.read(from, std::min(most, kMaxPageBytes)); },
               [done = std::move(done)](Result<store::SegmentedLog::Page> page) {
                 if (!page) return done(fail(page.error()));
                 done(HistoryPage{std::move(page->lines), page->next});
               });
}

}  // namespace fairlead
