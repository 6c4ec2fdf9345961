#include "node/tenant_worker.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "base/give_way.h"

namespace fairlead {

TenantWorker::TenantWorker(boost::asio::io_context& io, Limits limits) : io_(io), limits_(limits) {
  boost::asio::post(thread_, &give_way);
}

TenantWorker::~TenantWorker() {
  life_.end();
  thread_.stop();
  thread_.join();
}

Status TenantWorker::run(const std::string& tenant, Bytes bytes, Job job) {
  if (bytes_ + bytes > limits_.bytes) {
    return fail(Errc::kResourceExhausted,
                "requests of {:.0f} MiB are being read, at most {:.0f} MiB are possible; retry later", bytes_.mib(),
                limits_.bytes.mib());
  }
  const auto known = held_.find(tenant);
  const Held held = known == held_.end() ? Held() : known->second;
  if (held.jobs >= limits_.jobs_of_tenant || held.bytes + bytes > limits_.bytes_of_tenant) {
    return fail(
        Errc::kResourceExhausted,
        "{} requests of tenant '{}' with {:.0f} MiB are being read, at most {} with {:.0f} MiB are possible; retry "
        "later",
        held.jobs, tenant, held.bytes.mib(), limits_.jobs_of_tenant, limits_.bytes_of_tenant.mib());
  }
  held_[tenant] = {held.jobs + 1, held.bytes + bytes};
  bytes_ += bytes;
  const std::uint64_t id = ++last_;
  pieces_.emplace(id, Piece{tenant, bytes, std::move(job)});
  turns_.add(id, tenant);
  start_next();
  return {};
}

void TenantWorker::start_next() {
  const auto id = turns_.take_next();
  if (!id) return;
  boost::asio::post(thread_, [this, id = *id, job = std::move(pieces_.at(*id).job), life = life_.watch()]() mutable {
    auto then = job();
    // The job goes with what follows it, on the loop: what it holds may be the loop's.
    boost::asio::post(io_, [this, id, life, job = std::move(job), then = std::move(then)] {
      if (!life.ended()) end(id, then);
    });
  });
}

void TenantWorker::end(std::uint64_t id, const std::function<void()>& then) {
  const Piece piece = std::move(pieces_.extract(id).mapped());
  Held& held = held_.at(piece.tenant);
  held = {held.jobs - 1, held.bytes - piece.bytes};
  if (held.jobs == 0) held_.erase(piece.tenant);
  bytes_ = bytes_ - piece.bytes;
  turns_.remove(id);
  start_next();
  then();
}

}  // namespace fairlead
