# Debian's packages, made by `cpack -G DEB` in the build folder: each is an install component of the package's
# name, with libraries in Debian's multiarch folder. `cmake --install` leaves these components out.
#
# Two builds of one commit make packages that are equal byte for byte: times are that of the release (or
# SOURCE_DATE_EPOCH), paths of the build are not in the binaries, files are in order.
find_program(SHARDREC_DPKG dpkg DOC "Debian's package tool")
find_program(SHARDREC_GZIP gzip)
mark_as_advanced(SHARDREC_DPKG SHARDREC_GZIP)
if(NOT SHARDREC_DPKG OR NOT SHARDREC_GZIP OR NOT SHARDREC_TOOLS OR SHARDREC_SANITIZE)
  return()
endif()

set(debian_version ${PROJECT_VERSION}-1)
set(release_time 1793491200)  # of this version: the time of all files in its packages
set(release_date "Sun, 01 Nov 2026 00:00:00 +0000")
set(release_day 2026-11-01)
set(maintainer "libshardrec project <libshardrec@localhost.invalid>")  # a group; Debian wants an address
set(library_package libshardrec${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(packages_dir ${PROJECT_BINARY_DIR}/packages)

# Compressed without name and time: changes of the library, changes of its packages, the command's manual.
function(shardrec_gzip source file)
  execute_process(COMMAND ${SHARDREC_GZIP} -9nc ${source} OUTPUT_FILE ${packages_dir}/${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/CHANGELOG.md)
configure_file(cmake/packages/changelog.in ${packages_dir}/changelog @ONLY)
configure_file(cmake/packages/shardrec.1.in ${packages_dir}/shardrec.1 @ONLY)
shardrec_gzip(${PROJECT_SOURCE_DIR}/CHANGELOG.md changelog.gz)
shardrec_gzip(${packages_dir}/changelog changelog.Debian.gz)
shardrec_gzip(${packages_dir}/shardrec.1 shardrec.1.gz)

# A package NAME with the licences of the BINARIES that it holds (lists of cmake/licences.cmake). Other
# packages of ours in DEPENDS are wanted in exactly this version: plug-ins and the command share types with
# the library that are no part of its ABI.
set(CPACK_COMPONENTS_ALL "")
macro(shardrec_package name)
  cmake_parse_arguments(package "" "SECTION;DEPENDS;RECOMMENDS;SUGGESTS;DESCRIPTION" "BINARIES" ${ARGN})
  list(APPEND CPACK_COMPONENTS_ALL ${name})
  string(TOUPPER ${name} component)
  set(CPACK_DEBIAN_${component}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${component}_PACKAGE_SECTION ${package_SECTION})
  set(CPACK_DEBIAN_${component}_PACKAGE_DEPENDS "")
  if(package_DEPENDS)
    set(CPACK_DEBIAN_${component}_PACKAGE_DEPENDS "${package_DEPENDS} (= ${debian_version})")
  endif()
  set(CPACK_DEBIAN_${component}_PACKAGE_RECOMMENDS "${package_RECOMMENDS}")
  set(CPACK_DEBIAN_${component}_PACKAGE_SUGGESTS "${package_SUGGESTS}")
  set(CPACK_COMPONENT_${component}_DESCRIPTION "${package_DESCRIPTION}")
  shardrec_copyright(${packages_dir}/${name}/copyright "${package_BINARIES}")
  install(FILES ${packages_dir}/${name}/copyright ${packages_dir}/changelog.gz ${packages_dir}/changelog.Debian.gz
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${name} EXCLUDE_FROM_ALL)
endmacro()

set(about "\nlibshardrec trains and serves the embedding tables of recommendation models,
cut into boxes over the ranks of a job, and the dense layers beside them.\n")

shardrec_install_library(${debian_libdir} shardrecDebianTargets ${library_package} libshardrec-dev EXCLUDE_FROM_ALL)
shardrec_package(${library_package} SECTION libs BINARIES library
  RECOMMENDS "libshardrec-dense (= ${debian_version})"
  SUGGESTS "libshardrec-gloo (= ${debian_version}), libshardrec-mpi (= ${debian_version}), libshardrec-cuda (= ${debian_version}), libshardrec-nccl (= ${debian_version}), libshardrec-cublas (= ${debian_version})"
  DESCRIPTION "sharded embedding tables and dense training (shared library)${about}
This package holds the library, whose ranks are threads of a process.
Plug-ins, in packages of their own, add dense layers, ranks that are
processes, and tables on CUDA devices.")
# Programs that were built with the library need this version of its package; the loader's cache learns of it.
file(WRITE ${packages_dir}/shlibs
  "libshardrec ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} ${library_package} (>= ${PROJECT_VERSION})\n")
file(WRITE ${packages_dir}/triggers "activate-noawait ldconfig\n")
string(TOUPPER ${library_package} component)
set(CPACK_DEBIAN_${component}_PACKAGE_CONTROL_EXTRA ${packages_dir}/shlibs ${packages_dir}/triggers)

shardrec_package(libshardrec-dev SECTION libdevel DEPENDS ${library_package}
  DESCRIPTION "sharded embedding tables and dense training (development files)${about}
This package holds the headers for C and C++, and what pkg-config and CMake
need to find the library.")

# A plug-in PART in a package of its own.
macro(shardrec_plugin_package part package section)
  install(TARGETS shardrec_${part} LIBRARY
    DESTINATION ${debian_libdir}/shardrec COMPONENT ${package} EXCLUDE_FROM_ALL)
  shardrec_package(${package} SECTION ${section} BINARIES ${part} DEPENDS ${library_package} ${ARGN})
endmacro()
shardrec_plugin_package(openblas libshardrec-dense libs
  DESCRIPTION "dense layers of libshardrec (plug-in)${about}
This package holds the matrix products of the layers: OpenBLAS's, for one
thread per rank.")
if(TARGET shardrec_gloo)
  shardrec_plugin_package(gloo libshardrec-gloo libs
    DESCRIPTION "processes of libshardrec, over Gloo (plug-in)${about}
This package holds the engine that joins processes, on one host or several,
over TCP by Gloo.")
endif()
if(TARGET shardrec_mpi)
  shardrec_plugin_package(mpi libshardrec-mpi libs RECOMMENDS openmpi-bin
    DESCRIPTION "processes of libshardrec, over MPI (plug-in)${about}
This package holds the engine that joins processes started by mpirun, over
Open MPI.")
endif()
# Devices' tables are in a package that is not free, and so are NVIDIA's libraries, which no repository of Debian's has.
shardrec_plugin_package(nccl libshardrec-nccl contrib/libs SUGGESTS libnccl2
  DESCRIPTION "collectives of libshardrec between CUDA devices, over NCCL (plug-in)${about}
This package holds what lets ranks on NVIDIA's devices exchange through
NVIDIA's library NCCL, which is needed: 2.19 or newer.")
shardrec_plugin_package(cublas libshardrec-cublas contrib/libs SUGGESTS libcublas-13-0
  DESCRIPTION "matrix products of libshardrec on CUDA devices, by cuBLASLt (plug-in)${about}
This package holds what multiplies matrices on NVIDIA's devices through
NVIDIA's library cuBLASLt, which is needed: 12.0 or newer.")
if(TARGET shardrec_cuda)  # with NVIDIA's run-time library inside, which is not free
  shardrec_plugin_package(cuda libshardrec-cuda non-free/libs SUGGESTS libcuda1
    DESCRIPTION "tables of libshardrec on CUDA devices (plug-in)${about}
This package holds the kernels that keep tables in the memory of NVIDIA's
devices and work on them there. It needs a driver of NVIDIA's.")
endif()

install(TARGETS shardrec_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT shardrec EXCLUDE_FROM_ALL)
install(FILES ${packages_dir}/shardrec.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT shardrec EXCLUDE_FROM_ALL)
shardrec_package(shardrec SECTION science BINARIES command DEPENDS ${library_package}
  RECOMMENDS "libshardrec-dense (= ${debian_version}), libshardrec-gloo (= ${debian_version})"
  SUGGESTS "libshardrec-mpi (= ${debian_version})"
  DESCRIPTION "trains recommendation models on sharded embedding tables (command)${about}
This package holds the command: it trains models on click logs and ratings,
plans how tables are cut, starts the processes of a job, looks into
checkpoints, and measures this machine and the steps of a training.")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME shardrec)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_PACKAGE_CONTACT "${maintainer}")
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_POST_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/packages/repack.cmake)
set(CPACK_DEBIAN_PACKAGE_SOURCE shardrec)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE none)  # until they are made anew
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)  # the command's library
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
configure_file(cmake/packages/at_cpack_time.cmake.in ${packages_dir}/at_cpack_time.cmake @ONLY)
set(CPACK_PROJECT_CONFIG_FILE ${packages_dir}/at_cpack_time.cmake)
include(CPack)
