#include "node/traces/span_exporter.h"

#include <sodium.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "base/give_way.h"
#include "base/log.h"
#include "base/mutex.h"
#include "node/traces/export_policy.h"

namespace fairlead {

using boost::system::error_code;

Result<Collector> parse_collector(const std::string& url) {
  std::string address = url, path;
  const std::size_t scheme = url.find("://");
  if (scheme != std::string::npos) {
    const std::size_t slash = std::min(url.find('/', scheme + 3), url.size());
    address = url.substr(0, slash);
    path = url.substr(slash);
  }
  if (path.find_first_of(" \t\r\n#") != std::string::npos) {
    return fail(Errc::kInvalidArgument, "'{}': the path has a blank or a '#'", url.substr(0, 256));
  }
  auto endpoint = net::parse_endpoint(address);
  if (!endpoint) return fail(endpoint.error());
  const bool has_none = path.empty() || path == "/";
  return Collector{*std::move(endpoint), has_none ? "/v1/traces" : path};
}

namespace {

constexpr std::size_t kMostAnswerBytes = 64 << 10;

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  randombytes_buf(&seed, sizeof seed);
  return seed;
}

// What the collector says of a batch that it took. Not read: what is no such answer.
std::uint64_t rejected_spans(const std::string& body) {
  const auto answer = nlohmann::json::parse(body, nullptr, false);
  if (!answer.is_object()) return 0;
  const auto partial = answer.find("partialSuccess");
  if (partial == answer.end() || !partial->is_object()) return 0;
  const auto count = partial->find("rejectedSpans");
  if (count == partial->end()) return 0;
  if (count->is_number_unsigned()) return count->get<std::uint64_t>();
  return count->is_string() ? std::strtoull(count->get<std::string>().c_str(), nullptr, 10) : 0;
}

// Of the batch that is under way. Its requests keep their places until it is over: what waits is bounded with it.
struct Batch {
  std::vector<TracedRequest> requests;
  std::string body;
  unsigned attempts = 0;
};

}  // namespace

class SpanExporter::Sender {
 public:
  Sender(SpanExporterOptions options, std::optional<net::TlsTrust> trust)
      : options_(std::move(options)), trust_(std::move(trust)), rng_(random_seed()), thread_([this] { run(); }) {}

  ~Sender() {
    boost::asio::post(io_, [this] { end(); });
    thread_.join();
  }

  void push(TracedRequest request) {
    bool is_batch = false;
    {
      const MutexLock lock(mutex_);
      if (!places_.take(request.request.tenant)) {
        ++counters_.dropped_full;
        return;
      }
      waiting_.push_back(std::move(request));
      is_batch = waiting_.size() % kTraceBatch == 0;
    }
    if (is_batch) boost::asio::post(io_, [this] { send_next(); });
  }

  Counters counters() const {
    const MutexLock lock(mutex_);
    return counters_;
  }

 private:
  void run() {
    give_way();  // to the thread that serves calls, where processors are short
    tick();
    const auto work = boost::asio::make_work_guard(io_);
    io_.run();
  }

  void tick() {
    timers_.tick.expires_after(options_.period);
    timers_.tick.async_wait([this](error_code error) {
      if (error) return;
      send_next();
      tick();
    });
  }

  std::vector<TracedRequest> take() {
    const MutexLock lock(mutex_);
    std::vector<TracedRequest> taken;
    while (!waiting_.empty() && taken.size() < kTraceBatch) {
      taken.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    return taken;
  }

  void send_next() {
    if (batch_) return;
    std::vector<TracedRequest> requests = take();
    if (requests.empty()) {
      if (is_ending_) io_.stop();
      return;
    }
    batch_.emplace();
    batch_->body = otlp_json(options_.resource, requests, rng_);
    batch_->requests = std::move(requests);
    send();
  }

  void send() {
    ++batch_->attempts;
    if (channel_) return post();
    if (const auto literal = net::parse_socket_address(options_.endpoint.authority)) return connect(*literal);
    const std::string& authority = options_.endpoint.authority;
    resolver_.ask(options_.endpoint.host, authority.substr(authority.rfind(':') + 1),
                  [this](const Result<std::vector<net::SocketAddress>>& found) {
                    if (!found) return unanswered(found.error());
                    connect(found->front());
                  });
  }

  void connect(const net::SocketAddress& address) {
    channel_ = net::HttpChannel::create(io_, options_.endpoint, address, trust_ ? &*trust_ : nullptr,
                                        {.response_bytes = kMostAnswerBytes});
    post();
  }

  void post() {
    net::ClientRequest request{.method = "POST", .target = options_.target};
    request.headers = {{"Content-Type", "application/json"}, {"User-Agent", "fairlead"}};
    channel_->send(std::move(request), batch_->body, options_.patience, [this](Result<net::ClientResponse> answer) {
      if (!answer) return unanswered(answer.error());
      answered(*answer);
    });
  }

  void unanswered(const Error& error) {
    channel_.reset();  // and resolve its name anew
    note(error.message);
    go_on(judge_silence(batch_->attempts), "");
  }

  void answered(const net::ClientResponse& answer) {
    const ExportVerdict verdict = judge_export(answer.status, batch_->attempts);
    if (verdict != ExportVerdict::kTaken) {
      note(fmt::format("{} answers {}", options_.endpoint.text, answer.status));
      return go_on(verdict, answer.header("Retry-After"));
    }
    if (std::exchange(is_failing_, false)) spdlog::info("traces: {} takes them again", options_.endpoint.text);
    const std::uint64_t rejected = rejected_spans(answer.body);
    if (rejected > 0) spdlog::debug("traces: {} rejects {} spans", options_.endpoint.text, rejected);
    finish(&Counters::exported, rejected);
  }

  void go_on(ExportVerdict verdict, std::string_view retry_after) {
    if (verdict == ExportVerdict::kDropped || is_ending_) return finish(&Counters::dropped_by_collector, 0);
    timers_.pause.expires_after(export_pause(batch_->attempts, retry_after));
    timers_.pause.async_wait([this](error_code error) {
      if (!error) send();
    });
  }

  void finish(std::uint64_t Counters::*as, std::uint64_t rejected) {
    {
      const MutexLock lock(mutex_);
      counters_.*as += batch_->requests.size();
      counters_.rejected_spans += rejected;
      for (const TracedRequest& request : batch_->requests) places_.give_back(request.request.tenant);
    }
    batch_.reset();
    if (is_ending_ || is_full()) boost::asio::post(io_, [this] { send_next(); });
  }

  bool is_full() const {
    const MutexLock lock(mutex_);
    return waiting_.size() >= kTraceBatch;
  }

  // Once, until it is well again: a collector that is away for a day is one line.
  void note(const std::string& what) {
    if (std::exchange(is_failing_, true)) return;
    spdlog::warn("traces: {}; they are tried again and then dropped, and callers notice nothing", what);
  }

  void end() {
    is_ending_ = true;
    timers_.tick.cancel();
    timers_.end.expires_after(options_.last_patience);
    timers_.end.async_wait([this](error_code) { io_.stop(); });
    const bool pauses = timers_.pause.cancel() > 0;
    if (pauses) return send();  // once more
    send_next();
  }

  const SpanExporterOptions options_;
  const std::optional<net::TlsTrust> trust_;

  mutable Mutex mutex_;
  std::deque<TracedRequest> waiting_ FL_GUARDED_BY(mutex_);
  TracePlaces places_ FL_GUARDED_BY(mutex_);
  Counters counters_ FL_GUARDED_BY(mutex_);

  // The thread's own.
  Rng rng_;
  boost::asio::io_context io_{1};
  struct {
    boost::asio::steady_timer tick, pause, end;
  } timers_{boost::asio::steady_timer(io_), boost::asio::steady_timer(io_), boost::asio::steady_timer(io_)};
  net::HostResolver resolver_{io_, options_.look_up};
  std::shared_ptr<net::HttpChannel> channel_;  // null: it is to be connected. Shared with its own handlers
  std::optional<Batch> batch_;
  bool is_failing_ = false, is_ending_ = false;

  std::thread thread_;  // last: it uses all of them
};

SpanExporter::SpanExporter(std::unique_ptr<Sender> sender) : sender_(std::move(sender)) {}
SpanExporter::~SpanExporter() = default;

Result<std::unique_ptr<SpanExporter>> SpanExporter::create(SpanExporterOptions options) {
  std::optional<net::TlsTrust> trust;
  if (options.endpoint.speaks_tls) {
    auto loaded = net::TlsTrust::load({});
    if (!loaded) return fail(loaded.error());
    trust = *std::move(loaded);
  }
  return std::unique_ptr<SpanExporter>(
      new SpanExporter(std::make_unique<Sender>(std::move(options), std::move(trust))));
}

void SpanExporter::push(TracedRequest request) {
  sender_->push(std::move(request));
}

SpanExporter::Counters SpanExporter::counters() const {
  return sender_->counters();
}

}  // namespace fairlead
