# cuda_kernels(target [ARCHITECTURE sm_70] [PTX 63] [OPTIONS ...] SOURCES kernels.cu more.ptx)
#
# Compiles CUDA C++ to PTX with clang, which needs no toolkit, and makes <stem>_ptx.h with the text as `<stem>_ptx` for the
# target's sources to include. Files that are PTX already are embedded as they are.
set(CUDA_KERNELS_ROOT ${CMAKE_CURRENT_LIST_DIR}/..)

function(cuda_find_clang)
  find_program(CUDA_CLANG NAMES clang++-16 clang++-19 clang++-18 clang++-17 clang++)
  if(NOT CUDA_CLANG)
    message(FATAL_ERROR "clang++-16 is missing; it compiles CUDA kernels to PTX. "
                        "Install the package clang-16 (apt-get install clang-16).")
  endif()
endfunction()

# cuda_ptx(output.ptx source.cu ARCHITECTURE sm_70 PTX 63 [OPTIONS ...]): the rule that compiles one file.
function(cuda_ptx ptx source)
  cmake_parse_arguments(ARG "" "ARCHITECTURE;PTX" "OPTIONS" ${ARGN})
  cuda_find_clang()
  add_custom_command(
    OUTPUT ${ptx}
    COMMAND ${CUDA_CLANG} -x cuda --cuda-device-only -S -O2 -std=c++20 -Wall -Wextra -nocudainc -nocudalib
            --cuda-gpu-arch=${ARG_ARCHITECTURE} --cuda-feature=+ptx${ARG_PTX} -I ${CUDA_KERNELS_ROOT}
            ${ARG_OPTIONS} -MD -MF ${ptx}.d -MT ${ptx} ${source} -o ${ptx}
    DEPENDS ${source}
    DEPFILE ${ptx}.d
    COMMENT "Compiling ${source} to PTX"
    VERBATIM)
endfunction()

function(cuda_kernels target)
  cmake_parse_arguments(ARG "" "ARCHITECTURE;PTX" "OPTIONS;SOURCES" ${ARGN})
  if(NOT ARG_ARCHITECTURE)
    set(ARG_ARCHITECTURE sm_70)
  endif()
  if(NOT ARG_PTX)
    set(ARG_PTX 63)
  endif()
  set(directory ${CMAKE_CURRENT_BINARY_DIR}/${target}_kernels)
  set(embed ${CUDA_KERNELS_ROOT}/cmake/embed_text.cmake)
  file(MAKE_DIRECTORY ${directory})
  foreach(file IN LISTS ARG_SOURCES)
    get_filename_component(source ${file} ABSOLUTE)
    get_filename_component(stem ${file} NAME_WE)
    set(ptx ${source})
    if(NOT file MATCHES "\\.ptx$")
      set(ptx ${directory}/${stem}.ptx)
      cuda_ptx(${ptx} ${source} ARCHITECTURE ${ARG_ARCHITECTURE} PTX ${ARG_PTX} OPTIONS ${ARG_OPTIONS})
    endif()
    set(header ${directory}/${stem}_ptx.h)
    add_custom_command(
      OUTPUT ${header}
      COMMAND ${CMAKE_COMMAND} -D INPUT=${ptx} -D OUTPUT=${header} -D NAME=${stem}_ptx -P ${embed}
      DEPENDS ${ptx} ${embed}
      VERBATIM)
    target_sources(${target} PRIVATE ${header})
  endforeach()
  target_include_directories(${target} PRIVATE ${directory})
endfunction()
