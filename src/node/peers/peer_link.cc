#include "node/peers/peer_link.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/clock.h"
#include "base/digest.h"
#include "identity/hmac.h"
#include "node/peers/fields.h"
#include "node/peers/peer_messages.h"

namespace fairlead {
namespace {

constexpr const char* kHelloTarget = "/fairlead/v1/peers/hello";
constexpr unsigned kUnauthorized = 401;

}  // namespace

PeerLink::PeerLink(boost::asio::io_context& io, net::Endpoint endpoint, const net::TlsTrust* trust,
                   const PeerSeal& seal, PeerLinkOptions options, Greeted greeted)
    : io_(io),
      endpoint_(std::move(endpoint)),
      trust_(trust),
      seal_(seal),
      options_(std::move(options)),
      greeted_(std::move(greeted)) {}

PeerLink::~PeerLink() {
  for (const LinePtr& line : lines_) line->channel->close();
}

Result<PeerLink::LinePtr> PeerLink::idle_line() {
  const Instant now = monotonic_now();
  std::vector<LinePtr> stale;
  LinePtr found;
  for (const LinePtr& line : lines_) {
    if (line->done) continue;
    if (now - line->used_at > options_.idle || !line->channel->is_connected() || !line->channel->is_usable()) {
      stale.push_back(line);
    } else if (!found) {
      found = line;
    }
  }
  for (const LinePtr& line : stale) remove(line);
  if (found) return found;
  if (lines_.size() >= options_.most_connections) {
    return fail(Errc::kResourceExhausted, "{}: {} requests are under way to this peer, more are not sent",
                endpoint_.text, lines_.size());
  }
  if (!address_) return fail(Errc::kUnavailable, "{}: the host's address is not known yet", endpoint_.text);
  auto line = std::make_shared<Line>();
  line->channel =
      net::HttpChannel::create(io_, endpoint_, *address_, trust_, {.response_bytes = options_.response_bytes});
  lines_.push_back(line);
  return line;
}

std::function<void()> PeerLink::send(Request request, Done done) {
  auto line = idle_line();
  if (!line) {
    boost::asio::post(io_, [done = std::move(done), error = line.error()] { done(fail(error)); });
    return [] {};
  }
  (*line)->done = std::move(done);
  (*line)->serial = ++last_serial_;
  ++busy_;
  begin(*line, std::make_shared<Request>(std::move(request)), false);
  return [this, held = std::weak_ptr<Line>(*line), serial = (*line)->serial] {
    const LinePtr at = held.lock();
    if (!at || !at->done || at->serial != serial) return;
    at->done = nullptr;
    --busy_;
    remove(at);
  };
}

void PeerLink::begin(const LinePtr& line, std::shared_ptr<Request> request, bool is_second) {
  if (line->session.empty()) return say_hello(line, std::move(request), is_second);
  ++line->number;
  net::ClientRequest http{.method = "POST", .target = request->target};
  http.headers.push_back({kPeerHeader, line->session + " " + std::to_string(line->number) + " " +
                                           seal_.request(line->session, line->number, request->target, request->head)});
  http.headers.push_back({"X-Fairlead-Head", std::to_string(request->head.size())});
  http.body = request->body;
  line->channel->send(
      std::move(http), request->head, request->patience,
      [this, line, request, is_second](Result<net::ClientResponse> answer) {
        const bool is_unknown = answer && answer->status == kUnauthorized;
        if (!is_unknown || is_second) return finish(line, std::move(answer));
        // The other side started anew, or forgot the session: it did nothing.
        line->session.clear();
        line->number = 0;
        line->channel->close();
        begin(line, request, true);
      },
      request->taker);
}

void PeerLink::say_hello(const LinePtr& line, std::shared_ptr<Request> request, bool is_second) {
  const std::string nonce = random_token();
  net::ClientRequest http{.method = "POST", .target = kHelloTarget};
  http.body = FieldWriter()
                  .text('n', options_.own_name)
                  .text('o', nonce)
                  .text('u', options_.advertised)
                  .text('s', seal_.hello(options_.own_name, nonce, options_.advertised))
                  .take();
  line->channel->send(std::move(http), "", options_.hello_patience,
                      [this, line, request, is_second, nonce](Result<net::ClientResponse> answer) {
                        // Nothing of the request was sent yet, whatever went wrong here.
                        if (!answer) return finish(line, fail(Errc::kUnavailable, "{}", answer.error().message));
                        if (Status welcome = read_welcome(*line, nonce, *answer); !welcome) {
                          line->channel->close();
                          return finish(line, fail(welcome.error()));
                        }
                        begin(line, request, is_second);
                      });
}

Status PeerLink::read_welcome(Line& line, const std::string& nonce, const net::ClientResponse& answer) {
  if (answer.status != 200) {
    const Error error = read_error(answer.body);
    if (error.code == Errc::kCorrupt) {
      return fail(Errc::kUnavailable, "{}: answers {} to a hello; is it a node of a cluster, with --cluster-key?",
                  endpoint_.text, answer.status);
    }
    return fail(error.code, "{}: {}", endpoint_.text, error.message);
  }
  const auto fields = Fields::parse(answer.body);
  if (!fields) return fail(Errc::kUnavailable, "{}: {}", endpoint_.text, fields.error().message);
  const PeerGreeting greeting{std::string(fields->text('n')), std::string(fields->text('b'))};
  const std::string_view session = fields->text('i');
  const std::string expected =
      seal_.welcome({.from = greeting.name, .to = options_.own_name, .nonce = nonce, .session = session});
  if (session.empty() || !identity::are_equal(expected, fields->text('s'))) {
    return fail(Errc::kUnauthenticated, "{}: whoever answers there does not have this cluster's key", endpoint_.text);
  }
  if (Status taken = greeted_(greeting); !taken) return taken;
  line.session = std::string(session);
  line.number = 0;
  return {};
}

void PeerLink::finish(const LinePtr& line, Result<net::ClientResponse> answer) {
  const Done done = std::exchange(line->done, nullptr);
  if (!done) return;
  --busy_;
  line->used_at = monotonic_now();
  if (!answer || !line->channel->is_connected() || line->session.empty()) remove(line);
  done(std::move(answer));
}

void PeerLink::remove(const LinePtr& line) {
  line->channel->close();
  lines_.erase(std::remove(lines_.begin(), lines_.end(), LinePtr(line)), lines_.end());
}

void PeerLink::drop(const Error& error) {
  std::vector<Done> ended;
  for (const LinePtr& line : lines_) {
    line->channel->close();
    if (line->done) ended.push_back(std::move(line->done));
  }
  lines_.clear();
  busy_ = 0;
  for (const Done& done : ended) done(fail(error));
}

}  // namespace fairlead
