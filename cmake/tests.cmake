# Half of what a build compiles is tests: the headers of their libraries are compiled once for all, and tests are not
# optimised, only what they test is. (At -O1 g++ 12 warns of overflows in std::string's operator+ that are not there.)
# fl_test_program(TARGET): for every program of GoogleTest cases.
if(FAIRLEAD_TESTS)
  file(WRITE ${CMAKE_BINARY_DIR}/test_headers.cc "int main() { return 0; }\n")
  add_executable(fl_test_headers EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/test_headers.cc)
  target_link_libraries(fl_test_headers PRIVATE GTest::gmock nlohmann_json::nlohmann_json fl_rapidcheck)
  target_precompile_headers(fl_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <rapidcheck.h> <rapidcheck/gtest.h>
                            <nlohmann/json.hpp>)
endif()

set(FL_TEST_OPTIONS -O0 -fpch-preprocess)
if(TARGET fl_test_headers)
  target_compile_options(fl_test_headers PRIVATE ${FL_TEST_OPTIONS})
endif()

function(fl_test_program target)
  target_compile_options(${target} PRIVATE ${FL_TEST_OPTIONS})
  target_precompile_headers(${target} REUSE_FROM fl_test_headers)
endfunction()
