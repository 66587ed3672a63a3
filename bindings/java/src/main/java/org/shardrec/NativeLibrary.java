package org.shardrec;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** Loads libshardrec_jni, which brings libshardrec, once for each class loader: from the folder in the system property
 * shardrec.library.path, and from nowhere else where that is set; else from the jar with the native libraries of this
 * platform; else from java.library.path. A failure is kept: every use of the library throws it, and it lists what was
 * tried. */
final class NativeLibrary {
  static final String FOLDER_PROPERTY = "shardrec.library.path";

  private static final String LIBRARY = "shardrec_jni";
  /** A line for each file of the jar: its SHA-256, and its name; those with a "/" are no libraries. */
  private static final String LIST = "natives.list";
  private static final String FILE = System.mapLibraryName(LIBRARY);

  /** What was tried and why it did not do; read by the class loader's first use only. */
  private final List<String> tried = new ArrayList<>();

  /** null: loaded. A constant for the compiler, so that {@link #ready} costs nothing. */
  private static final @Nullable String FAILURE = new NativeLibrary().load();

  private NativeLibrary() {}

  /** Called before every native call. */
  static void ready() {
    if (FAILURE != null) throw new UnsatisfiedLinkError(FAILURE);
  }

  private @Nullable String load() {
    try {
      if (found()) {
        int version = CapiJNI.api_version();
        return version >= ApiVersion.VALUE ? null
            : "libshardrec serves version " + version + " of its API; these classes need " + ApiVersion.VALUE + " or later";
      }
    } catch (RuntimeException | LinkageError unforeseen) { // such as a security manager's
      tried.add(unforeseen.toString());
    }
    return "the native library of shardrec cannot be loaded. Tried, in this order:\n  " + String.join("\n  ", tried)
        + "\nAdd the artefact org.shardrec:shardrec with the classifier " + platform()
        + " to the class path, or set the system property " + FOLDER_PROPERTY + " to a folder with " + FILE
        + " and libshardrec";
  }

  private boolean found() {
    String folder = System.getProperty(FOLDER_PROPERTY);
    if (folder != null) return loadFrom("the folder of the property " + FOLDER_PROPERTY, Path.of(folder));
    return loadResource() || loadFromLibraryPath();
  }

  private boolean loadFrom(String what, Path folder) {
    Path file = folder.resolve(FILE).toAbsolutePath();
    if (!Files.exists(file)) {
      tried.add(what + ": there is no file " + file);
      return false;
    }
    try {
      System.load(file.toString());
      return true;
    } catch (UnsatisfiedLinkError e) {
      if (!isTaken(e)) {
        tried.add(what + ": " + reason(e));
        return false;
      }
    }
    // A file serves one class loader. A copy of it finds the libshardrec that is in the process already.
    return new PrivateFolders(tried).any(what + ", copied for a second class loader", copy -> {
      Files.copy(file, copy.resolve(FILE));
      System.load(copy.resolve(FILE).toString());
    });
  }

  private boolean loadResource() {
    String root = "META-INF/native/" + platform() + "/";
    ClassLoader loader = NativeLibrary.class.getClassLoader();
    List<String> names;
    try (var list = loader.getResourceAsStream(root + LIST)) {
      if (list == null) {
        tried.add("the class path: no jar on it holds " + root);
        return false;
      }
      names = new String(list.readAllBytes(), StandardCharsets.UTF_8).lines().map(line -> line.replaceFirst("^\\S+ +", ""))
          .filter(name -> !name.contains("/")).toList();
    } catch (IOException e) {
      tried.add("the class path: " + root + LIST + " cannot be read: " + e);
      return false;
    }
    return new PrivateFolders(tried).any("the jar with " + root, folder -> {
      for (String name : names) PrivateFolders.extract(loader, root + name, folder.resolve(name));
      System.load(folder.resolve(FILE).toString());
    });
  }

  private boolean loadFromLibraryPath() {
    UnsatisfiedLinkError failure;
    try {
      System.loadLibrary(LIBRARY); // also what a class loader of a container finds
      return true;
    } catch (UnsatisfiedLinkError e) {
      failure = e;
    }
    String path = System.getProperty("java.library.path", "");
    if (isTaken(failure)) {
      for (String folder : path.split(File.pathSeparator)) {
        if (Files.exists(Path.of(folder, FILE))) return loadFrom("java.library.path", Path.of(folder));
      }
    }
    tried.add("java.library.path: " + reason(failure));
    return false;
  }

  /** The JVM has no other sign of it. */
  private static boolean isTaken(UnsatisfiedLinkError e) {
    return String.valueOf(e.getMessage()).contains("already loaded in another classloader");
  }

  private static String reason(Throwable e) {
    return e.getMessage() == null ? e.toString() : e.getMessage();
  }

  static String platform() {
    String system = System.getProperty("os.name").toLowerCase(Locale.ROOT).replace(" ", "");
    String machine = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
    return system + "-" + (machine.equals("amd64") ? "x86_64" : machine.equals("arm64") ? "aarch64" : machine);
  }
}
