# cmake -DOUTPUT=header -DROOT=repository -DSOURCES=a,b,c -DSALT=text -P emitter_build.cmake
#
# Writes the header that names this build of the emitter. Objects on disk carry the name in their key, so that a changed
# emitter never runs code that an older one made.
string(REPLACE "," ";" SOURCES "${SOURCES}")
set(all "${SALT}")
foreach(source IN LISTS SOURCES)
  file(SHA256 "${ROOT}/${source}" hash)
  string(APPEND all "${source} ${hash}\n")
endforeach()
string(SHA256 build "${all}")
string(SUBSTRING "${build}" 0 16 build)
file(WRITE "${OUTPUT}" "// Made by cmake/emitter_build.cmake.\n#pragma once\n#define STET_EMITTER_BUILD \"${build}\"\n")
