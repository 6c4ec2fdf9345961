// In place of the PostgreSQL engine where there was no libpq when this program was configured.
#include "store/shared_store.h"

namespace fairlead {

Result<std::unique_ptr<SharedStore>> open_postgres_store(boost::asio::io_context&, const std::string&,
                                                         const PostgresOptions&) {
  return fail(
      Errc::kUnavailable,
      "--store needs PostgreSQL's client library, which this program was built without: install libpq-dev, then "
      "configure and build again");
}

}  // namespace fairlead
