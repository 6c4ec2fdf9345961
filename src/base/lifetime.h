// Whether an object is still there, for those who will call it back: handlers of sockets and timers, posted jobs, and whoever
// tells somebody of something and may be destroyed by it.
//
//   class Link {
//     void wait() { socket_.async_wait(kRead, life_.on_success([this] { read(); })); }
//     void read() {
//       const Lifetime::Watch life = life_.watch();
//       events_.frame(next());            // may destroy this
//       if (!life.ended()) wait();
//     }
//     Lifetime life_;
//   };
//
// Threads: a watch may be copied, moved and destroyed on any thread. ended() and guarded calls belong to the thread that
// destroys the object: elsewhere the answer may be old by the time it is used.
#pragma once

#include <memory>
#include <utility>

namespace fairlead {

class Lifetime {
  struct Token {};

 public:
  class Watch {
   public:
    Watch() = default;  // of nothing: ended
    bool ended() const { return token_.expired(); }

   private:
    friend class Lifetime;
    explicit Watch(const std::shared_ptr<const Token>& token) : token_(token) {}
    std::weak_ptr<const Token> token_;
  };

  Lifetime() = default;
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;

  Watch watch() const { return Watch(token_); }
  // Ends it before the object does: for a destructor that waits for threads whose jobs post calls back.
  void end() { token_.reset(); }

  // A call that does nothing once the object is gone.
  template <typename F>
  auto guarded(F call) const {
    return [life = watch(), call = std::move(call)](auto&&... arguments) mutable {
      if (!life.ended()) call(std::forward<decltype(arguments)>(arguments)...);
    };
  }

  // A handler of Asio's, of what comes after the error code: nothing on an error, nor once the object is gone.
  template <typename F>
  auto on_success(F call) const {
    return [life = watch(), call = std::move(call)](const auto& error, auto&&... arguments) mutable {
      if (!error && !life.ended()) call(std::forward<decltype(arguments)>(arguments)...);
    };
  }

 private:
  std::shared_ptr<const Token> token_ = std::make_shared<const Token>();
};

}  // namespace fairlead
