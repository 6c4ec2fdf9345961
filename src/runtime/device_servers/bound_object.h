// An object that a session or a call has bound to a buffer: where its bytes come from, and what the server calls it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "runtime/device_servers/object_source.h"
#include "runtime/device_servers/server_table.h"

namespace fairlead {

struct BoundObject {
  std::uint32_t buffer = 0;
  ObjectKey name;     // where it comes from
  std::string bytes;  // or they are inline
  std::uint64_t object = 0;
  Bytes size{0};
  UniqueFd memory;  // when the server does not have it
};
using BoundPtr = std::shared_ptr<BoundObject>;  // shared with the opening of it, which may outlive the call

// Opens objects of the data layer for servers, and numbers them: equal bytes of one tenant have one number in a server.
//
// Example: A's weights are opened for the server on GPU 1: number 7, and a descriptor of the bytes, which goes with the registration. B, of
// the same tenant, has the same weights: they are known there as 7, and nothing is opened.
//
// Threads: the loop's. Callbacks never come from inside a call of this class.
class ObjectOpener {
 public:
  ObjectOpener(boost::asio::io_context& io, ObjectSource& objects) : io_(io), objects_(objects) {}

  // A number that no object of any server ever had.
  std::uint64_t next_number() { return ++last_; }
  // Whether the server has its bytes, as far as we know: then `bound` has its number.
  bool known(DeviceServer& server, BoundObject& bound);
  // `done`: `bound` has its number, and its memory where the server does not have the bytes; an error where it does not come by
  // then, or has another size than its buffer. Never, where the server is not `handle`'s any more: it is opened once more.
  void open(DeviceServer& server, const ServerTable::Handle& handle, BoundPtr bound, Duration patience,
            std::function<void(Status)> done);

 private:
  boost::asio::io_context& io_;
  ObjectSource& objects_;
  std::uint64_t last_ = 0;
  Lifetime life_;
};

}  // namespace fairlead
