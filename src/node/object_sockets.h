// The data layer inside sandboxes: for every tenant a Unix socket that speaks the objects' HTTP API for that tenant only,
// and the folder of its sealed objects, read only, to be mapped without a copy. Both are bound into the sandboxes of the
// tenant's functions, where $FAIRLEAD_OBJECTS names them:
//
//   $FAIRLEAD_OBJECTS/socket             GET, PUT, DELETE, lists: docs/how-to/objects.md
//   $FAIRLEAD_OBJECTS/content/<digest>   what GET ?info names as path
//
// Functions are on the other side: bodies that are no object and answers that they do not take count as their tenant's, in one budget of
// all these doors, and a door has so many connections. What is uploaded is in the store's memory, under its quota.
//
// Threads: everything on the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <string>

#include "base/byte_budget.h"
#include "base/result.h"
#include "net/http_server.h"
#include "runtime/instance_host.h"
#include "store/object_store.h"

namespace fairlead {

class ObjectSockets {
 public:
  // `io` and `objects` must outlive it. Sockets are made in `dir`.
  ObjectSockets(boost::asio::io_context& io, ObjectStore& objects, std::string dir);
  ~ObjectSockets();

  // Adds the binds and the variable to what a sandbox of this tenant gets.
  Status offer(const std::string& tenant, InstanceSpec& spec);

 private:
  struct Door;

  Result<Door*> door_of(const std::string& tenant);

  boost::asio::io_context& io_;
  ObjectStore& objects_;
  const std::string dir_;
  const std::shared_ptr<ByteBudget> budget_;
  std::map<std::string, std::unique_ptr<Door>> doors_;  // by tenant
};

}  // namespace fairlead
