package org.shardrec;

import static org.shardrec.Checks.check;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A JVM of its own that runs a test's class. */
final class Child {
  final Process process;

  private Child(Process process) {
    this.process = process;
  }

  /** classPath: null for that of this JVM; options: of the JVM. */
  static Child start(String classPath, List<String> options, Class<?> main, String... arguments) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(options);
    command.add("-cp");
    command.add(classPath == null ? System.getProperty("java.class.path") : classPath);
    command.add(main.getName());
    command.addAll(List.of(arguments));
    return new Child(new ProcessBuilder(command).redirectErrorStream(true).start());
  }

  /** What it has printed, once it has ended by itself, soon and with this exit status. */
  String output(int status) throws Exception {
    if (!process.waitFor(30, TimeUnit.SECONDS)) {
      process.destroyForcibly();
      throw new AssertionError("a JVM that does not end");
    }
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    check(process.exitValue() == status, "ended with " + process.exitValue() + ": " + output);
    return output;
  }
}
