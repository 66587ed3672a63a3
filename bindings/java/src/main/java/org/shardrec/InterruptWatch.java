package org.shardrec;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Runs an action when the thread that made the watch is interrupted, until it is closed. A native call does not notice
 * an interrupt; one thread looks for all that watch, and ends when there are none. The interrupt stays set. */
final class InterruptWatch implements AutoCloseable {
  private static final int POLL_MILLISECONDS = 50;
  private static final Set<InterruptWatch> WATCHES = ConcurrentHashMap.newKeySet();
  private static boolean looking; // guarded by the class

  private final Thread thread = Thread.currentThread();
  private final Runnable action;
  private boolean closed;

  InterruptWatch(Runnable action) {
    this.action = action;
    WATCHES.add(this);
    if (thread.isInterrupted()) fire();
    startLooking();
  }

  private static synchronized void startLooking() {
    if (looking) return;
    Thread looker = new Thread(InterruptWatch::look, "shardrec-interrupts");
    looker.setDaemon(true);
    looker.start();
    looking = true;
  }

  private static void look() {
    do {
      for (InterruptWatch watch : WATCHES) {
        if (watch.thread.isInterrupted()) watch.fire();
      }
      try {
        Thread.sleep(POLL_MILLISECONDS);
      } catch (InterruptedException nobodyKnowsThisThread) {
        // Looks earlier.
      }
    } while (isNeeded());
  }

  private static synchronized boolean isNeeded() {
    looking = !WATCHES.isEmpty();
    return looking;
  }

  /** Runs the action of each watch of the thread. */
  static void fireFor(Thread thread) {
    for (InterruptWatch watch : WATCHES) {
      if (watch.thread == thread) watch.fire();
    }
  }

  /** Once; not after close has returned. */
  synchronized void fire() {
    if (closed) return;
    closed = true;
    WATCHES.remove(this);
    try {
      action.run();
    } catch (ShardRecException alreadyClosed) {
      // What has ended needs no end.
    }
  }

  @Override
  public synchronized void close() {
    closed = true;
    WATCHES.remove(this);
  }
}
