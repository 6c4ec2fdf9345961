#include "net/grpc/grpc_calls.h"

namespace fairlead::net {

GrpcStream* GrpcCalls::find(int id) const {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second.get();
}

void GrpcCalls::end_input(int id) {
  const Stream stream = streams_.at(id);
  stream->end_input();
  if (stream->state() == GrpcStream::State::kArrived) arrived_.push_back(stream);
}

bool GrpcCalls::close(int id, Instant now) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return false;
  const bool is_handled = found->second->state() == GrpcStream::State::kHandling;
  if (is_handled) {
    cancelled_.push_back(std::move(found->second));
  } else {
    found->second->end();
  }
  streams_.erase(found);
  if (streams_.empty()) idle_since_ = now;
  return is_handled && cancelled_.size() == 1;
}

GrpcCalls::Stream GrpcCalls::take_arrived() {
  Stream stream = std::move(arrived_.front());
  arrived_.pop_front();
  return stream;
}

std::vector<GrpcCalls::Stream> GrpcCalls::all() const {
  std::vector<Stream> streams;
  for (const auto& [id, stream] : streams_) streams.push_back(stream);
  return streams;
}

std::vector<GrpcCalls::Stream> GrpcCalls::take_all() {
  auto streams = all();
  streams_.clear();
  return streams;
}

}  // namespace fairlead::net
