// Takes the body of an answer as it comes, where a client does not want it whole: see HttpChannel::send.
//
// Threads: the channel's.
#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "net/http_client.h"

namespace fairlead::net {

class BodyTaker {
 public:
  virtual ~BodyTaker() = default;

  // Of the answer with this head, once its first bytes are there. False: its body is collected in the answer, as ever.
  virtual bool wants(const ClientResponse& head) = 0;
  // The next bytes, all of which are taken. False: no more for now; the connection is not read until resume().
  virtual bool take(std::string_view bytes) = 0;

  // The connection is read again, where it waits for that. At any time, also when the answer is over.
  void resume() const {
    if (resume_) resume_();
  }
  void on_resume(std::function<void()> resume) { resume_ = std::move(resume); }  // the channel's

 private:
  std::function<void()> resume_;
};

}  // namespace fairlead::net
