// For tests: a client of gRPC in the server's thread, by nghttp2. Waiting turns the server's event loop.
#pragma once

#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <boost/asio/io_context.hpp>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/http_test_client.h"

namespace fairlead::net {

class GrpcTestClient {
 public:
  struct Call {
    std::map<std::string, std::string> fields;  // head and trailer
    std::string body;                           // with its prefix
    std::string to_send;
    std::size_t sent = 0;
    bool stays_open = false;  // nothing ends what it sends
    bool is_closed = false;
    std::uint32_t reset = 0;

    std::string status() const {
      const auto found = fields.find("grpc-status");
      return found == fields.end() ? "" : found->second;
    }
    std::string message() const {
      const auto found = fields.find("grpc-message");
      return found == fields.end() ? "" : found->second;
    }
  };
  using Fields = std::vector<std::pair<std::string, std::string>>;

  // `window`: bytes of answers that the server may send before more are asked for.
  GrpcTestClient(boost::asio::io_context& io, std::string_view address, std::uint32_t window = 65535) : io_(io) {
    const auto target = parse_socket_address(address);
    EXPECT_TRUE(target);
    fd_ = ::socket(target->family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(0, ::connect(fd_, reinterpret_cast<const sockaddr*>(target->storage), target->size));
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, closed);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, received);
    nghttp2_session_client_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window}};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, 1);
  }
  GrpcTestClient(const GrpcTestClient&) = delete;
  GrpcTestClient& operator=(const GrpcTestClient&) = delete;
  ~GrpcTestClient() {
    close();
    nghttp2_session_del(session_);
  }

  // `bytes`: as they go out, with their prefix.
  int begin(std::string_view path, std::string bytes, const Fields& more = {}, bool stays_open = false,
            std::string_view method = "POST", std::string_view type = "application/grpc") {
    Fields fields = {{":method", std::string(method)},    {":scheme", "http"},
                     {":path", std::string(path)},        {":authority", "localhost"},
                     {"content-type", std::string(type)}, {"te", "trailers"}};
    fields.insert(fields.end(), more.begin(), more.end());
    std::vector<nghttp2_nv> values;
    for (auto& [name, value] : fields) {
      values.push_back({reinterpret_cast<std::uint8_t*>(name.data()), reinterpret_cast<std::uint8_t*>(value.data()),
                        name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
    }
    nghttp2_data_provider body{};
    body.read_callback = read_body;
    const int id = nghttp2_submit_request(session_, nullptr, values.data(), values.size(), &body, nullptr);
    calls_[id] = {.to_send = std::move(bytes), .stays_open = stays_open};
    flush();
    return id;
  }

  void cancel(int id) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    flush();
  }

  // Until the call is over.
  const Call& wait(int id) {
    EXPECT_TRUE(run_until(io_, [&] {
      turn();
      return calls_[id].is_closed || ended_;
    }));
    return calls_[id];
  }

  void turn() {
    char bytes[4096];
    for (;;) {
      const ssize_t count = ::recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
      if (count == 0) ended_ = true;
      if (count <= 0) break;
      if (nghttp2_session_mem_recv(session_, reinterpret_cast<std::uint8_t*>(bytes), static_cast<std::size_t>(count)) <
          0) {
        ended_ = true;
        break;
      }
    }
    flush();
  }

  Call& call(int id) { return calls_[id]; }
  bool has_ended() const { return ended_; }        // the server closed
  bool is_told_to_leave() const { return left_; }  // GOAWAY
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  static GrpcTestClient& of(void* user) { return *static_cast<GrpcTestClient*>(user); }

  static int header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                    const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* user) {
    of(user).calls_[frame->hd.stream_id].fields[{reinterpret_cast<const char*>(name), name_size}] =
        std::string(reinterpret_cast<const char*>(value), value_size);
    return 0;
  }
  static int data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes, std::size_t size,
                  void* user) {
    of(user).calls_[id].body.append(reinterpret_cast<const char*>(bytes), size);
    return 0;
  }
  static int closed(nghttp2_session*, std::int32_t id, std::uint32_t error, void* user) {
    of(user).calls_[id].is_closed = true;
    of(user).calls_[id].reset = error;
    return 0;
  }
  static int received(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type == NGHTTP2_GOAWAY) of(user).left_ = true;
    return 0;
  }
  static ssize_t read_body(nghttp2_session*, std::int32_t id, std::uint8_t* to, std::size_t most, std::uint32_t* flags,
                           nghttp2_data_source*, void* user) {
    Call& call = of(user).calls_[id];
    const std::size_t count = std::min(most, call.to_send.size() - call.sent);
    if (count == 0 && call.stays_open) return NGHTTP2_ERR_DEFERRED;
    std::copy_n(call.to_send.data() + call.sent, count, reinterpret_cast<char*>(to));
    call.sent += count;
    if (call.sent == call.to_send.size() && !call.stays_open) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(count);
  }

  void flush() {
    for (;;) {
      if (output_.empty()) {
        const std::uint8_t* bytes = nullptr;
        const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
        if (size <= 0) return;
        output_.assign(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
      }
      const ssize_t count = ::send(fd_, output_.data(), output_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count <= 0) return;
      output_.erase(0, static_cast<std::size_t>(count));
    }
  }

  boost::asio::io_context& io_;
  nghttp2_session* session_ = nullptr;
  int fd_ = -1;
  std::map<int, Call> calls_;
  std::string output_;
  bool ended_ = false;
  bool left_ = false;
};

}  // namespace fairlead::net
