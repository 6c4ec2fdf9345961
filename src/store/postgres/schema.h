// The tables in PostgreSQL, in a schema of their own, `fairlead`; how older ones become current.
#pragma once

#include "base/result.h"
#include "store/postgres/connection.h"

namespace fairlead::postgres {

inline constexpr int kSchemaVersion = 2;

// Makes what is missing, one node at a time. kConflict: a newer version made it; kForbidden: the role may not.
Status migrate(Connection& connection);
// A connection to tables that this program knows: each time, since another node may have migrated them meanwhile.
Result<std::unique_ptr<Connection>> open_migrated(const Target& target);

}  // namespace fairlead::postgres
