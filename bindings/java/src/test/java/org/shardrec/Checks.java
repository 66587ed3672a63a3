package org.shardrec;

import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;

/** What the tests assert with. */
final class Checks {
  static final double PATIENCE = 2; // seconds, until all ranks have ended; their deadline is 600

  private Checks() {}

  interface Call {
    void run() throws Exception;
  }

  static void check(boolean holds, String message) {
    if (!holds) throw new AssertionError(message);
  }

  interface InFolder {
    void run(Path folder) throws Exception;
  }

  /** With a folder that is gone afterwards. */
  static void inFolder(InFolder call) throws Exception {
    Path folder = Files.createTempDirectory("shardrec-test");
    try {
      call.run(folder);
    } finally {
      try (Stream<Path> files = Files.walk(folder)) {
        files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
      }
    }
  }

  /** The call is refused by these classes. */
  static void refused(Call call) {
    try {
      call.run();
    } catch (IllegalArgumentException expected) {
      return;
    } catch (Exception other) {
      throw new AssertionError(other);
    }
    throw new AssertionError("accepted");
  }

  /** The call ends with the status, in whose message the words are. */
  static void fails(Status status, String words, Call call) {
    try {
      call.run();
    } catch (ShardRecException e) {
      check(e.status() == status && e.getMessage().contains(words), e.getMessage());
      return;
    } catch (Exception other) {
      throw new AssertionError(other);
    }
    throw new AssertionError("accepted");
  }

  static void fails(Status status, Call call) {
    fails(status, "", call);
  }

  static FloatBuffer floats(float... values) {
    return Tensor.floats(values.length).put(values).rewind();
  }

  /** What the call throws, soon. */
  static Throwable inTime(Call call) {
    long start = System.nanoTime();
    Throwable thrown = null;
    try {
      call.run();
    } catch (Throwable t) {
      thrown = t;
    }
    double seconds = (System.nanoTime() - start) * 1e-9;
    check(seconds < PATIENCE, "ended after " + seconds + " s");
    return thrown;
  }
}
