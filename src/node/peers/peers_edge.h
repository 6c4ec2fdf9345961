// What nodes ask of each other (/fairlead/v1/peers/...), and what people ask of the cluster (/fairlead/v1/cluster).
#pragma once

#include <string>

#include "edge/edge.h"
#include "node/peers/cluster_node.h"

namespace fairlead {

// POST /fairlead/v1/peers/{hello,word,call,versions,function,changed,object}: sealed (peer_seal.h), whoever the connection is from. GET
// /fairlead/v1/cluster:
// for operators and readers of all. `cluster` outlives the handlers.
Edge peers_edge(ClusterNode& cluster);

// Of metrics: fairlead_peer_*.
std::string peer_metrics(ClusterNode& cluster);

// Who is to hold the body of a request that arrives: a peer, for its own paths. "": it is for others to say.
std::string peer_that_sends(ClusterNode& cluster, const net::HttpRequest& head);

}  // namespace fairlead
