package org.shardrec;

import static org.shardrec.Checks.*;

import java.io.File;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** Where the native library is loaded from, each time in a JVM of its own; the argument noexec is a folder that nothing
 * may be loaded from. */
public final class LoaderTest {
  static final String FOLDER = System.getProperty(NativeLibrary.FOLDER_PROPERTY);
  static final String CLASSES = System.getProperty("java.class.path");
  static Path work;

  public static void main(String[] arguments) throws Exception {
    if (arguments.length > 1) {
      child(arguments);
      return;
    }
    inFolder(made -> {
      work = made;
      failuresSayAllThatWasTried();
      theJarServesInAPrivateFolderThatIsRemoved();
      foldersOfKilledProcessesAreRemoved();
      aSecondClassLoaderIsServed();
      if (arguments.length == 1) aFolderWithoutExecIsPassedOver(Path.of(arguments[0]));
    });
    System.out.println("java: ok");
  }

  static void failuresSayAllThatWasTried() throws Exception {
    String output = run(CLASSES, List.of("-Djava.library.path=/nowhere"), "use", "3");
    List<String> failures = List.of(output.split("--\n"));
    check(failures.size() == 3 && failures.get(0).equals(failures.get(1)) && failures.get(0).equals(failures.get(2)), output);
    check(output.startsWith("java.lang.UnsatisfiedLinkError") && output.contains("META-INF/native/" + NativeLibrary.platform())
        && output.contains("java.library.path: no shardrec_jni in java.library.path: /nowhere")
        && output.contains("org.shardrec:shardrec") && output.contains("shardrec.library.path"), output);

    output = run(CLASSES, List.of("-Dshardrec.library.path=/nowhere"), "use", "1");
    check(output.contains("the folder of the property shardrec.library.path: there is no file /nowhere/libshardrec_jni.so")
        && !output.contains("java.library.path: no"), output);

    Path broken = Files.createDirectory(work.resolve("broken"));
    Files.writeString(broken.resolve(System.mapLibraryName("shardrec_jni")), "not a library");
    output = run(CLASSES, List.of("-Dshardrec.library.path=" + broken), "use", "1");
    check(output.contains("the folder of the property shardrec.library.path: " + broken), output);

    Path resource = resources("partial", "libmissing.so");
    output = run(CLASSES + File.pathSeparator + resource, List.of(extract("partial-out")), "use", "1");
    check(output.contains("the jar has no META-INF/native/" + NativeLibrary.platform() + "/libmissing.so"), output);
  }

  static void theJarServesInAPrivateFolderThatIsRemoved() throws Exception {
    String option = extract("out");
    String output = run(CLASSES + File.pathSeparator + resources("jar"), List.of(option), "listed", "out");
    check(output.equals("rwx------ libshardrec_jni.so lock\n"), output);
    check(names(work.resolve("out")).isEmpty(), "left: " + names(work.resolve("out")));
  }

  static void foldersOfKilledProcessesAreRemoved() throws Exception {
    String classPath = CLASSES + File.pathSeparator + work.resolve("jar"), option = extract("killed");
    Child lives = Child.start(classPath, List.of(option), LoaderTest.class, "stay", "");
    check(lives.process.getInputStream().read() == '!', "a JVM that does not begin");
    String kept = names(work.resolve("killed")).get(0);
    Child killed = Child.start(classPath, List.of(option), LoaderTest.class, "stay", "");
    check(killed.process.getInputStream().read() == '!', "a JVM that does not begin");
    killed.process.destroyForcibly().waitFor();
    Path open = Files.createDirectory(work.resolve("killed").resolve("shardrec-1-of-another-program"));
    check(names(work.resolve("killed")).size() == 3, names(work.resolve("killed")).toString());
    for (String name : names(work.resolve("killed"))) {
      Files.setLastModifiedTime(work.resolve("killed").resolve(name), FileTime.from(Instant.now().minus(Duration.ofHours(1))));
    }
    run(classPath, List.of(option), "use", "1");
    check(names(work.resolve("killed")).equals(Stream.of(kept, open.getFileName().toString()).sorted().toList()),
        kept + " is one of " + names(work.resolve("killed")));
    lives.process.getOutputStream().close();
    lives.output(0);
  }

  static void aSecondClassLoaderIsServed() throws Exception {
    String ok = "0 1\n";
    String output = run(CLASSES, List.of("-Dshardrec.library.path=" + FOLDER), "twice", "");
    check(output.equals(ok), output);
    output = run(CLASSES, List.of("-Djava.library.path=" + FOLDER), "twice", "");
    check(output.equals(ok), output);
    output = run(CLASSES + File.pathSeparator + work.resolve("jar"), List.of(extract("two")), "twice", "");
    check(output.equals(ok) && names(work.resolve("two")).isEmpty(), output + names(work.resolve("two")));
  }

  static void aFolderWithoutExecIsPassedOver(Path noexec) throws Exception {
    String classPath = CLASSES + File.pathSeparator + work.resolve("jar");
    String output = run(classPath, List.of("-Djava.io.tmpdir=" + noexec), "use", "1");
    check(output.contains("native libraries are loaded from") && output.contains("because: in " + noexec)
        && output.endsWith("0\n--\n") && names(noexec).isEmpty(), output + names(noexec));
    output = run(classPath, List.of("-Dshardrec.extract.path=" + noexec, "-Djava.library.path=/nowhere"), "use", "2");
    check(output.contains("the jar with META-INF/native/" + NativeLibrary.platform() + "/, in " + noexec)
        && output.contains("java.library.path: no shardrec_jni") && names(noexec).isEmpty(), output);
  }

  /** A folder as the jar of native libraries; more: names in its list that it does not hold. */
  static Path resources(String name, String... more) throws Exception {
    Path root = work.resolve(name), natives = root.resolve("META-INF/native/" + NativeLibrary.platform());
    String library = System.mapLibraryName("shardrec_jni");
    Files.createDirectories(natives);
    Files.copy(Path.of(FOLDER, library), natives.resolve(library));
    Files.write(natives.resolve("natives.list"), Stream.concat(Stream.of("licences/one.txt", library), Stream.of(more))
        .map(file -> "0123abcd  " + file).toList());
    return root;
  }

  static String extract(String name) throws Exception {
    return "-Dshardrec.extract.path=" + Files.createDirectory(work.resolve(name));
  }

  static List<String> names(Path folder) throws Exception {
    try (Stream<Path> files = Files.list(folder)) {
      return files.map(file -> file.getFileName().toString()).sorted().toList();
    }
  }

  static String run(String classPath, List<String> options, String... arguments) throws Exception {
    return Child.start(classPath, options, LoaderTest.class, arguments).output(0);
  }

  static void child(String[] arguments) throws Exception {
    switch (arguments[0]) {
      case "use" -> {
        for (int i = 0; i < Integer.parseInt(arguments[1]); ++i) {
          try {
            // Other classes each time: none may be spoilt by the first failure.
            if (i == 1) new Model().close();
            if (i == 2) new PlanOptions().text(OptionKey.SHARDING);
            System.out.println(ShardRec.liveObjects());
          } catch (Throwable failure) {
            System.out.println(failure);
          }
          System.out.println("--");
        }
      }
      case "listed" -> {
        ShardRec.liveObjects();
        Path folder;
        try (Stream<Path> folders = Files.list(Path.of(System.getProperty("shardrec.extract.path")))) {
          folder = folders.toList().get(0);
        }
        System.out.println(PosixFilePermissions.toString(Files.getPosixFilePermissions(folder)) + " "
            + String.join(" ", names(folder)));
      }
      case "stay" -> {
        ShardRec.liveObjects();
        System.out.print('!');
        System.out.flush();
        while (System.in.read() >= 0) {
          // Until the other end is closed.
        }
      }
      case "twice" -> {
        List<URL> urls = new ArrayList<>();
        for (String path : CLASSES.split(File.pathSeparator)) urls.add(Path.of(path).toUri().toURL());
        List<Object> results = new ArrayList<>();
        for (int i = 0; i < 2; ++i) {
          ClassLoader loader = new URLClassLoader(urls.toArray(URL[]::new), ClassLoader.getPlatformClassLoader());
          results.add(loader.loadClass("org.shardrec.ShardRec").getMethod("liveObjects").invoke(null));
          // One library for both: the second one counts the model of the first.
          KEPT.add(loader.loadClass("org.shardrec.Model").getConstructor().newInstance());
        }
        System.out.println(results.get(0) + " " + results.get(1));
      }
      default -> throw new AssertionError(arguments[0]);
    }
  }

  static final List<Object> KEPT = new ArrayList<>();
}
