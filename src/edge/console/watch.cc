#include "edge/console/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "edge/console/live_items.h"
#include "edge/error_document.h"

namespace fairlead {
namespace {

// The id is the client's: what is of no view that is kept means that it has seen nothing.
std::uint64_t frame_seen(const net::HttpRequest& request, std::string_view view_id) {
  std::string_view id = request.header("Last-Event-ID");
  if (!id.starts_with(view_id) || !id.substr(view_id.size()).starts_with('-')) return 0;
  id.remove_prefix(view_id.size() + 1);
  std::uint64_t frame = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), frame);
  return error == std::errc() && end == id.data() + id.size() ? frame : 0;
}

}  // namespace

Watch::Watch(boost::asio::io_context& io, NodeService& node, WatchOptions options)
    : node_(node), options_(std::move(options)), ticker_(io, options_.period, [this] { return tick(); }) {}

Status Watch::check_room(const Principal& who) const {
  const auto of_tenants = std::count_if(viewers_.begin(), viewers_.end(),
                                        [](const Viewer& viewer) { return viewer.who.tenant.has_value(); });
  const auto of_this_one = std::count_if(viewers_.begin(), viewers_.end(), [&](const Viewer& viewer) {
    return viewer.who.tenant && viewer.who.tenant == who.tenant;
  });
  if (viewers_.size() >= kMostViewers)
    return fail(Errc::kResourceExhausted, "{} watch, which is the most; close one, or ask for /fairlead/v1/status",
                viewers_.size());
  if (who.tenant && of_this_one >= static_cast<std::ptrdiff_t>(kMostOfTenant))
    return fail(Errc::kResourceExhausted, "{} of tenant '{}' watch, which is the most of one tenant; close one",
                of_this_one, *who.tenant);
  if (who.tenant && of_tenants >= static_cast<std::ptrdiff_t>(kMostOfTenants))
    return fail(Errc::kResourceExhausted, "{} of tenants watch, which is the most; try again later", of_tenants);
  return {};
}

void Watch::open(RouteCall call) {
  leave_gone();
  if (Status room = check_room(call.principal); !room) return respond_error(std::move(call.exchange), room.error());
  const Instant now = options_.clock();
  Shown& shown = shown_to(call.principal.tenant);
  shown.watched = now;
  if (shown.view.frame() == 0 || now >= next_look_) refresh();
  net::EventStream stream = net::make_event_stream(kViewerBytes);
  Viewer viewer{std::move(stream.writer), call.principal, frame_seen(call.exchange.request(), shown.id), now, now};
  if (!send(viewer)) {
    return respond_error(std::move(call.exchange),
                         Error{Errc::kTooLarge, fmt::format("what there is to show is larger than {} bytes; ask for "
                                                            "/fairlead/v1/status",
                                                            kViewerBytes)});
  }
  viewers_.push_back(std::move(viewer));
  call.exchange.respond(std::move(stream.answer));
  ticker_.start();
}

bool Watch::tick() {
  if (options_.clock() >= next_look_) look();
  leave_gone();
  if (viewers_.empty()) events_.clear();
  return !viewers_.empty();
}

void Watch::look() {
  leave_gone();
  if (viewers_.empty()) return;
  refresh();
  const Instant now = options_.clock();
  std::erase_if(viewers_, [&](Viewer& viewer) {
    if (now - viewer.since < kStreamLife && options_.is_known(viewer.who) && send(viewer)) return false;
    viewer.writer.body().finish();  // it may come back, and is let in or told why not
    return true;
  });
}

// One look at the node for all.
void Watch::refresh() {
  const Instant began = options_.clock();
  events_.clear();
  for (const Viewer& viewer : viewers_) shown_.at(viewer.who.tenant).watched = began;
  std::erase_if(shown_, [&](const auto& one) { return began - one.second.watched > kKeptFor; });
  const NodeStatus status = node_.status();
  const LiveSource source{status, [this](const std::string& function) -> std::optional<int> {
                            const auto record = node_.get_function(function);
                            return record ? record->reserved_concurrency : std::nullopt;
                          }};
  for (auto& [audience, shown] : shown_) {
    if (shown.watched == began || shown.view.frame() == 0) shown.view.update(live_items(source, audience));
  }
  next_look_ = began + std::max(options_.period, (options_.clock() - began) * kShare);
}

Watch::Shown& Watch::shown_to(const Audience& audience) {
  const auto [shown, is_new] = shown_.try_emplace(audience);
  if (is_new) shown->second.id = fmt::format("{}.{}", options_.run, ++views_);
  return shown->second;
}

// False: it will never fit.
bool Watch::send(Viewer& viewer) {
  const LiveView& view = shown_.at(viewer.who.tenant).view;
  net::BodyWriter& body = viewer.writer.body();
  if (body.room() < kViewerBytes) return true;  // it has not taken what it was sent
  const Instant now = options_.clock();
  if (viewer.seen == view.frame()) {
    if (now - viewer.heard < kQuiet) return true;
    viewer.heard = now;
    return viewer.writer.comment() != net::BodyWrite::kFull;
  }
  const net::BodyWrite written = viewer.writer.send_text(event_since(viewer.who.tenant, viewer.seen));
  viewer.seen = view.frame();
  viewer.heard = now;
  return written != net::BodyWrite::kFull;
}

const std::string& Watch::event_since(const Audience& audience, std::uint64_t seen) {
  // Who comes back often names another frame each time.
  if (events_.size() >= kMostViewers && !events_.contains({audience, seen})) events_.clear();
  const auto [event, is_new] = events_.try_emplace({audience, seen});
  if (!is_new) return event->second;
  const Shown& shown = shown_.at(audience);
  const std::string id = fmt::format("{}-{}", shown.id, shown.view.frame());
  event->second = net::event_text({.name = "frame", .id = id, .data = shown.view.text_since(seen)}).value();
  return event->second;
}

void Watch::leave_gone() {
  std::erase_if(viewers_, [](Viewer& viewer) { return viewer.writer.body().is_gone(); });
}

}  // namespace fairlead
