# For functions in C++ with CUDA kernels, inside this project or outside it:
#
#   fairlead_function(hello SOURCES function.cc KERNELS kernels.cu [OUTPUT_DIRECTORY DIR])
#
# builds DIR/bootstrap (default: <build folder>/hello/bootstrap), a program that depends on libc only: the folder is what
# `fairlead deploy hello DIR` takes. Each kernels.cu is compiled to PTX by clang and embedded: the source includes
# "kernels_ptx.h" and finds the text as `kernels_ptx`. Without KERNELS no clang is needed.
set(FAIRLEAD_RUNTIME_DIR ${CMAKE_CURRENT_LIST_DIR})

include(${FAIRLEAD_RUNTIME_DIR}/../../cmake/cuda_kernels.cmake)

# Compiles CUDA C++ files to PTX and makes <stem>_ptx.h for the target's sources to include.
function(fairlead_kernels target)
  cuda_kernels(${target} OPTIONS -I ${FAIRLEAD_RUNTIME_DIR} -I ${CMAKE_CURRENT_SOURCE_DIR} SOURCES ${ARGN})
endfunction()

function(fairlead_function name)
  cmake_parse_arguments(ARG "" "OUTPUT_DIRECTORY" "SOURCES;KERNELS" ${ARGN})
  if(NOT ARG_OUTPUT_DIRECTORY)
    set(ARG_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${name})
  endif()
  set(target function_${name})
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE fairlead_runtime)
  # A sandbox offers libc and little else.
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME bootstrap RUNTIME_OUTPUT_DIRECTORY ${ARG_OUTPUT_DIRECTORY})
  if(ARG_KERNELS)
    fairlead_kernels(${target} ${ARG_KERNELS})
  endif()
endfunction()
