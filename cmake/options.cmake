set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 17)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

option(FAIRLEAD_PORTABLE "Link everything but libc statically" OFF)
option(FAIRLEAD_TESTS "Build unit tests" ON)
option(FAIRLEAD_BENCH "Build benchmarks" ON)
set(FAIRLEAD_COMMIT "" CACHE STRING "What `fairlead --version` says beside the version, for example the commit of a package")
set(FAIRLEAD_BATCH "" CACHE STRING "What is compiled several files at a time: nothing, `tests`, or `all`; a clean build is faster, a change slower")
set(FAIRLEAD_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize, for example address,undefined")

add_compile_options(-Wall -Wextra -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> -Wno-missing-field-initializers -Werror=return-type -fno-omit-frame-pointer)
if(FAIRLEAD_SANITIZE)
  # Callers of a C interface may pass any integer where it has an enumeration.
  add_compile_options(-fsanitize=${FAIRLEAD_SANITIZE} -fno-sanitize-recover=undefined -fno-sanitize=enum)
  add_link_options(-fsanitize=${FAIRLEAD_SANITIZE})
endif()
if(FAIRLEAD_SANITIZE STREQUAL "thread")
  # The thread sanitizer does not see fences; Asio's stand beside a lock that it does see.
  add_compile_definitions(BOOST_ASIO_DISABLE_FENCED_BLOCK)
  add_compile_options(-Wno-tsan)
endif()
if(FAIRLEAD_PORTABLE)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
  # What is linked in statically is not offered to others: the libraries under lib/ export their own names only.
  add_link_options(-static-libstdc++ -static-libgcc -Wl,--exclude-libs,libstdc++.a:libgcc.a:libgcc_eh.a)
  # The linker looks for it from the start: libstdc++, which asks for it, comes last.
  add_library(fl_older_glibc STATIC ${CMAKE_CURRENT_LIST_DIR}/static/arc4random.c)
  add_link_options(-Wl,-u,arc4random)
  link_libraries(fl_older_glibc)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  # What uses a precompiled header is kept only when told so: none of ours has __TIME__ or is changed by later macros.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()
