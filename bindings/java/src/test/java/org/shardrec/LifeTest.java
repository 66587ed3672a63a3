package org.shardrec;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BooleanSupplier;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** How handles and ranks end: closed, dropped, interrupted, by any failure. */
public final class LifeTest {
  static final double PATIENCE = 2; // seconds, until all ranks have ended; their deadline is 600

  public static void main(String[] arguments) throws Exception {
    closedHandlesAreRefused();
    whatTheLibraryWouldKeepOrOverwriteIsRefused();
    droppedHandlesAreClosedAndReportedOnce();
    parentsLiveAsLongAsTheirChildren();
    failuresHaveClasses();
    ranksEndWithTheFirstThatFails();
    interruptsEndAllRanks();
    eventually("live objects at the end", () -> ShardRec.liveObjects() == 0);
    System.out.println("java: ok");
  }

  static void closedHandlesAreRefused() {
    Model model = new Model();
    Options options = new Options(OptionsKind.TABLE);
    options.close();
    options.close();
    fails(Status.INVALID_HANDLE, "this Options is closed", () -> model.addTable("a", 3, 4, options));
    Options optimizer = new Options(OptionsKind.OPTIMIZER);
    optimizer.close();
    fails(Status.INVALID_HANDLE, "this Options is closed", () -> model.setOptimizer(optimizer));
    model.close();
    fails(Status.INVALID_HANDLE, "this Model is closed", model::toJson);
    fails(Status.INVALID_ARGUMENT, "", () -> ShardRec.run(-1, comm -> {}));
  }

  static void whatTheLibraryWouldKeepOrOverwriteIsRefused() {
    try (Options options = new Options(OptionsKind.LOOKUP)) {
      fails(Status.UNSUPPORTED, "BORROW", () -> options.set(OptionKey.BORROW, 1));
      fails(Status.UNSUPPORTED, "BORROW", () -> options.set(OptionKey.BORROW, "1"));
      options.set(OptionKey.BORROW, 0);
    }
    ByteBuffer bytes = ByteBuffer.allocateDirect(16).order(ByteOrder.nativeOrder());
    FloatBuffer readOnly = bytes.asFloatBuffer().asReadOnlyBuffer();
    try (Local group = new Local(1, 1); Comm comm = new Comm(group, 0)) {
      refused(() -> comm.broadcast(Tensor.vector(readOnly), 0));
      refused(() -> comm.allGather(Tensor.vector(readOnly), Tensor.vector(readOnly)));
      comm.allGather(Tensor.vector(readOnly), Tensor.vector(Tensor.floats(4)));
    }
  }

  static void droppedHandlesAreClosedAndReportedOnce() throws InterruptedException {
    List<String> messages = new CopyOnWriteArrayList<>();
    Logger logger = Logger.getLogger("org.shardrec");
    Handler handler = new Handler() {
      @Override
      public void publish(LogRecord entry) {
        messages.add(entry.getMessage());
      }

      @Override
      public void flush() {}

      @Override
      public void close() {}
    };
    logger.addHandler(handler);
    logger.setUseParentHandlers(false);
    for (int i = 0; i < 20_000; ++i) new Model();
    eventually("dropped models live on", () -> ShardRec.liveObjects() == 0);
    eventually("nobody was told", () -> messages.size() == 1);
    check(messages.get(0).startsWith("a Model was not closed"), messages.toString());
    new Options(OptionsKind.TABLE);
    eventually("nobody was told", () -> messages.size() == 2);
    new Model().close();
    logger.removeHandler(handler);
    logger.setUseParentHandlers(true);
  }

  /** A communicator's end would end the training on it. */
  static void parentsLiveAsLongAsTheirChildren() {
    Lookup lookup = lookupOfNobody();
    FloatBuffer out = Tensor.floats(4);
    for (int i = 0; i < 20; ++i) {
      System.gc();
      lookup.begin(1, Tensor.vector(Tensor.longs(2)), Tensor.vector(Tensor.longs(1)), null);
      lookup.forward(0, Tensor.matrix(out, 1, 4));
      lookup.setGradient(0, Tensor.matrix(out, 1, 4));
      lookup.backward();
    }
    lookup.close();
  }

  static Lookup lookupOfNobody() {
    Model model = new Model();
    model.addFeature(model.addTable("a", 3, 4, null), "id", Pooling.SUM);
    Comm comm = new Comm(new Local(1, 1), 0);
    return new Lookup(new EmbeddingCollection(comm, model, new Plan(comm, model, null), null), null);
  }

  static void failuresHaveClasses() throws Exception {
    Throwable thrown = inTime(() -> ShardRec.run(2, comm -> {
      comm.set(CommProperty.STEP_SECONDS, 0.1);
      if (comm.rank() == 0) comm.barrier();
      else Thread.sleep(500);
    }));
    check(thrown instanceof ShardRecException.Timeout && thrown instanceof ShardRecException.GroupFailure
        && ((ShardRecException) thrown).status() == Status.TIMEOUT, "thrown: " + thrown);
    thrown = inTime(() -> new Local(0, 1));
    check(thrown instanceof ShardRecException.InvalidCall, "thrown: " + thrown);
    for (Status status : Status.values()) {
      check(ShardRecException.of(status, "").status() == status, status.toString());
    }
    ShardRecException later = ShardRecException.of("299\0SHARDREC_LATER\0...\0\0\0\0\0\0\0\0\0".getBytes());
    check(later.status() == Status.PEER_FAILED && later.statusName().equals("SHARDREC_LATER"), later.toString());
  }

  static void ranksEndWithTheFirstThatFails() throws Exception {
    for (Throwable failure : new Throwable[] {
          new AssertionError("broken \ud83d at \0"), new IllegalStateException("first"), new StackOverflowError()}) {
      Throwable thrown = inTime(() -> ShardRec.run(3, comm -> {
        if (comm.rank() == 1) LifeTest.<RuntimeException>raise(failure);
        comm.barrier();
      }));
      check(thrown == failure, "thrown: " + thrown);
    }
    Throwable thrown = inTime(() -> ShardRec.run(2, comm -> {
      if (comm.rank() == 1) throw new IllegalStateException("first");
      try {
        comm.barrier();
      } catch (ShardRecException aborted) {
        throw new IllegalStateException("second");
      }
    }));
    check("first".equals(thrown.getMessage()) && thrown.getSuppressed().length == 1
        && "second".equals(thrown.getSuppressed()[0].getMessage()), "thrown: " + thrown);
  }

  static void interruptsEndAllRanks() throws Exception {
    Thread caller = Thread.currentThread();
    Throwable thrown = inTime(() -> ShardRec.run(3, comm -> {
      if (comm.rank() == 2) caller.interrupt();
      else comm.barrier();
    }));
    check(thrown instanceof InterruptedException, "thrown: " + thrown);
    thrown = inTime(() -> ShardRec.run(3, comm -> {
      if (comm.rank() == 2) Thread.currentThread().interrupt();
      else comm.barrier();
    }));
    check(thrown instanceof ShardRecException e && e.status() == Status.ABORTED
        && e.getMessage().contains("shardrec-rank-2 was interrupted"), "thrown: " + thrown);
  }

  interface Call {
    void run() throws Exception;
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

  @SuppressWarnings("unchecked")
  static <E extends Throwable> void raise(Throwable failure) throws E {
    throw (E) failure;
  }

  static void eventually(String otherwise, BooleanSupplier holds) throws InterruptedException {
    for (int i = 0; i < 500 && !holds.getAsBoolean(); ++i) {
      System.gc();
      Thread.sleep(20);
    }
    check(holds.getAsBoolean(), otherwise);
  }

  static void fails(Status status, String words, Call call) {
    try {
      call.run();
    } catch (ShardRecException e) {
      check(e.status() == status && e.getMessage().contains(words), e.getMessage());
      return;
    } catch (Exception e) {
      throw new AssertionError(e);
    }
    throw new AssertionError("accepted");
  }

  static void refused(Runnable call) {
    try {
      call.run();
    } catch (IllegalArgumentException expected) {
      return;
    }
    throw new AssertionError("accepted");
  }

  static void check(boolean holds, String message) {
    if (!holds) throw new AssertionError(message);
  }
}
