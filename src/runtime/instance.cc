#include "runtime/instance.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "model/function.h"
#include "model/trace_context.h"
#include "net/body_sink.h"
#include "runtime/container_config.h"
#include "runtime/environment.h"
#include "runtime/sandbox_root.h"
#include "runtime/unix_listener.h"

namespace fairlead {
namespace {

constexpr int kSocketBacklog = 16;
constexpr std::size_t kLogReadBytes = 64 << 10;  // a pipe's capacity
// A flooding function is read this much faster than its log's rate, then it waits.
constexpr std::int64_t kFloodFactor = 4;
constexpr auto kFloodPause = std::chrono::milliseconds(100);
// A function that said it cannot start has this long to end by itself, with its own exit status.
constexpr auto kInitErrorGrace = std::chrono::milliseconds(200);
// After the sandbox's end its connections are closed by the kernel; what it had sent is at most a few reads away.
constexpr int kDrainTries = 100;
constexpr auto kDrainInterval = std::chrono::milliseconds(1);
// A process that is killed may still be in a system call, such as a copy to a device.
constexpr auto kLostPatience = std::chrono::seconds(5);

// The server refuses bodies above this by itself. Above the response limit, so that an oversized answer still ends its
// invocation with the reason.
constexpr std::size_t kMaxBodyBytes = 2 * kMaxResponseBytes + (1 << 20);

net::HttpLimits runtime_api_limits() {
  return {.header_bytes = 16 << 10,
          .body_bytes = kMaxBodyBytes,
          .pipelined_requests = 4,
          .idle_timeout = std::chrono::hours(24),      // a function may work for long between two calls
          .transfer_timeout = std::chrono::hours(24),  // and stream an answer until its timeout
          .connections = 8};
}

std::int64_t first_child(std::int64_t pid) {
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", pid));
  std::int64_t child = 0;
  return children >> child ? child : pid;
}

void reply(net::HttpExchange& exchange, unsigned status, std::string_view body) {
  net::HttpResponse response{.status = status, .headers = {}, .body = std::string(body)};
  response.headers.push_back({"Content-Type", "application/json"});
  exchange.respond(std::move(response));
}

std::string too_large_payload(std::size_t size) {
  return fmt::format(
      R"({{"errorType":"{}","errorMessage":"Response payload size ({} bytes) exceeded maximum allowed payload size )"
      R"(({} bytes)."}})",
      kResponseTooLarge, size, kMaxResponseBytes);
}

std::string reason_of(const ExitNote& note, const std::optional<int>& exit_status, const std::optional<int>& signal) {
  if (!note.failure.empty()) return note.failure;
  if (exit_status) return fmt::format("exit status {}", *exit_status);
  const char* name = ::sigabbrev_np(*signal);
  if (*signal == SIGKILL) return "signal: killed";
  return fmt::format("signal: SIG{}", name != nullptr ? name : std::to_string(*signal));
}

constexpr std::string_view kErrorType = "Lambda-Runtime-Function-Error-Type";
constexpr std::string_view kErrorBody = "Lambda-Runtime-Function-Error-Body";

bool is_streaming(const net::HttpRequest& request) {
  return request.header("Lambda-Runtime-Function-Response-Mode") == "streaming";
}

// How its caller asked, for those who want to know (runtime/http_adapter.h).
void add_http_part(HttpPart http, net::HttpResponse& response) {
  response.headers.push_back({"Fairlead-Http-Method", std::move(http.method)});
  response.headers.push_back({"Fairlead-Http-Target", std::move(http.path)});
  for (const auto& [name, value] : http.headers) {
    response.headers.push_back({"Fairlead-Http-Header", name + ": " + value});
  }
}

// What a function says in trailers: a type, and its error document in Base64.
std::string trailing_error(std::string_view type, std::string_view encoded) {
  auto document = base64_decode(kErrorBody, encoded);
  if (document && !document->empty()) return std::move(*document);
  return nlohmann::json{{"errorType", type}, {"errorMessage", ""}}.dump(-1, ' ', false,
                                                                        nlohmann::json::error_handler_t::replace);
}

// The body of a streamed answer, on its way to the caller. Destroyed before it was whole: the answer is cut.
class StreamSink final : public net::BodySink {
 public:
  struct Owner {
    std::function<void()> began;  // its first byte is there
    std::function<void(std::string_view)> cut;
  };
  StreamSink(std::shared_ptr<AnswerStream> stream, Owner owner) : stream_(std::move(stream)), owner_(std::move(owner)) {
    stream_->on_change([this] { tell_room(); });
  }
  StreamSink(const StreamSink&) = delete;
  StreamSink& operator=(const StreamSink&) = delete;
  ~StreamSink() override {
    stream_->on_change(nullptr);
    owner_.cut(is_over() ? "the caller has left" : "the function closed its connection in the middle of its answer");
  }

  void append(std::string_view bytes) override {
    if (!bytes.empty() && owner_.began) std::exchange(owner_.began, nullptr)();
    stream_->part(bytes);
  }
  bool is_full() const override { return stream_->is_full() && !stream_->is_gone(); }
  bool is_over() const override { return stream_->is_gone(); }
  std::size_t most_bytes() const override { return kMaxStreamedBytes; }

 private:
  const std::shared_ptr<AnswerStream> stream_;
  Owner owner_;
};

// As AWS's runtimes read it, and, where it says enough for that, as everybody else's do.
void add_trace(net::HttpResponse& response, const std::string& trace_id) {
  response.headers.push_back({"Lambda-Runtime-Trace-Id", trace_id});
  const auto context = parse_amzn_trace(trace_id);
  if (context && context->span != 0) response.headers.push_back({"traceparent", to_traceparent(*context)});
}

}  // namespace

Instance::Instance(const InstanceContext& context, InstanceSpec spec, std::shared_ptr<FunctionLog> log_file)
    : context_(context),
      spec_(std::move(spec)),
      log_file_(std::move(log_file)),
      log_(*log_file_, context.options.log_rate_limit, spec_.version),
      api_(kMaxResponseBytes),
      server_(
          context.io, runtime_api_limits(), [this](net::HttpExchange exchange) { on_call(std::move(exchange)); },
          [this](net::HttpRequest& head) { return sink_for(head); }),
      started_at_(monotonic_now()),
      socket_path_(fmt::format("{}/run/{}.sock", context.options.state_dir, spec_.instance.value())),
      log_pipe_(context.io),
      timer_(context.io),
      kill_timer_(context.io) {}

Instance::~Instance() {
  life_.end();  // a stream that is cut now is nobody's answer
  server_.close();
  ::unlink(socket_path_.c_str());
  if (init_.uid) context_.options.uids->give_back(*init_.uid);
}

Result<UniqueFd> Instance::open() {
  // The program of a container is the user whose files are the image's, which all its instances share.
  if (context_.options.uids && !spec_.container) {
    init_.uid = context_.options.uids->take();
    if (!init_.uid) {
      return fail(Errc::kResourceExhausted,
                  "all {} users for instances are taken: give more of them with the setting instance-uids",
                  context_.options.uids->taken());
    }
  }
  Result<UniqueFd> listener = listen_on_unix(socket_path_, SOCK_STREAM, kSocketBacklog);
  if (!listener) return listener;
  if (auto status = server_.adopt_listener(listener->release()); !status) return fail(status.error());
  int pipe_fds[2];
  if (::pipe2(pipe_fds, O_CLOEXEC) != 0) return fail(errno_error(errno, "pipe for the function's output"));
  ::fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK);
  log_pipe_.assign(pipe_fds[0]);
  wait_for_log();
  return UniqueFd(pipe_fds[1]);
}

StartOrder Instance::order() const {
  StartOrder order{
      .instance = spec_.instance.value(),
      .environment = sandbox_environment(spec_),
      .binds = {{spec_.code_path, kTaskDir, false, spec_.code_identity}, {socket_path_, kRuntimeSocketPath, true}},
      .memory_limit = spec_.memory_limit,
      .tmp_limit = spec_.tmp_limit,
      .max_processes = spec_.max_processes,
      .uid = init_.uid.value_or(0),
      .secrets = spec_.secrets};
  if (!spec_.egress.asked.is_none()) {
    order.egress_asked = spec_.egress.asked.text();
    order.egress_granted = spec_.egress.granted.text();
  }
  if (spec_.shim) {
    order.binds.push_back({spec_.shim->library, kShimLibraryPath, false});
    order.binds.push_back({spec_.shim->socket, kShimSocketPath, true});
  }
  for (const InstanceSpec::Bind& bind : spec_.binds) {
    order.binds.push_back({bind.source, bind.target, bind.writable, {}, bind.as_owner});
  }
  if (spec_.container) return container_order(std::move(order), *spec_.container, context_.seccomp);
  return order;
}

void Instance::started(std::int64_t pid, UniqueFd pidfd, UniqueFd listener, UniqueFd memory_peak) {
  init_.pid = pid;
  pidfd_ = std::move(pidfd);
  memory_peak_ = std::move(memory_peak);
  if (auto status = server_.adopt_listener(listener.release()); !status) {
    spdlog::error("instance {}: {}", spec_.instance.value(), status.error().message);
    kill_wanted_ = true;
  }
  if (kill_wanted_) kill();
}

void Instance::kill() {
  kill_wanted_ = true;
  if (pidfd_) ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
}

// ---- the Runtime API

void Instance::on_call(net::HttpExchange exchange) {
  net::HttpRequest& request = exchange.request();
  const RuntimeCall call = parse_runtime_call(request.method(), request.target());
  if (const auto sink = request.take_sink()) return on_stream_end(exchange);
  const RuntimeDecision decision = api_.call(call, request.body().size());
  switch (decision.action) {
    case RuntimeAction::kPoll: return on_poll(std::move(exchange), decision.announce);
    case RuntimeAction::kSend: return send_delivery(exchange);
    case RuntimeAction::kInitError: on_init_error(request.take_body()); break;
    case RuntimeAction::kAnswer:
    case RuntimeAction::kFail:
    case RuntimeAction::kTooLarge: on_answer(exchange, decision); break;
    case RuntimeAction::kReply: break;
  }
  reply(exchange, decision.status, decision.body);
}

// An answer in streaming mode goes on to a caller who wants it so as it comes. Where nobody does it is collected, within the bound
// of every other answer.
std::shared_ptr<net::BodySink> Instance::sink_for(net::HttpRequest& head) {
  if (!current_.stream || !is_streaming(head)) return nullptr;
  if (!api_.begin_stream(parse_runtime_call(head.method(), head.target()))) return nullptr;
  current_.stream->begin({.request_id = current_.invocation.request_id,
                          .content_type = head.header("Content-Type"),
                          .delivery = current_.delivery,
                          .version = current_.invocation.version});
  delivered_.first_byte.reset();
  return std::make_shared<StreamSink>(
      current_.stream,
      StreamSink::Owner{.began = life_.guarded([this] { delivered_.first_byte = monotonic_now() - delivered_.at; }),
                        .cut = life_.guarded([this](std::string_view why) { on_stream_cut(why); })});
}

// Its last part is there; trailers say that the function failed after it had begun.
void Instance::on_stream_end(net::HttpExchange& exchange) {
  const RuntimeDecision decision = api_.end_stream();
  const std::string_view error = exchange.request().header(kErrorType);
  Answer answer{.invocation = current_.id, .is_error = !error.empty(), .was_streamed = true};
  if (answer.is_error) {
    answer.content_type = "application/json";
    answer.payload = trailing_error(error, exchange.request().header(kErrorBody));
  }
  finish(std::move(answer));
  reply(exchange, decision.status, decision.body);
}

void Instance::on_stream_cut(std::string_view why) {
  if (!api_.streaming()) return;
  api_.cut_stream();
  finish({.invocation = current_.id,
          .is_error = true,
          .was_streamed = true,
          .failure = {.type = "Function.StreamCut", .text = std::string(why)}});
}

void Instance::finish(Answer answer) {
  if (answer.was_streamed) answer.first_byte = delivered_.first_byte;
  current_.stream.reset();
  // What the function printed before it answered belongs before the END line.
  drain_log(kLogReadBytes);
  end_invocation({});
  context_.events.answered(spec_.instance, std::move(answer));
}

void Instance::on_poll(net::HttpExchange exchange, bool announce) {
  poll_ = std::move(exchange);
  poll_.on_disconnect([this] {
    poll_ = {};
    api_.poll_lost();
  });
  if (function_pid_ == 0) {
    function_pid_ = first_child(init_.pid);
    init_duration_ = monotonic_now() - started_at_;
  }
  if (announce) context_.events.next(spec_.instance);
}

void Instance::deliver(DeliverRequest request) {
  current_ = std::move(request);
  const bool now = api_.deliver(current_.invocation.request_id);
  delivered_.at = monotonic_now();
  log_.start_line(current_.invocation.request_id);
  if (!now) return;
  net::HttpExchange exchange = std::move(poll_);
  send_delivery(exchange);
}

void Instance::send_delivery(net::HttpExchange& exchange) {
  Invocation& invocation = current_.invocation;
  net::HttpResponse response{.status = 200, .headers = {}, .body = std::move(invocation.payload)};
  response.headers.reserve(7);
  response.headers.push_back({"Content-Type", "application/json"});
  response.headers.push_back({"Lambda-Runtime-Aws-Request-Id", invocation.request_id});
  response.headers.push_back({"Lambda-Runtime-Deadline-Ms", std::to_string(current_.deadline_epoch_ms)});
  response.headers.push_back({"Lambda-Runtime-Invoked-Function-Arn", spec_.arn});
  if (!invocation.trace_id.empty()) add_trace(response, invocation.trace_id);
  if (!invocation.client_context.empty()) {
    response.headers.push_back({"Lambda-Runtime-Client-Context", invocation.client_context});
  }
  if (invocation.http) add_http_part(*std::move(invocation.http), response);
  exchange.respond(std::move(response));
}

void Instance::on_answer(net::HttpExchange& exchange, const RuntimeDecision& decision) {
  net::HttpRequest& request = exchange.request();
  Answer answer{.invocation = current_.id,
                .is_error = decision.action != RuntimeAction::kAnswer,
                .content_type = std::string(request.header("Content-Type")),
                .payload = {},
                .failure = {}};
  const std::string_view trailing = is_streaming(request) ? request.header(kErrorType) : std::string_view();
  if (decision.action == RuntimeAction::kAnswer && !trailing.empty()) {  // a stream that nobody wanted as one
    answer.is_error = true;
    answer.content_type = "application/json";
    answer.payload = trailing_error(trailing, request.header(kErrorBody));
  } else if (decision.action == RuntimeAction::kTooLarge) {
    answer.content_type = "application/json";
    answer.payload = too_large_payload(request.body().size());
  } else {
    answer.payload = request.take_body();
  }
  finish(std::move(answer));
}

void Instance::on_init_error(std::string payload) {
  init_error_ = std::move(payload);
  kill_timer_.expires_after(kInitErrorGrace);
  kill_timer_.async_wait(life_.on_success([this] { kill(); }));
}

void Instance::end_invocation(std::string_view failure) {
  log_.end_lines({.request_id = current_.invocation.request_id,
                  .duration = monotonic_now() - delivered_.at,
                  .init_duration = std::exchange(init_duration_, Duration(0)),
                  .memory_limit = spec_.memory_limit,
                  .memory_peak = memory_peak(),
                  .first_byte = std::exchange(delivered_.first_byte, std::nullopt),
                  .failure = failure});
  context_.log_written();
}

Bytes Instance::memory_peak() const {
  std::int64_t bytes = exit_note_.memory_peak;
  char text[32];
  const ssize_t size = memory_peak_ ? ::pread(memory_peak_.get(), text, sizeof text, 0) : 0;
  if (size > 0) std::from_chars(text, text + size, bytes);
  return Bytes(bytes);
}

InstanceStats Instance::stats() const {
  return {.log_tail = std::string(log_.tail()),
          .memory_peak = memory_peak(),
          .pid = function_pid_ != 0 ? function_pid_ : init_.pid,
          .init_pid = init_.pid};
}

// ---- the log

void Instance::wait_for_log() {
  log_pipe_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this, life = life_.watch()](
                                                                             const boost::system::error_code& error) {
    if (error || life.ended() || !drain_log(kLogReadBytes)) return;
    if (log_.taken_this_second(monotonic_now()) < kFloodFactor * context_.options.log_rate_limit.count()) {
      return wait_for_log();
    }
    timer_.expires_after(kFloodPause);
    timer_.async_wait([this, life](const boost::system::error_code& stopped) {
      if (!stopped && !life.ended()) wait_for_log();
    });
  });
}

// Reads at most about `limit` bytes. False at the end of the output.
bool Instance::drain_log(std::size_t limit) {
  char buffer[16 << 10];
  for (std::size_t total = 0; total < limit;) {
    const ssize_t size = ::read(log_pipe_.native_handle(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno == EAGAIN;
    if (size == 0) return false;
    log_.output({buffer, static_cast<std::size_t>(size)}, monotonic_now());
    context_.log_written();
    if (static_cast<std::size_t>(size) < sizeof buffer) return true;
    total += static_cast<std::size_t>(size);
  }
  return true;
}

// ---- the end

void Instance::ended(ExitNote note, std::function<void(ExitInfo)> done) {
  if (done_) return;  // the first word counts
  exit_note_ = std::move(note);
  done_ = std::move(done);
  pidfd_.reset();
  timer_.cancel();
  server_.stop_listening();
  finish_when_drained(kDrainTries);
}

// Nobody tells of its end any more: its pidfd does. Init ends after all other processes of its pid namespace.
void Instance::lost(ExitNote note, std::function<void(ExitInfo)> done) {
  if (!pidfd_ || done_) return ended(std::move(note), std::move(done));
  kill();
  timer_.cancel();
  kill_timer_.expires_after(kLostPatience);
  // Shared by the two waits below: the first to end closes it.
  const auto end = std::make_shared<boost::asio::posix::stream_descriptor>(context_.io, pidfd_.release());
  const auto gone = [this, end, note = std::move(note), done = std::move(done),
                     life = life_.watch()](const boost::system::error_code&) {
    if (life.ended() || !end->is_open()) return;
    end->close();
    kill_timer_.cancel();
    ended(note, done);
  };
  end->async_wait(boost::asio::posix::stream_descriptor::wait_read, gone);
  kill_timer_.async_wait([this, end, gone, life = life_.watch()](const boost::system::error_code& error) {
    // What the kernel does not end now may end at any time: nobody else becomes its user.
    if (!error && !life.ended() && end->is_open()) init_.uid.reset();
    gone(error);
  });
}

void Instance::finish_when_drained(int tries) {
  timer_.expires_after(tries == kDrainTries ? Duration(0) : Duration(kDrainInterval));
  timer_.async_wait(life_.on_success([this, tries] {
    if (server_.connections() > 0 && tries > 0) return finish_when_drained(tries - 1);
    drain_log(2 * kLogReadBytes);
    const ExitInfo info = exit_info();
    if (api_.running()) end_invocation(info.reason);
    log_.close();
    context_.log_written();
    std::function<void(ExitInfo)> done = std::move(done_);
    done(info);
  }));
}

ExitInfo Instance::exit_info() const {
  ExitInfo info;
  const int status = static_cast<int>(exit_note_.wait_status);
  if (exit_note_.ended && WIFEXITED(status)) info.exit_status = WEXITSTATUS(status);
  // Killed with its init, or never started: the kernel's signal or ours.
  if (!info.exit_status) info.signal = exit_note_.ended && WIFSIGNALED(status) ? WTERMSIG(status) : SIGKILL;
  info.reason = reason_of(exit_note_, info.exit_status, info.signal);
  info.init_error_payload = init_error_;
  info.is_nodes_fault = exit_note_.is_nodes_fault;
  return info;
}

}  // namespace fairlead
