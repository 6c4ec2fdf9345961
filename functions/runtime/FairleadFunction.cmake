# For functions in C++ with CUDA kernels, inside this project or outside it:
#
#   fairlead_function(hello SOURCES function.cc KERNELS kernels.cu [OUTPUT_DIRECTORY DIR])
#
# builds DIR/bootstrap (default: <build folder>/hello/bootstrap), a program that depends on libc only: the folder is what
# `fairlead deploy hello DIR` takes. Each kernels.cu is compiled to PTX by clang and embedded: the source includes
# "kernels_ptx.h" and finds the text as `kernels_ptx`. Without KERNELS no clang is needed.
set(FAIRLEAD_RUNTIME_DIR ${CMAKE_CURRENT_LIST_DIR})

function(fairlead_find_clang)
  find_program(FAIRLEAD_CLANG NAMES clang++-16 clang++-19 clang++-18 clang++-17 clang++)
  if(NOT FAIRLEAD_CLANG)
    message(FATAL_ERROR "clang++-16 is missing; it compiles the functions' kernels to PTX. "
                        "Install the package clang-16 (apt-get install clang-16).")
  endif()
endfunction()

# Compiles CUDA C++ files to PTX and makes <stem>_ptx.h for the target's sources to include.
function(fairlead_kernels target)
  fairlead_find_clang()
  set(directory ${CMAKE_CURRENT_BINARY_DIR}/${target}_kernels)
  foreach(file IN LISTS ARGN)
    get_filename_component(source ${file} ABSOLUTE)
    get_filename_component(stem ${file} NAME_WE)
    set(ptx ${directory}/${stem}.ptx)
    set(header ${directory}/${stem}_ptx.h)
    file(MAKE_DIRECTORY ${directory})
    add_custom_command(
      OUTPUT ${ptx}
      COMMAND ${FAIRLEAD_CLANG} -x cuda --cuda-device-only -S -O2 -std=c++20 -Wall -Wextra -nocudainc -nocudalib
              --cuda-gpu-arch=sm_70 --cuda-feature=+ptx63 -I ${FAIRLEAD_RUNTIME_DIR}
              -I ${CMAKE_CURRENT_SOURCE_DIR} -MD -MF ${ptx}.d -MT ${ptx}
              ${source} -o ${ptx}
      DEPENDS ${source}
      DEPFILE ${ptx}.d
      COMMENT "Compiling ${file} to PTX"
      VERBATIM)
    add_custom_command(
      OUTPUT ${header}
      COMMAND ${CMAKE_COMMAND} -D INPUT=${ptx} -D OUTPUT=${header} -D NAME=${stem}_ptx
              -P ${FAIRLEAD_RUNTIME_DIR}/embed.cmake
      DEPENDS ${ptx} ${FAIRLEAD_RUNTIME_DIR}/embed.cmake
      VERBATIM)
    target_sources(${target} PRIVATE ${header})
  endforeach()
  target_include_directories(${target} PRIVATE ${directory})
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
