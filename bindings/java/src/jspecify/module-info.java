/** The annotations of org.jspecify:jspecify that this project uses, for builds without Maven. */
module org.jspecify {
  exports org.jspecify.annotations;
}
