// One call of a connection: its metadata and message as they arrive, the right to answer it, and its answer until that is sent.
//
// Threads: the io_context's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "net/grpc/grpc_message.h"
#include "net/grpc/grpc_status.h"
#include "net/http_server.h"
#include "net/request_lease.h"

namespace fairlead::net {

class GrpcConnection;

// What a call is answered with.
struct GrpcAnswer {
  GrpcStatus status = GrpcStatus::kOk;
  std::string message;          // of the status
  std::vector<Header> headers;  // names in lower case
  std::string prefix, body;     // kOk: the message, as gRPC frames it
  std::size_t sent = 0;         // of the two
};

class GrpcStream final : public HttpExchange::Impl,
                         public HttpRequest,
                         public std::enable_shared_from_this<GrpcStream> {
 public:
  enum class State {
    kArriving,
    kArrived,   // whole, and not handed over yet
    kHandling,  // the handler has it
    kAnswered,  // its answer is on its way
    kOver,      // its client has gone, or has all of the answer
  };

  GrpcStream(std::weak_ptr<GrpcConnection> connection, int id, Instant begun)
      : connection_(std::move(connection)), id_(id), begun_(begun) {}

  int id() const { return id_; }
  State state() const { return state_; }
  Instant begun() const { return begun_; }
  const GrpcAnswer& answer() const { return answer_; }
  bool has_ended_input() const { return has_ended_input_; }

  // ---- as it arrives. After a refusal nothing of it is kept.
  void add_header(std::string_view name, std::string_view value);
  void end_headers();
  void add_data(std::string_view bytes);
  void end_input();  // then it has arrived, or is refused

  void hand_over(const HttpHandler& handler);
  std::size_t take_body(char* to, std::size_t most);  // the next bytes of the answer, how many
  std::size_t unsent() const { return answer_.prefix.size() + answer_.body.size() - answer_.sent; }
  void give_up();          // arriving for too long: it is refused
  void client_has_gone();  // tells the handler, where it has not answered
  void end() { state_ = State::kOver; }

  // ---- HttpExchange::Impl
  HttpRequest& request() override { return *this; }
  void respond(HttpResponse response) override;
  void on_disconnect(std::function<void()> callback) override;
  void abandon() override;

  // ---- HttpRequest
  std::string_view method() const override { return method_; }
  std::string_view target() const override { return path_; }
  std::string_view header(std::string_view name) const override;
  std::vector<Header> all_headers() const override { return headers_; }
  std::string_view body() const override { return message_.text(); }
  std::string take_body() override { return std::move(message_.text()); }
  bool peer_is_local() const override;
  std::string peer_address() const override;
  std::optional<std::uint32_t> peer_uid() const override;
  std::optional<std::uint32_t> caller_uid() const override;

 private:
  void refuse(GrpcFailure failure);
  void answer(GrpcAnswer answer);
  bool may_hold(GrpcConnection& connection, std::size_t bytes);
  void count_answer(GrpcConnection& connection);
  void forget_request();

  const std::weak_ptr<GrpcConnection> connection_;
  const int id_;
  const Instant begun_;
  State state_ = State::kArriving;
  bool has_ended_input_ = false;
  std::string method_, path_;
  std::vector<Header> headers_;
  std::size_t header_bytes_ = 0;
  GrpcMessage message_;
  std::function<void()> disconnected_;
  RequestLease lease_;
  GrpcAnswer answer_;
};

}  // namespace fairlead::net
