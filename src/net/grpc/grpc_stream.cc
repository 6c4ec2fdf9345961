#include "net/grpc/grpc_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "net/grpc/grpc_connection.h"
#include "net/http_request.h"
#include "net/tcp_peer.h"

namespace fairlead::net {
namespace {

constexpr const char* kStatusHeader = "grpc-status";

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; });
  return lower;
}

// Those of an answer that HTTP/2 or gRPC says in its own way.
bool is_own(std::string_view name) {
  constexpr std::string_view kOwn[] = {"content-type",      "content-length", "connection", "keep-alive",
                                       "transfer-encoding", "upgrade",        kStatusHeader};
  return std::ranges::find(kOwn, name) != std::end(kOwn);
}

// As a value of HTTP/2 may be: no control characters, and no space around it.
std::string printable(std::string_view value) {
  const std::size_t begin = std::min(value.find_first_not_of(" \t\r\n"), value.size());
  std::string text(value.substr(begin, value.find_last_not_of(" \t\r\n") + 1 - begin));
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return text;
}

}  // namespace

// ---- as it arrives

void GrpcStream::add_header(std::string_view name, std::string_view value) {
  const auto connection = connection_.lock();
  if (state_ != State::kArriving || !connection) return;
  const GrpcLimits& limits = connection->server().limits;
  header_bytes_ += name.size() + value.size();
  if (header_bytes_ > limits.header_bytes || headers_.size() >= limits.headers) {
    return refuse({GrpcStatus::kResourceExhausted, fmt::format("the metadata has more than {} bytes or {} entries",
                                                               limits.header_bytes, limits.headers)});
  }
  if (name == ":method") {
    method_ = value;
  } else if (name == ":path") {
    path_ = value;
  } else if (name == ":authority") {
    headers_.push_back({"host", std::string(value)});
  } else if (!name.starts_with(':')) {
    headers_.push_back({std::string(name), std::string(value)});
  }
}

void GrpcStream::end_headers() {
  const auto connection = connection_.lock();
  if (state_ != State::kArriving || !connection || !may_hold(*connection, header_bytes_)) return;
  if (method_ == "POST" && header("content-type").starts_with("application/grpc")) return;
  refuse({GrpcStatus::kUnimplemented, "gRPC alone is spoken here: POST with content-type application/grpc"});
}

void GrpcStream::add_data(std::string_view bytes) {
  const auto connection = connection_.lock();
  if (state_ != State::kArriving || !connection) return;
  if (!may_hold(*connection, header_bytes_ + message_.size() + bytes.size())) return;
  if (auto failure = message_.append(bytes, connection->server().limits.message_bytes)) refuse(*std::move(failure));
}

void GrpcStream::end_input() {
  has_ended_input_ = true;
  if (state_ != State::kArriving) return;
  if (auto failure = message_.finish()) return refuse(*std::move(failure));
  state_ = State::kArrived;
}

void GrpcStream::give_up() {
  if (state_ == State::kArriving) refuse({GrpcStatus::kDeadlineExceeded, "the call did not arrive in time"});
}

void GrpcStream::refuse(GrpcFailure failure) {
  forget_request();
  answer({.status = failure.status, .message = std::move(failure.text)});
}

// Whether so much of it may be kept; else it is refused.
bool GrpcStream::may_hold(GrpcConnection& connection, std::size_t bytes) {
  if (bytes <= RequestMemory::kFreeBehind) return true;
  const GrpcServerState& server = connection.server();
  const Status held = lease_.hold_request(server.memory, *server.budget, *this, bytes);
  if (!held) refuse({grpc_status_of(held.error().code), held.error().message});
  return held.has_value();
}

void GrpcStream::forget_request() {
  message_ = {};
  headers_.clear();
  headers_.shrink_to_fit();
}

void GrpcStream::hand_over(const HttpHandler& handler) {
  state_ = State::kHandling;
  handler(HttpExchange(shared_from_this()));
}

// ---- the answer

void GrpcStream::respond(HttpResponse response) {
  disconnected_ = nullptr;
  if (state_ != State::kHandling) return;
  GrpcAnswer said{.status = grpc_status_of(response.status)};
  for (Header& header : response.headers) {
    std::string name = lower_case(header.name);
    if (name == kStatusHeader) said.status = static_cast<GrpcStatus>(std::atoi(header.value.c_str()));
    if (!is_own(name)) said.headers.push_back({std::move(name), printable(header.value)});
  }
  if (response.stream) {
    said = {.status = GrpcStatus::kInternal, .message = "the answer is a stream, which a unary call has not"};
  } else if (said.status != GrpcStatus::kOk) {
    said.message = std::move(response.body);
  } else {
    said.prefix = grpc_prefix(response.body.size());
    said.body = std::move(response.body);
  }
  answer(std::move(said));
}

void GrpcStream::abandon() {
  respond({.status = 500, .body = "the call was not answered"});
}

void GrpcStream::answer(GrpcAnswer answer) {
  const auto connection = connection_.lock();
  state_ = State::kAnswered;
  answer_ = std::move(answer);
  if (!connection) return;
  count_answer(*connection);
  forget_request();
  connection->send_answer(*this);
}

void GrpcStream::count_answer(GrpcConnection& connection) {
  const GrpcServerState& server = connection.server();
  const Status held =
      lease_.hold_answer(server.memory, *server.budget, *this, answer_.body.size(),
                         {.is_over_unix = connection.peer().uid.has_value(), .unsent = connection.unsent_bytes()});
  if (!held) answer_ = {.status = grpc_status_of(held.error().code), .message = held.error().message};
}

std::size_t GrpcStream::take_body(char* to, std::size_t most) {
  std::size_t taken = 0;
  std::size_t begin = answer_.sent;
  for (const std::string_view part : {std::string_view(answer_.prefix), std::string_view(answer_.body)}) {
    const std::size_t count = begin < part.size() ? std::min(part.size() - begin, most - taken) : 0;
    std::memcpy(to + taken, part.data() + std::min(begin, part.size()), count);
    taken += count;
    begin -= std::min(begin, part.size());
  }
  answer_.sent += taken;
  return taken;
}

void GrpcStream::on_disconnect(std::function<void()> callback) {
  if (state_ == State::kOver) return callback();  // it has gone while its call was being read
  disconnected_ = std::move(callback);
}

void GrpcStream::client_has_gone() {
  state_ = State::kOver;
  if (const auto callback = std::exchange(disconnected_, nullptr)) callback();
}

// ---- the request

std::string_view GrpcStream::header(std::string_view name) const {
  const auto found =
      std::ranges::find_if(headers_, [&](const Header& header) { return equals_ignoring_case(header.name, name); });
  return found == headers_.end() ? std::string_view() : std::string_view(found->value);
}

bool GrpcStream::peer_is_local() const {
  const auto connection = connection_.lock();
  return connection && connection->peer().is_local;
}

std::string GrpcStream::peer_address() const {
  const auto connection = connection_.lock();
  return connection ? connection->address() : "";
}

std::optional<std::uint32_t> GrpcStream::peer_uid() const {
  const auto connection = connection_.lock();
  return connection ? connection->peer().uid : std::nullopt;
}

std::optional<std::uint32_t> GrpcStream::caller_uid() const {
  if (const auto uid = peer_uid()) return uid;
  const auto connection = connection_.lock();
  return connection && connection->peer().is_local ? uid_of_tcp_peer(connection->socket()) : std::nullopt;
}

}  // namespace fairlead::net
