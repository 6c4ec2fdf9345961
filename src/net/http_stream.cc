#include "net/http_stream.h"

#include "base/mutex.h"

namespace fairlead::net {

// What both ends share.
class BodyPipe {
 public:
  using Next = BodyStream::Next;

  explicit BodyPipe(std::size_t limit) : limit_(limit) {}

  BodyWrite write(std::string_view bytes) {
    const MutexLock lock(mutex_);
    if (is_closed_ || end_ != Next::kNothing) return BodyWrite::kGone;
    if (bytes.size() > limit_ - held()) {
      was_refused_ = true;
      return BodyWrite::kFull;
    }
    waiting_.append(bytes);
    if (!bytes.empty()) wake_reader();
    return BodyWrite::kTaken;
  }

  std::size_t room() const {
    const MutexLock lock(mutex_);
    return limit_ - held();
  }

  std::size_t limit() const { return limit_; }

  bool is_closed() const {
    const MutexLock lock(mutex_);
    return is_closed_;
  }

  bool is_ended() const {
    const MutexLock lock(mutex_);
    return end_ != Next::kNothing;
  }

  void end(Next end) {
    const MutexLock lock(mutex_);
    if (is_closed_ || end_ != Next::kNothing) return;
    end_ = end;
    wake_reader();
  }

  void set_changed(std::function<void()> callback) { changed_ = std::move(callback); }

  void connect(std::function<void()> wake) {
    const MutexLock lock(mutex_);
    if (!is_closed_) wake_ = std::move(wake);
  }

  Next take(std::string& part) {
    bool has_grown = false;
    const Next next = take_waiting(part, has_grown);
    if (has_grown && changed_) changed_();
    return next;
  }

  // What the callback holds goes with it, and not under the lock: it may be the writer.
  void close() {
    std::function<void()> wake;
    const MutexLock lock(mutex_);
    is_closed_ = true;
    waiting_ = std::string();
    in_flight_ = 0;
    wake.swap(wake_);
  }

  void tell_writer() {
    if (const auto changed = std::exchange(changed_, nullptr)) changed();
  }

 private:
  std::size_t held() const FL_REQUIRES(mutex_) { return waiting_.size() + in_flight_; }

  void wake_reader() FL_REQUIRES(mutex_) {
    if (std::exchange(is_asleep_, false) && wake_) wake_();
  }

  Next take_waiting(std::string& part, bool& has_grown) {
    const MutexLock lock(mutex_);
    in_flight_ = 0;
    part.clear();
    if (waiting_.empty() && end_ == Next::kNothing) is_asleep_ = true;
    const bool is_part = !waiting_.empty();  // what was written before a cut is sent before it
    has_grown = was_refused_ && waiting_.size() <= limit_ / 2;
    if (has_grown) was_refused_ = false;
    if (!is_part) return end_;
    in_flight_ = waiting_.size();
    part.swap(waiting_);
    return Next::kPart;
  }

  const std::size_t limit_;
  // The reader's thread's, once the body was handed over.
  std::function<void()> changed_;

  mutable Mutex mutex_;
  std::string waiting_ FL_GUARDED_BY(mutex_);
  std::size_t in_flight_ FL_GUARDED_BY(mutex_) = 0;  // bytes that were taken and are not sent yet
  Next end_ FL_GUARDED_BY(mutex_) = Next::kNothing;  // kEnd or kCut once the writer said so
  bool is_closed_ FL_GUARDED_BY(mutex_) = false;
  bool is_asleep_ FL_GUARDED_BY(mutex_) = false;    // the reader found nothing and wants to be woken
  bool was_refused_ FL_GUARDED_BY(mutex_) = false;  // a write, and the writer has not heard of room since
  std::function<void()> wake_ FL_GUARDED_BY(mutex_);
};

// ---- BodyWriter

BodyWriter& BodyWriter::operator=(BodyWriter&& other) noexcept {
  if (this != &other) {
    if (pipe_) pipe_->end(BodyStream::Next::kCut);
    pipe_ = std::move(other.pipe_);
  }
  return *this;
}

BodyWriter::~BodyWriter() {
  if (pipe_) pipe_->end(BodyStream::Next::kCut);
}

BodyWrite BodyWriter::write(std::string_view bytes) {
  return pipe_->write(bytes);
}
std::size_t BodyWriter::room() const {
  return pipe_->room();
}
bool BodyWriter::is_gone() const {
  return pipe_->is_closed();
}
void BodyWriter::finish() {
  pipe_->end(BodyStream::Next::kEnd);
}
void BodyWriter::on_change(std::function<void()> callback) {
  pipe_->set_changed(std::move(callback));
}

// ---- BodyStream

BodyStream::~BodyStream() {
  if (pipe_->is_closed()) {
    pipe_->set_changed(nullptr);  // which may hold the writer, and the writer the pipe
  } else {
    pipe_->close();
    pipe_->tell_writer();
  }
}

void BodyStream::connect(std::function<void()> wake) {
  pipe_->connect(std::move(wake));
}
BodyStream::Next BodyStream::take(std::string& part) {
  return pipe_->take(part);
}
bool BodyStream::is_ended() const {
  return pipe_->is_ended();
}
std::size_t BodyStream::limit() const {
  return pipe_->limit();
}
void BodyStream::close() {
  pipe_->close();
}
void BodyStream::tell_writer() {
  pipe_->tell_writer();
}

std::pair<BodyWriter, std::shared_ptr<BodyStream>> make_body_stream(std::size_t limit) {
  auto pipe = std::make_shared<BodyPipe>(limit);
  auto body = std::make_shared<BodyStream>(pipe);
  return {BodyWriter(std::move(pipe)), std::move(body)};
}

}  // namespace fairlead::net
