#include "store/pending_writes.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace fairlead::store {

Status PendingWrites::room_for(std::size_t bytes) const {
  if (operations_ < limits_.operations && bytes_ + bytes <= limits_.bytes) return {};
  return fail(Errc::kResourceExhausted, "{} writes with {} bytes wait for {}, the limits are {} and {}: retry later",
              operations_, bytes_, awaited_, limits_.operations, limits_.bytes);
}

void PendingWrites::add(std::size_t bytes) {
  ++operations_;
  bytes_ += bytes;
}

void PendingWrites::remove(std::size_t bytes) {
  // Below zero the limits would refuse every write from then on.
  FL_CHECK(operations_ > 0 && bytes_ >= bytes, "{} operations, {} bytes, of this one {}", operations_, bytes_, bytes);
  --operations_;
  bytes_ -= bytes;
}

WriteEnd WriteEnd::on(boost::asio::io_context& io, Done done) {
  WriteEnd end;
  if (done) end.guard_.emplace(io.get_executor());
  end.done_ = std::move(done);
  return end;
}

WriteEnd WriteEnd::here(Done done) {
  WriteEnd end;
  end.done_ = std::move(done);
  return end;
}

void WriteEnd::tell(const Status& status, std::string_view failure) {
  if (!done_) {
    if (!status) spdlog::error("{}: {}", failure, status.error().message);
    return;
  }
  if (!guard_) return done_(status);
  boost::asio::post(guard_->get_executor(), [done = std::move(done_), status] { done(status); });
  guard_.reset();
}

}  // namespace fairlead::store
