# Licences of what our binaries hold of others: what is linked statically or compiled in from headers.
# The texts are those of the Debian packages that were built with, or of the CUDA toolkit.

# Lists of NAME:PACKAGE or NAME:/FILE, for each of our binaries.
set(licences_of_library highway:libhwy-dev nlohmann-json:nlohmann-json3-dev onetbb:libtbb-dev xxhash:libxxhash-dev)
set(licences_of_openblas openblas:libopenblas-serial-dev)
set(licences_of_gloo gloo:libgloo-dev)
set(licences_of_mpi "")  # C functions of a shared library only
set(licences_of_nccl "")  # likewise, found when it is loaded
set(licences_of_cublas "")  # likewise
set(licences_of_cuda ${cuda_licences})
set(licences_of_command cli11:libcli11-dev nlohmann-json:nlohmann-json3-dev)

# The file of the licence of one of these. missing_licences names those that this machine lacks: it can
# build and install, but makes no packages.
set(missing_licences "")
function(shardrec_licence name_and_package file_variable)
  string(REGEX REPLACE "^[^:]*:" "" package ${name_and_package})
  if(package MATCHES "^/")
    set(file ${package})
  else()
    set(file /usr/share/doc/${package}/copyright)
  endif()
  set(${file_variable} ${file} PARENT_SCOPE)
  if(NOT EXISTS ${file})
    list(APPEND missing_licences ${file})
    set(missing_licences ${missing_licences} PARENT_SCOPE)
  endif()
endfunction()

# Writes the copyright file of a package that holds the binaries named: ours, then those of others.
function(shardrec_copyright file binaries)
  set(all "")
  foreach(binary IN LISTS binaries)
    list(APPEND all ${licences_of_${binary}})
  endforeach()
  list(REMOVE_DUPLICATES all)
  list(SORT all)
  string(CONCAT text
    "This is libshardrec ${PROJECT_VERSION}, made from its own sources.\n\n"
    "Copyright 2026 the authors of libshardrec\n\n"
    "License: Apache-2.0\n\n"
    "On Debian systems, the complete text of the Apache License, version 2.0, is in\n"
    "/usr/share/common-licenses/Apache-2.0.\n")
  if(all)
    string(APPEND text "\nThe binaries hold code of others, whose copyrights and licences follow.\n")
  endif()
  foreach(one IN LISTS all)
    string(REGEX REPLACE ":.*" "" name ${one})
    shardrec_licence(${one} licence)
    set(missing_licences ${missing_licences} PARENT_SCOPE)
    if(EXISTS ${licence})
      file(READ ${licence} theirs)
      string(APPEND text "\n\n==== ${name} ====\n\n${theirs}")
    endif()
  endforeach()
  file(GENERATE OUTPUT ${file} CONTENT "${text}")
endfunction()
