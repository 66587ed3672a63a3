package org.shardrec;

import static org.shardrec.Checks.check;

import java.util.List;

/** System.exit while ranks wait for others, in native calls whose deadline is ten minutes, ends the process cleanly. */
public final class ExitTest {
  static final int STATUS = 7;

  public static void main(String[] arguments) throws Exception {
    if (arguments.length > 0) {
      wait(arguments[0]);
      return;
    }
    String folder = System.getProperty(NativeLibrary.FOLDER_PROPERTY);
    for (String engine : new String[] {"local", "gloo"}) {
      for (int round = 0; round < 3; ++round) {
        long start = System.nanoTime();
        String output = Child.start(null, List.of("-Dshardrec.library.path=" + folder), ExitTest.class, engine).output(STATUS);
        check(output.isEmpty(), output);
        double seconds = (System.nanoTime() - start) * 1e-9;
        check(seconds < 10, engine + ": ended after " + seconds + " s");
      }
    }
    System.out.println("java: ok");
  }

  static void wait(String engine) throws Exception {
    if (engine.equals("local")) {
      ShardRec.run(3, comm -> {
        if (comm.rank() == 0) exitSoon();
        comm.barrier();
      });
      return;
    }
    String token = new Rendezvous(null).token();
    for (int rank = 0; rank < 2; ++rank) {
      int own = rank;
      new Thread(() -> {
        Comm comm = new Comm(Engine.GLOO, own, 2, token, null);
        if (own == 0) exitSoon();
        comm.barrier();
      }).start();
    }
  }

  /** Returns never; the others are in their calls by then. */
  static void exitSoon() {
    try {
      Thread.sleep(300);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
    System.exit(STATUS);
  }
}
