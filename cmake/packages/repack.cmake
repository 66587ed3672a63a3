# Run by cpack on the packages that it has made: dpkg-deb makes each anew, so that it does not depend on the umask of
# who packs, nor on the order in which a file system lists a folder. The library's package tells the loader by a
# trigger, in place of cpack's scripts.
foreach(package IN LISTS CPACK_PACKAGE_FILES)
  set(folder ${package}.folder)
  execute_process(COMMAND dpkg-deb --raw-extract ${package} ${folder} COMMAND_ERROR_IS_FATAL ANY)
  set(control ${folder}/DEBIAN)
  if(EXISTS ${control}/triggers)
    file(REMOVE ${control}/postinst ${control}/postrm)
  endif()
  execute_process(COMMAND env LC_ALL=C sort -k 2 -o ${control}/md5sums ${control}/md5sums COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND find ${folder} -type d -exec chmod 755 {} + -o -path ${control}/* -exec chmod 644 {} +
    COMMAND_ERROR_IS_FATAL ANY)
  execute_process(
    COMMAND dpkg-deb --root-owner-group -Zxz --threads-max=1 --build ${folder} ${package}
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(CHMOD ${package} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  file(REMOVE_RECURSE ${folder})
endforeach()
