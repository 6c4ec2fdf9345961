#include "softgpu/driver/context/context_streams.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "softgpu/driver/process.h"

namespace softgpu {

ContextStreams::ContextStreams() : legacy_(std::make_shared<Stream>(Stream::Kind::kLegacy, 0, 0, pending_)) {}

std::shared_ptr<Stream> ContextStreams::make(Stream::Kind kind, int priority) {
  const LockGuard guard(mutex_);
  std::erase_if(closed_, [](const auto& closed) { return closed->idle(); });
  auto stream = std::make_shared<Stream>(kind, priority, next_++, pending_);
  streams_.push_back(stream);
  return stream;
}

void ContextStreams::close(const std::shared_ptr<Stream>& stream) {
  stream->close();
  const LockGuard guard(mutex_);
  if (std::erase(streams_, stream) != 0 && !stream->idle()) closed_.push_back(stream);
}

void ContextStreams::close_all() {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    const LockGuard guard(mutex_);
    streams.swap(streams_);
    join_.reset();
  }
  legacy_->close();
  for (const auto& stream : streams) stream->close();
}

std::vector<Point> ContextStreams::legacy_order(const Stream& stream) {
  std::vector<Point> after;
  if (stream.kind == Stream::Kind::kLegacy) {
    for (const auto* streams : {&streams_, &closed_}) {
      for (const auto& other : *streams) {
        if (other->kind == Stream::Kind::kBlocking && !other->idle()) after.push_back(other->last());
      }
    }
  } else if (stream.kind == Stream::Kind::kBlocking && !legacy_->idle()) {
    after.push_back(legacy_->last());
  }
  return after;
}

std::vector<Point> ContextStreams::last_of_all() {
  std::vector<Point> all = {legacy_->last()};
  for (const auto* streams : {&streams_, &closed_}) {
    for (const auto& stream : *streams) all.push_back(stream->last());
  }
  return all;
}

Point ContextStreams::submit(Stream& stream, std::function<void()> run, std::vector<Point> after) {
  const CallPass pass;  // before mutex_, which operations that are under way may need
  const LockGuard guard(mutex_);
  std::vector<Point> order = idle() ? std::vector<Point>() : legacy_order(stream);
  order.insert(order.end(), std::make_move_iterator(after.begin()), std::make_move_iterator(after.end()));
  const std::uint64_t sequence = stream.submit({std::move(run), std::move(order)});
  return {stream.shared_from_this(), sequence};
}

bool ContextStreams::idle(const Stream& stream) {
  if (!stream.idle()) return false;
  if (stream.kind != Stream::Kind::kLegacy) return true;
  const LockGuard guard(mutex_);
  return legacy_order(stream).empty();
}

void ContextStreams::wait_helping() {
  std::vector<Point> points;
  if (!idle()) {
    const LockGuard guard(mutex_);
    points = last_of_all();
  }
  for (const Point& point : points) point.stream->wait_helping(point.sequence);
}

Point ContextStreams::submit_after_all(std::function<void()> run) {
  const CallPass pass;
  const LockGuard guard(mutex_);
  std::vector<Point> all = last_of_all();
  if (join_ == nullptr) {
    join_ = std::make_shared<Stream>(Stream::Kind::kNonBlocking, 0, next_++, pending_);
    streams_.push_back(join_);
  }
  return {join_, join_->submit({std::move(run), std::move(all)})};
}

void ContextStreams::hold_all(const Point& point) {
  const CallPass pass;
  const LockGuard guard(mutex_);
  if (point.reached()) return;
  legacy_->submit({[] {}, {point}});
  for (const auto& stream : streams_) stream->submit({[] {}, {point}});
}

}  // namespace softgpu
