package org.shardrec;

import static org.shardrec.Checks.*;

import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;

/** Interrupts, controls and the failure of a rank end long calls on all ranks, as they end steps. */
public final class CancelTest {
  static Path folder;

  public static void main(String[] arguments) throws Exception {
    inFolder(made -> {
      folder = made;
      aProbeEndsWithItsThreadsInterrupt();
      anInterruptBeforeTheCallCancelsIt();
      savesEndWithTheCallersInterrupt();
      commitsEndWithARanksInterrupt();
      probesEndWithTheFirstThatFails();
      savesEndByTheirControl();
      ranksOfTheHostEndWithTheirThreads();
    });
    check(ShardRec.liveObjects() == 0, "live objects at the end: " + ShardRec.liveObjects());
    System.out.println("java: ok");
  }

  static void aProbeEndsWithItsThreadsInterrupt() throws Exception {
    AtomicReference<Throwable> thrown = new AtomicReference<>();
    try (Control control = new Control()) {
      Thread thread = new Thread(() -> {
        try {
          ShardRec.probeJson("cpu", 1, false, control);
        } catch (Throwable failure) {
          thrown.set(failure);
          check(Thread.currentThread().isInterrupted(), "the interrupt is gone");
        }
      });
      thread.start();
      awaitProgress(control);
      inTime(() -> {
        thread.interrupt();
        thread.join();
      });
      check(thrown.get() instanceof ShardRecException.Cancelled, "thrown: " + thrown);
    }
  }

  /** However short the call is. */
  static void anInterruptBeforeTheCallCancelsIt() throws Exception {
    try (Local group = new Local(1, 1); Comm comm = Comm.createLocal(group, 0)) {
      onTables(comm, 1, (same, tables) -> {
        Thread.currentThread().interrupt();
        fails(Status.CANCELLED, () -> save(same, tables, "never", null));
        check(Thread.interrupted(), "the interrupt is gone");
      });
    }
  }

  /** A collection whose files take their time. */
  interface Work {
    void of(Comm comm, EmbeddingCollection tables) throws Exception;
  }

  static void onTables(Comm comm, long rows, Work work) throws Exception {
    try (Model model = new Model()) {
      model.addFeature(model.addTable("a", rows, 64, new TableOptions().init(Init.ZEROS)), "id", Pooling.SUM);
      try (Plan plan = Plan.collective(comm, null, model, null);
          EmbeddingCollection tables = new EmbeddingCollection(comm, null, model, plan, null)) {
        work.of(comm, tables);
      }
    }
  }

  /** Into a folder of its own; control may be null. */
  static void save(Comm comm, EmbeddingCollection tables, String name, Control control) {
    try (Checkpoint checkpoint = new Checkpoint(comm, folder.resolve(name).toString(), null)) {
      checkpoint.addCollection("tables", tables);
      checkpoint.commit(1, control);
    }
  }

  static void savesEndWithTheCallersInterrupt() throws Exception {
    Thread caller = Thread.currentThread();
    AtomicReference<Long> asked = new AtomicReference<>();
    Throwable thrown = thrownBy(() -> ShardRec.run(2, comm -> onTables(comm, 4_000_000, (same, tables) -> {
      try (Control control = new Control()) {
        Thread watcher = new Thread(() -> {
          awaitProgress(control);
          asked.set(System.nanoTime());
          caller.interrupt();
        });
        if (comm.rank() == 0) watcher.start();
        save(same, tables, "interrupted", control);
      }
    })));
    soonAfter(asked.get());
    check(thrown instanceof InterruptedException && thrown.getCause() instanceof ShardRecException e
        && (e.status() == Status.CANCELLED || e.status() == Status.ABORTED), "thrown: " + thrown + " by " + thrown.getCause());
  }

  /** The others wait for the one that does not come; the deadline of a commit is half an hour. */
  static void commitsEndWithARanksInterrupt() throws Exception {
    Throwable thrown = inTime(() -> ShardRec.run(3, comm -> onTables(comm, 100, (same, tables) -> {
      try (Checkpoint checkpoint = new Checkpoint(comm, folder.resolve("run").toString(), null)) {
        checkpoint.addCollection("tables", tables);
        comm.barrier();
        if (comm.rank() == 1) Thread.sleep(200);
        if (comm.rank() == 1) Thread.currentThread().interrupt();
        else checkpoint.commit(1, null);
      }
    })));
    check(thrown instanceof ShardRecException e && e.getMessage().contains("shardrec-rank-1 was interrupted"),
        "thrown: " + thrown);
  }

  /** A call that no communicator takes part in, and whose time does not depend on the machine. */
  static void probesEndWithTheFirstThatFails() throws Exception {
    CountDownLatch begun = new CountDownLatch(1);
    AtomicReference<Long> asked = new AtomicReference<>();
    AtomicReference<Throwable> ended = new AtomicReference<>();
    Throwable thrown = thrownBy(() -> ShardRec.run(2, comm -> {
      if (comm.rank() == 1) {
        begun.await();
        asked.set(System.nanoTime());
        throw new IllegalStateException("first");
      }
      try (Control control = new Control()) {
        new Thread(() -> {
          awaitProgress(control);
          begun.countDown();
        }).start();
        ShardRec.probeJson("cpu", 1, false, control);
      } catch (ShardRecException e) {
        ended.set(e);
        throw e;
      }
    }));
    soonAfter(asked.get());
    check("first".equals(thrown.getMessage()) && thrown.getSuppressed().length == 0, "thrown: " + thrown);
    check(ended.get() instanceof ShardRecException.Cancelled, "the other rank: " + ended);
  }

  /** The control of one rank ends the call on both, and the collection is as good as before. */
  static void savesEndByTheirControl() throws Exception {
    AtomicReference<Long> asked = new AtomicReference<>();
    Throwable thrown = thrownBy(() -> ShardRec.run(2, comm -> {
      onTables(comm, 4_000_000, (same, tables) -> {
        try (Control control = new Control()) {
          Thread other = new Thread(() -> {
            awaitProgress(control);
            asked.set(System.nanoTime());
            control.cancel();
          });
          if (comm.rank() == 1) other.start();
          fails(Status.CANCELLED, () -> save(same, tables, "cancelled", control));
          if (comm.rank() == 1) soonAfter(asked.get());
          comm.barrier();
        }
      });
      onTables(comm, 100, (same, tables) -> {
        try (Control control = new Control()) {
          save(same, tables, "saved", control);
          Control.Progress progress = control.progress();
          check(progress.done() == progress.total(), progress.toString()); // 0 of 0 on a rank that has no rows
        }
      });
      comm.shutdown();
    }));
    check(thrown == null, "thrown: " + thrown);
  }

  /** Ranks as threads that ShardRec.run did not make; over Gloo, as processes do. */
  static void ranksOfTheHostEndWithTheirThreads() throws Exception {
    try (Local group = new Local(2, 2)) {
      endsWithTheThread(() -> Comm.createLocal(group, 0), () -> Comm.createLocal(group, 1));
    }
    try (Rendezvous meeting = new Rendezvous(null)) {
      String token = meeting.token();
      endsWithTheThread(() -> new Comm(Engine.GLOO, 0, 2, token, null), () -> new Comm(Engine.GLOO, 1, 2, token, null));
    }
    // Closed: an interrupt ends nothing.
    try (Local group = new Local(1, 1); Comm alone = Comm.createLocal(group, 0)) {
      alone.abortOnInterrupt().close();
      Thread.currentThread().interrupt();
      try (Control control = new Control()) {
        fails(Status.CANCELLED, () -> ShardRec.probeJson("cpu", 1, false, control)); // the interrupt has been seen
      }
      alone.barrier();
      check(Thread.interrupted(), "the interrupt is gone");
    }
  }

  /** The first waits for the other one, which computes and asks now and then how the group is. */
  static void endsWithTheThread(Supplier<Comm> first, Supplier<Comm> second) throws Exception {
    AtomicReference<Throwable> own = new AtomicReference<>(), others = new AtomicReference<>();
    CountDownLatch ready = new CountDownLatch(2);
    Thread interrupted = new Thread(() -> {
      try (Comm comm = first.get(); Comm.InterruptGuard guard = comm.abortOnInterrupt()) {
        check(guard != null, "a guard");
        ready.countDown();
        comm.reduceScatter(Tensor.vector(floats(1, 2)), Tensor.vector(floats(0)), Reduction.SUM);
        comm.broadcast(Tensor.vector(floats(1)), 1);
      } catch (Throwable failure) {
        own.set(failure);
      }
    }, "of-the-host");
    Thread other = new Thread(() -> {
      try (Comm comm = second.get()) {
        ready.countDown();
        comm.reduceScatter(Tensor.vector(floats(1, 2)), Tensor.vector(floats(0)), Reduction.SUM);
        while (true) { // the root of the broadcast never comes
          Thread.sleep(1);
          comm.check();
        }
      } catch (Throwable failure) {
        others.set(failure);
      }
    });
    interrupted.start();
    other.start();
    ready.await();
    Thread.sleep(100);
    inTime(() -> {
      interrupted.interrupt();
      interrupted.join();
      other.join();
    });
    for (Throwable thrown : new Throwable[] {own.get(), others.get()}) {
      check(thrown instanceof ShardRecException.Aborted && thrown.getMessage().contains("of-the-host was interrupted"),
          "thrown: " + thrown);
    }
  }

  static void awaitProgress(Control control) {
    while (control.progress().done() == 0) Thread.onSpinWait();
  }

  static Throwable thrownBy(Call call) {
    try {
      call.run();
    } catch (Throwable thrown) {
      return thrown;
    }
    return null;
  }

  static void soonAfter(Long nanoTime) {
    check(nanoTime != null, "nobody has asked to end");
    double seconds = (System.nanoTime() - nanoTime) * 1e-9;
    check(seconds < PATIENCE, "ended after " + seconds + " s");
  }
}
