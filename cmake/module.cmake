# fl_module(base DEPS ...): one folder, one static library `fl_base` from its *.cc, one test program `base_tests` from
# its *_test.cc and *_prop_test.cc, one benchmark `base_bench` from its *_bench.cc. Folders under src include each other
# as "folder/header.h".
function(fl_module name)
  cmake_parse_arguments(ARG "" "INCLUDE_ROOT" "DEPS;TEST_DEPS" ${ARGN})
  file(GLOB all CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(tests ${all})
  set(benches ${all})
  set(sources ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz)\\.cc$")
  if(NOT ARG_INCLUDE_ROOT)
    set(ARG_INCLUDE_ROOT ${PROJECT_SOURCE_DIR}/src)
  endif()

  if(sources)
    add_library(fl_${name} STATIC ${sources})
    target_include_directories(fl_${name} PUBLIC ${ARG_INCLUDE_ROOT} ${PROJECT_SOURCE_DIR})
    target_link_libraries(fl_${name} PUBLIC ${ARG_DEPS})
    fl_batch(sources fl_${name})
  else()
    add_library(fl_${name} INTERFACE)
    target_include_directories(fl_${name} INTERFACE ${ARG_INCLUDE_ROOT} ${PROJECT_SOURCE_DIR})
    target_link_libraries(fl_${name} INTERFACE ${ARG_DEPS})
  endif()

  if(FAIRLEAD_TESTS AND tests)
    add_executable(${name}_tests ${tests})
    target_link_libraries(${name}_tests PRIVATE fl_${name} ${ARG_TEST_DEPS} GTest::gmock GTest::gtest_main
                          fl_rapidcheck)
    fl_test_program(${name}_tests)
    fl_batch(tests ${name}_tests)
    add_test(NAME ${name} COMMAND ${name}_tests --gtest_brief=1)
  endif()
  if(FAIRLEAD_BENCH AND benches)
    add_executable(${name}_bench ${benches})
    target_link_libraries(${name}_bench PRIVATE fl_${name} ${ARG_TEST_DEPS} benchmark::benchmark_main)
  endif()
endfunction()

# What FAIRLEAD_BATCH says of a module's library and tests: those that go into batches.
function(fl_batch kind target)
  if(FAIRLEAD_BATCH STREQUAL kind OR FAIRLEAD_BATCH STREQUAL "all")
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "^${PROJECT_SOURCE_DIR}/.*\\.cc$")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # of what it takes for a header
    set_property(GLOBAL APPEND_STRING PROPERTY FL_BATCHED "${target};${sources}\n")
  endif()
endfunction()

# Once all targets are known: a run of batches.py for all. A changed source may say what its batch must not.
function(fl_make_batches)
  get_property(lines GLOBAL PROPERTY FL_BATCHED)
  if(NOT lines)
    return()
  endif()
  file(WRITE ${CMAKE_BINARY_DIR}/batches.txt "${lines}")
  execute_process(COMMAND python3 ${PROJECT_SOURCE_DIR}/cmake/batches.py ${PROJECT_SOURCE_DIR} 8
                  INPUT_FILE ${CMAKE_BINARY_DIR}/batches.txt OUTPUT_FILE ${CMAKE_BINARY_DIR}/batches.cmake COMMAND_ERROR_IS_FATAL ANY)
  include(${CMAKE_BINARY_DIR}/batches.cmake)
  string(REGEX REPLACE "[^;\n]*;([^\n]*)\n" "\\1;" sources "${lines}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/batches.py ${sources})
endfunction()
