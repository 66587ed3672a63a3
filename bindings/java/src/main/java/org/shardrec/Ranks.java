package org.shardrec;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The ranks of one {@link ShardRec#run}. */
final class Ranks {
  private final ShardRec.Rank body;
  private final List<Comm> comms = new ArrayList<>();
  private final List<Thread> threads = new ArrayList<>();
  private @Nullable Throwable first;
  private volatile boolean ended;

  Ranks(ShardRec.Rank body) {
    this.body = body;
  }

  void run(int n) throws Exception {
    boolean interrupted = false;
    try {
      try (Local group = new Local(n, n)) {
        for (int rank = 0; rank < n; ++rank) comms.add(Comm.createLocal(group, rank));
      }
      for (int rank = 0; rank < n; ++rank) threads.add(new RankThread(rank));
      start();
      interrupted = join();
    } finally {
      comms.forEach(Comm::close);
    }
    if (interrupted) throw (InterruptedException) new InterruptedException("ranks were aborted").initCause(first);
    if (first instanceof Error error) throw error;
    if (first instanceof Exception exception) throw exception;
  }

  private void start() {
    try {
      threads.forEach(Thread::start);
    } catch (OutOfMemoryError none) { // no thread to be had: those that run must not wait for the others
      fail(none);
    }
  }

  /** Waits for all ranks; true when the caller was interrupted. */
  private boolean join() {
    boolean interrupted = false;
    for (int i = 0; i < threads.size();) {
      try {
        threads.get(i).join();
        ++i;
      } catch (InterruptedException e) {
        interrupted = true;
        threads.forEach(Thread::interrupt);
      }
    }
    return interrupted;
  }

  private synchronized void fail(Throwable failure) {
    if (first != null) {
      // What the abort itself has ended says nothing new.
      boolean aborted = failure instanceof ShardRecException.Aborted || failure instanceof ShardRecException.Cancelled;
      if (failure != first && !aborted) first.addSuppressed(failure);
      return;
    }
    first = failure;
    abort("another rank failed: " + failure.getMessage());
  }

  private void abort(String reason) {
    ended = true;
    String text = textOf(reason);
    for (Comm comm : comms) {
      try {
        comm.abort(text);
      } catch (ShardRecException alreadyClosed) {
        // A rank that has ended needs no abort.
      }
    }
    threads.forEach(InterruptWatch::fireFor);
  }

  /** Without half of a surrogate pair and NUL, which a message may hold and a native text may not. */
  static String textOf(String message) {
    return new String(message.getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8).replace('\0', ' ');
  }

  /** Whether the thread is a rank whose group has been aborted. */
  static boolean haveEnded(Thread thread) {
    return thread instanceof RankThread rank && rank.group().ended;
  }

  private final class RankThread extends Thread {
    private final Comm comm;

    RankThread(int rank) {
      super("shardrec-rank-" + rank);
      comm = comms.get(rank);
    }

    Ranks group() {
      return Ranks.this;
    }

    @Override
    public void run() {
      try {
        body.run(comm);
      } catch (Throwable failure) {
        fail(failure);
      }
    }

    /** A native call does not notice an interrupt; the end of its communicator it does. */
    @Override
    public void interrupt() {
      super.interrupt();
      abort(getName() + " was interrupted");
    }
  }
}
