package org.shardrec;

/** The library itself, and ranks as threads of this process. */
public final class ShardRec {
  private ShardRec() {}

  /** What one rank does. */
  public interface Rank {
    void run(Comm comm) throws Exception;
  }

  /** Runs body on n ranks of one node, each a thread with a communicator of its own. The first failure
   * aborts the other ranks and is thrown; what else failed is suppressed by it. Interrupting the caller, or a
   * rank's thread, aborts all ranks. No rank is left running when this returns. */
  public static void run(int n, Rank body) throws Exception {
    new Ranks(body).run(n);
  }

  public static int apiVersion() {
    return Capi.api_version();
  }

  /** What the library can do on this machine, as JSON. */
  public static String capabilities() {
    String[] out = new String[1];
    Capi.capabilities(out);
    return out[0];
  }

  /**
   * Measures this machine's memory in about three seconds and keeps the result for later processes.
   * threads 0: all processors. Returns JSON (probe.h).
   */
  public static String probe(int threads) {
    String[] out = new String[1];
    Capi.probe(threads, null, out);
    return out[0];
  }

  /** What an earlier probe kept, as JSON. */
  public static String probeCached() {
    String[] out = new String[1];
    Capi.probe_cached(out);
    return out[0];
  }

  /** Open handles of this process. */
  public static long liveObjects() {
    long[] out = new long[1];
    Capi.live_objects(out);
    return out[0];
  }

  /** XXH3-64, as a signed number. */
  public static long hash64(long seed, byte[] bytes) {
    return Capi.hash64(seed, bytes);
  }
}
