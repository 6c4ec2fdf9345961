// A background thread for reading what strangers sent: large documents, hashes of large requests. Tenants take turns on the
// thread, so that a flood of one keeps another waiting for one piece of work; and a tenant may have so much waiting, and all
// of them together. The thread gives way to others on the processors: what it reads may wait, and a flood of it takes no
// neighbour's time.
//
// Threads: the loop's; jobs run on the worker thread, what they return runs on the loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/lifetime.h"
#include "base/result.h"
#include "base/tenant_turns.h"
#include "base/units.h"

namespace fairlead {

class TenantWorker {
 public:
  // Runs on the worker thread; what it returns, then on the loop. It must not touch what the loop's thread has.
  using Job = std::function<std::function<void()>()>;
  struct Limits {  // of what waits or runs
    std::size_t jobs_of_tenant = 16;
    Bytes bytes_of_tenant = mib(256);
    Bytes bytes = gib(1);
  };

  explicit TenantWorker(boost::asio::io_context& io) : TenantWorker(io, Limits()) {}
  TenantWorker(boost::asio::io_context& io, Limits limits);
  ~TenantWorker();  // the job that runs is finished, those that wait are not begun

  // `bytes` are what the job holds. kResourceExhausted names the limit; the job is gone then.
  Status run(const std::string& tenant, Bytes bytes, Job job);

 private:
  struct Piece {
    std::string tenant;
    Bytes bytes{0};
    Job job;
  };
  struct Held {
    std::size_t jobs = 0;
    Bytes bytes{0};
  };
  void start_next();
  void end(std::uint64_t id, const std::function<void()>& then);

  boost::asio::io_context& io_;
  const Limits limits_;
  TenantTurns turns_{1};
  std::map<std::uint64_t, Piece> pieces_;
  std::map<std::string, Held> held_;  // by tenant
  Bytes bytes_{0};                    // of all
  std::uint64_t last_ = 0;
  Lifetime life_;
  boost::asio::thread_pool thread_{1};
};

}  // namespace fairlead
