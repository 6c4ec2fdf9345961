// One background thread for blocking jobs (unpacking code). Jobs run in order; their results come back to the
// io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <utility>

namespace fairlead {

class Worker {
 public:
  explicit Worker(boost::asio::io_context& io) : io_(io), thread_(1) {}
  ~Worker() { finish(); }

  // Runs the jobs that wait, and no more from then on.
  void finish() { thread_.join(); }

  // Runs `job` on the worker thread and `done(result)` on the io_context's thread.
  template <typename Job, typename Done>
  void run(Job job, Done done) {
    boost::asio::post(thread_, [this, job = std::move(job), done = std::move(done)]() mutable {
      boost::asio::post(io_, [result = job(), done = std::move(done)]() mutable { done(std::move(result)); });
    });
  }

 private:
  boost::asio::io_context& io_;
  boost::asio::thread_pool thread_;
};

}  // namespace fairlead
