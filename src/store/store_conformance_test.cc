// SQLite as every engine of Store is.
#include "store/testing/store_conformance.h"

namespace fairlead {
namespace {

const StoreEngine kSqlite{.name = "SQLite", .open = [](boost::asio::io_context& io, const std::string& folder) {
                            return Store::open(io, folder);
                          }};
INSTANTIATE_TEST_SUITE_P(Engines, StoreConformance, testing::Values(kSqlite), name_of_engine);

}  // namespace
}  // namespace fairlead
