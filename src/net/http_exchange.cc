#include <utility>

#include "net/http_server.h"

namespace fairlead::net {

HttpExchange& HttpExchange::operator=(HttpExchange&& other) noexcept {
  if (this != &other) {
    if (auto abandoned = std::exchange(impl_, std::move(other.impl_))) abandoned->abandon();
  }
  return *this;
}

HttpExchange::~HttpExchange() {
  if (impl_) impl_->abandon();
}

HttpRequest& HttpExchange::request() {
  return impl_->request();
}

void HttpExchange::respond(HttpResponse response) {
  if (auto impl = std::exchange(impl_, nullptr)) impl->respond(std::move(response));
}

void HttpExchange::on_disconnect(std::function<void()> callback) {
  impl_->on_disconnect(std::move(callback));
}

}  // namespace fairlead::net
