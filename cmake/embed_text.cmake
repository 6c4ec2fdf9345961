# cmake -D INPUT=kernels.ptx -D OUTPUT=kernels_ptx.h -D NAME=kernels_ptx -P embed_text.cmake
file(READ ${INPUT} text)
file(WRITE ${OUTPUT} "#pragma once\n\ninline constexpr char ${NAME}[] = R\"PTX(${text})PTX\";\n")
