// An object that is written while its bytes arrive: straight into the shared memory that it will be read from, so that a large
// one is in memory once. Until it is sealed it is pending, as one that a local client creates and maps.
//
// Threads: the io_context's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/body_sink.h"
#include "store/object_store.h"

namespace fairlead {

class ObjectUpload : public net::BodySink, public std::enable_shared_from_this<ObjectUpload> {
 public:
  // Asks for memory; `objects` must outlive it. Where that is refused, or a write fails, the bytes are let go by and finish() says why.
  static std::shared_ptr<ObjectUpload> begin(ObjectStore& objects, ObjectName name, Bytes bytes,
                                             std::optional<Duration> lifetime);
  ~ObjectUpload() override;  // not finished: the object is abandoned, and who waits for it is told

  void append(std::string_view bytes) override;
  bool is_full() const override { return !memory_ && !failure_ && !early_.empty(); }

  // All bytes have come. Once.
  void finish(ObjectStore::Callback<ObjectInfo> done);

 private:
  ObjectUpload(ObjectStore& objects, ObjectName name) : objects_(objects), name_(std::move(name)) {}

  bool is_ours() const;
  void on_memory(Result<UniqueFd> memory);
  void write(std::string_view bytes);
  void seal();

  ObjectStore& objects_;
  const ObjectName name_;
  std::string path_;   // of the memory
  UniqueFd memory_;    // from on_memory() until it is sealed or a write failed
  std::string early_;  // what came before
  std::optional<Error> failure_;
  ObjectStore::Callback<ObjectInfo> done_;
};

}  // namespace fairlead
