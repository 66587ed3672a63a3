package org.shardrec;

import java.nio.file.Path;

/** Loads libshardrec_jni, which brings libshardrec: from the folder in the system property
 * shardrec.library.path, else from java.library.path. */
final class NativeLibrary {
  private NativeLibrary() {}

  static void load() {
    String folder = System.getProperty("shardrec.library.path");
    if (folder == null) {
      System.loadLibrary("shardrec_jni");
    } else {
      System.load(Path.of(folder, System.mapLibraryName("shardrec_jni")).toAbsolutePath().toString());
    }
  }

  static void checkVersion(int version) {
    if (version < ApiVersion.VALUE) {
      throw new UnsatisfiedLinkError("libshardrec serves version " + version
          + " of its API; these classes need " + ApiVersion.VALUE + " or later");
    }
  }
}
