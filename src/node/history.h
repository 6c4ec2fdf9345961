// What has happened on the node: one line for each invocation that is over (core/invocation_record.h), kept on disk in a
// bounded series of files and handed out in pages. `fairlead sim record` makes a trace of it.
//
// The core thread copies a record into a batch, and that is all it does; a thread of its own writes the batch, as text, a
// second later or when it is full. A disk that does not keep up costs records, never time: with kMaxBatches waiting, new
// batches are dropped, and the number of lost records is logged.
//
// Threads: calls and callbacks on the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "decide/core/invocation_record.h"
#include "edge/node_service.h"
#include "node/worker.h"
#include "store/segmented_log.h"

namespace fairlead {

class History {
 public:
  static constexpr std::size_t kBatch = 4096;                       // records
  static constexpr std::size_t kMaxBatches = 16;                    // being written or waiting for it
  static constexpr Duration kFlushAfter = std::chrono::seconds(1);  // from the first record of a batch
  static constexpr std::size_t kMaxPageBytes = std::size_t{4} << 20;

  // `limit`: bytes on disk at most.
  static Result<std::unique_ptr<History>> open(boost::asio::io_context& io, const std::string& folder,
                                               std::uint64_t limit);
  ~History();  // writes what is left

  void add(const InvocationRecord& record);

  // What was added before is in it. Offsets and pages: store/segmented_log.h.
  void read(std::uint64_t from, std::size_t most, std::function<void(Result<HistoryPage>)> done);

  std::uint64_t lost() const { return lost_; }

 private:
  History(boost::asio::io_context& io, store::SegmentedLog log);
  void flush();

  boost::asio::steady_timer timer_;
  std::vector<InvocationRecord> batch_;
  std::size_t batches_ = 0;  // given to the worker
  std::uint64_t lost_ = 0;
  Lifetime life_;

  store::SegmentedLog log_;         // the worker's
  std::unique_ptr<Worker> worker_;  // last: it ends first
};

}  // namespace fairlead
