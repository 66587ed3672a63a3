package org.shardrec.spark;

import java.util.concurrent.Callable;

/** Assertions that name what was promised; the first that does not hold ends the program. */
final class Checks {
  private Checks() {}

  /** What a test program does. */
  interface Program {
    void run() throws Exception;
  }

  /** Runs it and ends the JVM, which the timer thread of Spark's barrier tasks would keep alive. */
  static void exit(Program program) {
    int status = 0;
    try {
      program.run();
    } catch (Throwable failure) {
      failure.printStackTrace();
      status = 1;
    }
    System.exit(status);
  }

  static void check(boolean holds, String promise) {
    if (!holds) throw new AssertionError(promise);
    System.out.println("ok: " + promise);
  }

  /** The call fails, with a text that holds the words. */
  static void fails(String words, Callable<?> call) throws Exception {
    String said;
    try {
      call.call();
      said = "nothing";
    } catch (Exception failure) {
      StringBuilder all = new StringBuilder();
      for (Throwable t = failure; t != null; t = t.getCause()) all.append(t.getMessage()).append('\n');
      said = all.toString();
    }
    if (!said.contains(words)) throw new AssertionError("expected: " + words + "; said: " + said);
    System.out.println("ok: refused, " + words);
  }
}
