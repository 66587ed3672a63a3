# What `cmake --install` installs, in two components: runtime (library, plug-ins, command, licences) and dev
# (headers, link name, pkg-config, CMake). Every path in it is relative: an installed tree can be moved.
include(CMakePackageConfigHelpers)
include(cmake/licences.cmake)

# The library and what is built against it, with libraries in LIBDIR. What programs compile against goes into
# the component DEV, the shared library into RUNTIME. Further arguments go to each install command.
function(shardrec_install_library libdir export runtime dev)
  install(TARGETS shardrec EXPORT ${export}
    LIBRARY DESTINATION ${libdir} COMPONENT ${runtime} NAMELINK_COMPONENT ${dev} ${ARGN})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/capi/include/shardrec
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT ${dev} ${ARGN}
    FILES_MATCHING PATTERN *.h PATTERN *.hpp)
  set(package_dir ${libdir}/cmake/shardrec)
  install(EXPORT ${export} NAMESPACE shardrec:: FILE shardrecTargets.cmake
    DESTINATION ${package_dir} COMPONENT ${dev} ${ARGN})
  # Relative to the file's own folder.
  file(RELATIVE_PATH pc_prefix /${libdir}/pkgconfig /)
  string(REGEX REPLACE "/$" "" pc_prefix ${pc_prefix})
  set(made ${PROJECT_BINARY_DIR}/${dev})
  configure_file(pkgconfig/shardrec.pc.in ${made}/shardrec.pc @ONLY)
  configure_package_config_file(pkgconfig/shardrecConfig.cmake.in ${made}/shardrecConfig.cmake
    INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(${made}/shardrecConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${made}/shardrec.pc DESTINATION ${libdir}/pkgconfig COMPONENT ${dev} ${ARGN})
  install(FILES ${made}/shardrecConfig.cmake ${made}/shardrecConfigVersion.cmake
    DESTINATION ${package_dir} COMPONENT ${dev} ${ARGN})
endfunction()

shardrec_install_library(${CMAKE_INSTALL_LIBDIR} shardrecTargets runtime dev)

# Plug-ins are installed beside their rules (impl/*/CMakeLists.txt), the command beside its own.
set(built library openblas)
foreach(part cublas gloo mpi nccl cuda)
  if(TARGET shardrec_${part})
    list(APPEND built ${part})
  endif()
endforeach()
if(SHARDREC_TOOLS)
  list(APPEND built command)
endif()
set(doc_dir ${CMAKE_INSTALL_DATADIR}/doc/shardrec)
install(FILES LICENSE DESTINATION ${doc_dir} COMPONENT runtime)
install(FILES LICENSE DESTINATION ${doc_dir} COMPONENT dev)
foreach(part IN LISTS built)
  foreach(licence IN LISTS licences_of_${part})
    shardrec_licence(${licence} file)
    string(REGEX REPLACE ":.*" "" name ${licence})
    install(FILES ${file} DESTINATION ${doc_dir} COMPONENT runtime RENAME ${name}.copyright OPTIONAL)
  endforeach()
endforeach()
