package org.shardrec;

import static org.shardrec.Checks.*;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** How handles and ranks end: closed, dropped, interrupted, by any failure. */
public final class LifeTest {
  public static void main(String[] arguments) throws Exception {
    closedHandlesAreRefused();
    whatTheLibraryWouldOverwriteIsRefused();
    droppedHandlesAreClosedAndReportedOnce();
    parentsLiveAsLongAsTheirChildren();
    failuresHaveClasses();
    optionsAreCheckedWhereTheyAreUsed();
    stepsAllocateNothing();
    theLogGoesToTheHostsLogger();
    errorsBelongToTheirCall();
    collectionsDuringTrainingChangeNothing();
    whatIsDroppedLeavesNothing();
    ranksEndWithTheFirstThatFails();
    interruptsEndAllRanks();
    eventually("live objects at the end", () -> ShardRec.liveObjects() == 0);
    System.out.println("java: ok");
  }

  static void closedHandlesAreRefused() {
    Model model = new Model();
    Local group = new Local(1, 1);
    Comm comm = Comm.createLocal(group, 0);
    group.close();
    group.close();
    fails(Status.INVALID_HANDLE, "this Local is closed", () -> Comm.createLocal(group, 0));
    Plan plan = Plan.collective(comm, null, model, null);
    plan.close();
    fails(Status.INVALID_HANDLE, "this Plan is closed", () -> new EmbeddingCollection(comm, null, model, plan, null));
    comm.close();
    model.close();
    fails(Status.INVALID_HANDLE, "this Model is closed", model::toJson);
    fails(Status.INVALID_ARGUMENT, "", () -> ShardRec.run(-1, rank -> {}));
  }

  static void whatTheLibraryWouldOverwriteIsRefused() {
    ByteBuffer bytes = ByteBuffer.allocateDirect(16).order(ByteOrder.nativeOrder());
    FloatBuffer readOnly = bytes.asFloatBuffer().asReadOnlyBuffer();
    try (Local group = new Local(1, 1); Comm comm = Comm.createLocal(group, 0)) {
      refused(() -> comm.broadcast(Tensor.vector(readOnly), 0));
      refused(() -> comm.allGather(Tensor.vector(readOnly), Tensor.vector(readOnly)));
      comm.allGather(Tensor.vector(readOnly), Tensor.vector(Tensor.floats(4)));
    }
  }

  static void droppedHandlesAreClosedAndReportedOnce() throws InterruptedException {
    List<String> messages = new CopyOnWriteArrayList<>();
    Logger logger = Logger.getLogger("org.shardrec");
    Handler handler = recorder(messages);
    logger.addHandler(handler);
    logger.setUseParentHandlers(false);
    for (int i = 0; i < 20_000; ++i) new Model();
    eventually("dropped models live on", () -> ShardRec.liveObjects() == 0);
    eventually("nobody was told", () -> messages.size() == 1);
    check(messages.get(0).startsWith("a Model was not closed"), messages.toString());
    new Local(1, 1);
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
      lookup.begin(new Batch(1, Tensor.vector(Tensor.longs(2)), Tensor.vector(Tensor.longs(1))));
      lookup.forward(0, Tensor.matrix(out, 1, 4));
      lookup.setGradient(0, Tensor.matrix(out, 1, 4));
      lookup.backward(Update.APPLY);
    }
    lookup.close();
  }

  static Lookup lookupOfNobody() {
    Model model = new Model();
    model.addFeature(model.addTable("a", 3, 4, null), "id", Pooling.SUM);
    Comm comm = Comm.createLocal(new Local(1, 1), 0);
    return new Lookup(new EmbeddingCollection(comm, null, model, Plan.collective(comm, null, model, null), null), null);
  }

  static void errorsBelongToTheirCall() throws Exception {
    Thread[] threads = new Thread[16];
    AtomicReference<Throwable> failure = new AtomicReference<>();
    for (int t = 0; t < threads.length; ++t) {
      long own = -1 - t;
      threads[t] = new Thread(() -> {
        try (Model model = new Model()) {
          for (int i = 0; i < 500; ++i) {
            fails(Status.INVALID_ARGUMENT, String.valueOf(own), () -> model.addTable("a", own, 4, null));
          }
        } catch (Throwable thrown) {
          failure.set(thrown);
        }
      });
      threads[t].start();
    }
    for (Thread thread : threads) thread.join();
    if (failure.get() != null) throw new AssertionError(failure.get());
  }

  /** Weights of two ranks whose every buffer is made anew and dropped, with or without a collector that never rests. */
  static void collectionsDuringTrainingChangeNothing() throws Exception {
    float[] calm = trained();
    AtomicBoolean ended = new AtomicBoolean();
    Thread storm = new Thread(() -> {
      while (!ended.get()) System.gc();
    });
    storm.start();
    float[] stormy = trained();
    ended.set(true);
    storm.join();
    check(Arrays.equals(calm, stormy) && calm[4] != 0, "other weights: " + Arrays.toString(stormy));
  }

  static float[] trained() throws Exception {
    AtomicReference<float[]> weights = new AtomicReference<>();
    ShardRec.run(2, comm -> {
      Model model = new Model();
      model.addFeature(model.addTable("a", 6, 4, null), "id", Pooling.SUM);
      Plan plan = Plan.collective(comm, null, model, new PlanOptions().sharding(Sharding.ROW_WISE));
      EmbeddingCollection tables = new EmbeddingCollection(comm, null, model, plan, null);
      Lookup lookup = new Lookup(tables, null);
      Mlp mlp = new Mlp(4, new MlpOptions().seed(1));
      mlp.addLinear(2, Activation.NONE);
      for (int step = 0; step < 100; ++step) {
        FloatBuffer out = Tensor.floats(8), gradient = Tensor.floats(8);
        lookup.begin(new Batch(2, Tensor.vector(Tensor.longs(step % 6, 1, comm.rank())), Tensor.vector(Tensor.longs(2, 1))));
        lookup.forward(0, Tensor.matrix(out, 2, 4));
        mlp.forward(Tensor.matrix(out, 2, 4), Tensor.matrix(Tensor.floats(4), 2, 2));
        mlp.backward(Tensor.matrix(Tensor.floats(4).put(0, 1).put(3, 1), 2, 2), Tensor.matrix(gradient, 2, 4));
        lookup.setGradient(0, Tensor.matrix(gradient, 2, 4));
        lookup.backward(Update.APPLY);
      }
      FloatBuffer all = Tensor.floats(24);
      tables.readRange(0, TablePart.WEIGHTS, 0, 6, Tensor.matrix(all, 6, 4));
      float[] copy = new float[24];
      all.get(copy);
      weights.set(copy);
      comm.shutdown();
    });
    return weights.get();
  }

  static void whatIsDroppedLeavesNothing() throws Exception {
    dropModels(1000);
    // What the JVM takes for itself, to compile for example, grows once; what is lost grows every time.
    long least = Long.MAX_VALUE;
    for (int round = 0; round < 4 && least > 3000; ++round) {
      long before = liveBlocks();
      dropModels(9000);
      least = Math.min(least, liveBlocks() - before);
    }
    check(least <= 3000, least + " blocks of memory or more stay of every 9,000 models");
  }

  static void dropModels(int count) throws Exception {
    for (int model = 1; model <= count; ++model) {
      dropAModel();
      if (model % 1000 == 0) eventually("dropped models live on", () -> ShardRec.liveObjects() == 0);
    }
  }

  static void dropAModel() {
    Model model = new Model();
    fails(Status.INVALID_ARGUMENT, "", () -> model.addTable("a", -1, 4, null));
  }

  /**
   * How many blocks of memory the process has from malloc: a count, which no other program moves. It is that of a library
   * that is preloaded (bindings/checks/live_blocks.c), in a file; 0 without it.
   */
  static long liveBlocks() throws Exception {
    String file = System.getenv("SHARDREC_LIVE_BLOCKS");
    if (file == null || file.isEmpty()) return 0;
    return ByteBuffer.wrap(Files.readAllBytes(Path.of(file))).order(ByteOrder.nativeOrder()).getLong();
  }

  static void theLogGoesToTheHostsLogger() throws Exception {
    List<String> messages = new CopyOnWriteArrayList<>();
    Handler handler = recorder(messages);
    Logger logger = Logger.getLogger("org.shardrec.test");
    logger.addHandler(handler);
    logger.setUseParentHandlers(false);
    ShardRec.LogForwarding forwarding = ShardRec.forwardLog(System.getLogger("org.shardrec.test"));
    try {
      ShardRec.run(2, comm -> {
        comm.set(CommProperty.WARN_SECONDS, 0.05);
        if (comm.rank() == 1) Thread.sleep(400);
        comm.barrier();
      });
      eventually("nobody was told", () -> messages.stream().anyMatch(text -> text.contains("rank 1")));
    } finally {
      forwarding.close();
    }
    logger.removeHandler(handler);
  }

  static Handler recorder(List<String> messages) {
    return new Handler() {
      @Override
      public void publish(LogRecord entry) {
        messages.add(entry.getMessage());
      }

      @Override
      public void flush() {}

      @Override
      public void close() {}
    };
  }

  static void stepsAllocateNothing() {
    Lookup lookup = lookupOfNobody();
    Tensor ids = Tensor.vector(Tensor.longs(0, 1, 2, 0, 1, 2)), lengths = Tensor.vector(Tensor.longs(1, 1, 1, 1, 1, 1));
    Tensor out = Tensor.matrix(Tensor.floats(24), 6, 4);
    Batch given = new Batch();
    var threads = (com.sun.management.ThreadMXBean) java.lang.management.ManagementFactory.getThreadMXBean();
    threads.getCurrentThreadAllocatedBytes();
    // What the JVM makes once, when it compiles what runs for example, is no allocation of a step.
    long least = Long.MAX_VALUE;
    for (int round = 0; round < 5 && least >= 200; ++round) { // what asking costs
      long before = threads.getCurrentThreadAllocatedBytes();
      for (int step = 0; step < 200; ++step) {
        int size = step % 7;
        lookup.begin(given.set(size, ids.resize(size), lengths.resize(size)));
        lookup.forward(0, out.resize(size));
        lookup.setGradient(0, out);
        lookup.backward(Update.APPLY);
      }
      least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
    }
    check(least < 200, "bytes allocated in 200 steps, or more: " + least);
    lookup.close();
    refused(() -> ids.resize(7));
    refused(() -> ids.resize(-1));
    refused(() -> out.resize(Long.MAX_VALUE / 2));
    check(ids.resize(6) == ids, "a refused size was taken");
  }

  static void optionsAreCheckedWhereTheyAreUsed() {
    TableOptions table = new TableOptions().dtype(Dtype.FLOAT16).initMax(1).minColumns(2).allowedSharding("row_wise, grid");
    check(table.text(OptionKey.DTYPE).equals("float16") && table.text(OptionKey.INIT_MAX).equals("1")
        && table.text(OptionKey.ALLOWED_SHARDING).equals("row_wise, grid"), table.text(OptionKey.ALLOWED_SHARDING));
    check(new CollectionOptions().deduplicate(true).text(OptionKey.DEDUPLICATE).equals("1"), "a flag");
    fails(Status.INVALID_ARGUMENT, "PORT", () -> new RendezvousOptions().port(-1).text(OptionKey.PORT));
    fails(Status.INVALID_ARGUMENT, "PLAN", () -> new PlanOptions().text(OptionKey.PORT));
    try (Model model = new Model()) {
      fails(Status.INVALID_ARGUMENT, "MIN_COLUMNS", () -> model.addTable("a", 3, 4, new TableOptions().minColumns(0)));
      check(model.addTable("a", 3, 4, table) == 0 && model.addTable("b", 3, 4, table) == 1, "options are used twice");
      check(model.toJson().contains("float16"), model.toJson());
    }
  }

  static void failuresHaveClasses() throws Exception {
    Throwable thrown = inTime(() -> ShardRec.run(2, comm -> {
      comm.set(CommProperty.STEP_SECONDS, 0.1);
      if (comm.rank() == 0) comm.barrier();
      else Thread.sleep(500);
    }));
    check(thrown instanceof ShardRecException.Timeout && thrown instanceof ShardRecException.GroupFailure
        && ((ShardRecException) thrown).status() == Status.TIMEOUT, "thrown: " + thrown);
    thrown = inTime(() -> ShardRec.run(2, comm -> {
      try (Model model = new Model()) {
        model.addTable("t", 10 + comm.rank(), 4, null);
        try {
          Plan.collective(comm, null, model, null).close();
          throw new AssertionError("accepted");
        } catch (ShardRecException.Disagreement differs) {
          check(differs.getMessage().contains("rows of table"), differs.getMessage());
        }
      }
      comm.barrier(); // they go on
    }));
    check(thrown == null, "thrown: " + thrown);
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
}
