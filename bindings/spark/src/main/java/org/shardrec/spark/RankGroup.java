package org.shardrec.spark;

import static org.shardrec.spark.Settings.with;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.TaskKilledException;
import org.jspecify.annotations.Nullable;
import org.shardrec.Comm;
import org.shardrec.CommOptions;
import org.shardrec.CommProperty;
import org.shardrec.Control;
import org.shardrec.Engine;
import org.shardrec.Rendezvous;
import org.shardrec.RendezvousOptions;
import org.shardrec.ShardRecException;

/**
 * A task's membership in the group of all tasks of its barrier stage. From its making to its close a thread looks whether
 * the task is killed, or its thread interrupted, neither of which a native call notices, and then aborts the communicator:
 * the call ends with ABORTED, also those of the other ranks.
 */
final class RankGroup implements AutoCloseable {
  private static final int POLL_MILLISECONDS = 20;

  private final BarrierTaskContext context;
  private final Thread task = Thread.currentThread();
  private final @Nullable Rendezvous meeting; // null: another rank holds it
  private final Control control = new Control();
  private final Comm comm;
  private final Thread watch;
  private volatile boolean closed;

  /** Meets the other tasks of the stage. Blocking. */
  RankGroup(BarrierTaskContext context, Settings settings) throws InterruptedException {
    this.context = context;
    int rank = context.partitionId();
    String[] hosts = Arrays.stream(context.getTaskInfos()).map(info -> hostOf(info.address())).toArray(String[]::new);
    if (!settings.acrossMachines) checkOneMachine(hosts);
    Comm joined = null;
    boolean made = false;
    meeting = rank == 0 ? new Rendezvous(with(rendezvous(hosts[0], settings), settings.rendezvousOptions)) : null;
    try {
      String token = String.join("", context.allGather(meeting == null ? "" : meeting.token()));
      joined = join(rank, hosts.length, token, settings);
      joined.set(CommProperty.STEP_SECONDS, settings.stepSeconds);
      joined.set(CommProperty.SETUP_SECONDS, settings.setupSeconds);
      made = true;
    } finally {
      if (!made) closeAll(joined, control, meeting);
    }
    comm = joined;
    watch = new Thread(this::watch, "shardrec-task-watch-" + rank);
    watch.setDaemon(true);
    watch.start();
  }

  static void checkOneMachine(String[] hosts) {
    String[] machines = Arrays.stream(hosts).distinct().toArray(String[]::new);
    if (machines.length == 1) return;
    throw new IllegalStateException("the tasks of the stage are on several machines, " + String.join(", ", machines)
        + ": call acrossMachines(), which lets ranks send what they exchange over the network as clear text");
  }

  private static RendezvousOptions rendezvous(String host, Settings settings) {
    RendezvousOptions options = new RendezvousOptions();
    return settings.acrossMachines ? options.address(host).secret(settings.secret).allowPlainTcp(true) : options;
  }

  /** Of "host:port", also where the host is an address in brackets. */
  static String hostOf(String address) {
    int colon = address.lastIndexOf(':');
    String host = colon > address.lastIndexOf(']') ? address.substring(0, colon) : address;
    return host.startsWith("[") && host.endsWith("]") ? host.substring(1, host.length() - 1) : host;
  }

  /** On a thread of its own: until all have come there is no communicator that could be aborted. */
  private Comm join(int rank, int ranks, String token, Settings settings) throws InterruptedException {
    CommOptions options = with(new CommOptions().setupSeconds(settings.joinSeconds), settings.commOptions);
    if (settings.acrossMachines) options.allowPlainTcp(true);
    CompletableFuture<Comm> joined = new CompletableFuture<>();
    Thread joiner = new Thread(() -> {
      try {
        Comm made = new Comm(Engine.GLOO, rank, ranks, token, options);
        if (!joined.complete(made)) made.close(); // nobody waits any more
      } catch (Throwable failure) {
        joined.completeExceptionally(failure);
      }
    }, "shardrec-join-" + rank);
    joiner.setDaemon(true);
    joiner.start();
    try {
      while (true) {
        try {
          return joined.get(POLL_MILLISECONDS, TimeUnit.MILLISECONDS);
        } catch (TimeoutException notYet) {
          if (context.isInterrupted()) throw new TaskKilledException("killed while the ranks were meeting");
        }
      }
    } catch (ExecutionException failed) {
      if (failed.getCause() instanceof RuntimeException failure) throw failure;
      throw new IllegalStateException(failed.getCause());
    } finally {
      if (!joined.isDone()) joined.cancel(false);
    }
  }

  private void watch() {
    while (!closed) {
      if (wasKilled()) {
        control.cancel();
        comm.abort("the task of rank " + context.partitionId() + " was killed");
        return;
      }
      try {
        Thread.sleep(POLL_MILLISECONDS);
      } catch (InterruptedException looksEarlier) {
        // Only close() knows this thread.
      }
    }
  }

  /** Whether Spark wants the task to end. */
  boolean wasKilled() {
    return context.isInterrupted() || task.isInterrupted();
  }

  /** Ends the other ranks, with this one's reason: the driver shows the failure of whichever task it hears of first. */
  void fail(Throwable failure) {
    String reason = failure.getMessage() == null ? failure.toString() : failure.getMessage();
    byte[] utf8 = reason.getBytes(StandardCharsets.UTF_8); // half of a surrogate pair becomes "?"
    try {
      comm.abort("rank " + context.partitionId() + " has failed: " + new String(utf8, StandardCharsets.UTF_8).replace('\0', ' '));
    } catch (ShardRecException alreadyEnded) {
      failure.addSuppressed(alreadyEnded);
    }
  }

  Comm comm() {
    return comm;
  }

  /** Cancels what reads and writes files. */
  Control control() {
    return control;
  }

  /** Without it a rank that ends is lost to those that still wait. After the last collective call; collective. */
  void shutdown() {
    comm.shutdown();
  }

  @Override
  public void close() {
    closed = true;
    watch.interrupt();
    boolean interrupted = false;
    while (true) {
      try {
        watch.join();
        break;
      } catch (InterruptedException again) {
        interrupted = true;
      }
    }
    closeAll(comm, control, meeting);
    if (interrupted) Thread.currentThread().interrupt();
  }

  private static void closeAll(@Nullable AutoCloseable... handles) {
    for (AutoCloseable handle : handles) {
      try {
        if (handle != null) handle.close();
      } catch (Exception none) {
        throw new AssertionError("close of a handle throws nothing", none);
      }
    }
  }
}
