package org.shardrec;

import java.util.concurrent.atomic.AtomicReference;

/** The library itself, and ranks as threads of this process. */
public final class ShardRec {
  private ShardRec() {}

  /** What one rank does. */
  public interface Rank {
    void run(Comm comm) throws Exception;
  }

  /** Runs body on n ranks of one node, each a thread with a communicator of its own. The first failure
   * aborts the other ranks and is thrown. */
  public static void run(int n, Rank body) throws Exception {
    Comm[] comms = new Comm[n];
    Thread[] threads = new Thread[n];
    AtomicReference<Throwable> first = new AtomicReference<>();
    try {
      try (Local group = new Local(n, n)) {
        for (int rank = 0; rank < n; ++rank) comms[rank] = new Comm(group, rank);
      }
      for (int rank = 0; rank < n; ++rank) {
        Comm comm = comms[rank];
        threads[rank] = new Thread(() -> runRank(body, comm, comms, first), "shardrec-rank-" + rank);
        threads[rank].start();
      }
      for (Thread thread : threads) thread.join();
    } finally {
      for (Comm comm : comms) if (comm != null) comm.close();
    }
    if (first.get() instanceof Error error) throw error;
    if (first.get() instanceof Exception error) throw error;
  }

  private static void runRank(Rank body, Comm comm, Comm[] all, AtomicReference<Throwable> first) {
    try {
      body.run(comm);
    } catch (Throwable failure) {
      if (!first.compareAndSet(null, failure)) return;
      for (Comm peer : all) {
        try {
          peer.abort("another rank failed: " + failure.getMessage());
        } catch (RuntimeException alreadyClosed) {
          // A rank that has ended needs no abort.
        }
      }
    }
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
    Capi.probe(threads, 0, out);
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
