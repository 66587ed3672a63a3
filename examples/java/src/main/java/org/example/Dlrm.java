package org.example;

import java.util.Locale;
import org.shardrec.*;

/**
 * A DLRM from the first step to serving: sharded tables, dense layers trained data-parallel, checkpoints, a scorer.
 *
 * <pre>
 *   java -cp "target/dlrm.jar:target/lib/*" org.example.Dlrm train DIR     50 steps on 2 ranks, threads; saved in DIR
 *   ... resume DIR     50 more on 3 ranks
 *   ... serve DIR      scores the test samples, from two threads
 * </pre>
 *
 * Ranks may be processes: shardrec launch --nproc 2 -- java ... train DIR. The same program stands in examples/cpp,
 * examples/go and examples/rust; their checkpoints are equal, byte for byte.
 */
public final class Dlrm implements AutoCloseable {
  private static final int FEATURES = Clicks.FEATURES, DENSE = Clicks.DENSE;
  private static final int DIM = 16; // columns of a table
  private static final int BATCH = 256, STEPS = 50; // samples of all ranks together; steps of a run
  private static final int TEST_FROM = 1_000_000, TEST = 2048;

  private final Comm comm;
  private final Model model = makeModel();
  private final Plan plan;
  private final EmbeddingCollection tables;
  private final Lookup lookup;
  private final Interaction interaction = new Interaction(FEATURES, DIM, null);
  private final Mlp bottom = makeLayers(1, DENSE, DIM), top = makeLayers(2, interaction.outputs(), 1);
  private final Ddp ddp;
  private final Metrics metrics;

  private Dlrm(Comm comm) {
    this.comm = comm;
    plan = Plan.collective(comm, null, model, null);
    tables = new EmbeddingCollection(comm, null, model, plan, new CollectionOptions().seed(7));
    lookup = new Lookup(tables, null);
    ddp = new Ddp(comm, null);
    metrics = new Metrics(comm, null);
    ddp.addMlp("bottom", bottom);
    ddp.addMlp("top", top);
    ddp.commit();
  }

  private static Model makeModel() {
    Model model = new Model();
    for (int f = 0; f < FEATURES; ++f) {
      model.addFeature(model.addTable("table" + f, Clicks.ROWS, DIM, null), "feature" + f, Pooling.SUM);
    }
    model.setOptimizer(ShardRec.ALL_TABLES, new OptimizerOptions().optimizer(Optimizer.ROWWISE_ADAGRAD).learningRate(0.1));
    return model;
  }

  private static Mlp makeLayers(long seed, long inputs, long outputs) {
    Mlp layers = new Mlp(inputs, new MlpOptions().seed(seed).optimizer(Optimizer.ADAGRAD).learningRate(0.02));
    layers.addLinear(16, Activation.RELU);
    layers.addLinear(outputs, Activation.NONE);
    return layers;
  }

  private static Tensor matrix(int rows, long columns) {
    return Tensor.matrix(Tensor.floats(rows * (int) columns), rows, columns);
  }

  /** What a batch becomes on its way forward, or its gradient on the way back. */
  private final class Values {
    final Tensor pooled, dense, crossed, logits;

    Values(int size) {
      pooled = matrix(size, FEATURES * DIM);
      dense = matrix(size, DIM);
      crossed = matrix(size, interaction.outputs());
      logits = matrix(size, 1);
    }
  }

  /** This rank's part of samples [from, from + samples). */
  private Clicks.Batch share(long from, int samples) {
    int first = samples * comm.rank() / comm.size(), last = samples * (comm.rank() + 1) / comm.size();
    return Clicks.batch(from + first, last - first);
  }

  private Values forward(Clicks.Batch batch) {
    Values values = new Values(batch.size);
    lookup.begin(new Batch(batch.size, Tensor.vector(batch.ids), Tensor.vector(batch.lengths)));
    bottom.forward(Tensor.matrix(batch.dense, batch.size, DENSE), values.dense);
    lookup.forward(0, values.pooled);
    interaction.forward(values.dense, values.pooled, values.crossed);
    top.forward(values.crossed, values.logits);
    return values;
  }

  private void train(long step) {
    Clicks.Batch batch = share(step * BATCH, BATCH);
    Values values = forward(batch), gradient = new Values(batch.size);
    ShardRec.bceWithLogits(null, values.logits, Tensor.vector(batch.labels), null, gradient.logits);
    ddp.begin(true);
    top.backward(gradient.logits, gradient.crossed);
    interaction.backward(gradient.crossed, gradient.dense, gradient.pooled);
    lookup.setGradient(0, gradient.pooled);
    lookup.sendGradients(Update.APPLY); // travel while the bottom layers compute
    bottom.backward(gradient.dense, null);
    ddp.end();
    lookup.backward(Update.APPLY);
    ddp.await(); // the mean over the ranks is there
    bottom.step();
    top.step();
  }

  /** The area under the ROC curve of all ranks' test samples together. */
  private double test() {
    Clicks.Batch batch = share(TEST_FROM, TEST);
    Tensor probabilities = matrix(batch.size, 1), labels = Tensor.vector(batch.labels);
    ShardRec.bceWithLogits(null, forward(batch).logits, labels, probabilities, null);
    metrics.reset();
    metrics.update(probabilities, labels);
    metrics.compute();
    return metrics.get(Metric.AUC);
  }

  private void run(String directory, boolean resume) {
    try (Checkpoint checkpoint = new Checkpoint(comm, directory, null)) {
      checkpoint.addCollection("tables", tables);
      checkpoint.addMlp("bottom", bottom);
      checkpoint.addMlp("top", top);
      var position = Tensor.longs(0); // what else a run needs to go on: where it is in the data
      if (resume) {
        checkpoint.open(-1);
        checkpoint.load(null);
        checkpoint.getTensor("position", 0, Tensor.vector(position));
      }
      long begin = position.get(0), end = begin + STEPS;
      for (long step = begin; step < end; ++step) train(step);
      checkpoint.setTensor("position", Tensor.vector(position.put(0, end)));
      checkpoint.commit(end, null);
      double auc = test();
      if (comm.rank() == 0) System.out.printf(Locale.ROOT, "step %d, %d ranks: test AUC %.4f%n", end, comm.size(), auc);
    }
  }

  @Override
  public void close() {
    metrics.close();
    ddp.close();
    top.close();
    bottom.close();
    interaction.close();
    lookup.close();
    tables.close();
    plan.close();
    model.close();
  }

  private static void train(String directory, boolean resume) throws Exception {
    if (System.getenv("WORLD_SIZE") != null) { // this process is a rank
      try (Comm comm = Comm.createFromEnv(null)) {
        try (Dlrm dlrm = new Dlrm(comm)) {
          dlrm.run(directory, resume);
        }
        comm.shutdown();
      }
    } else {
      ShardRec.run(resume ? 3 : 2, comm -> {
        try (Dlrm dlrm = new Dlrm(comm)) {
          dlrm.run(directory, resume);
        }
      });
    }
  }

  /** Every thread may call the scorer at any time; this is all that a service needs of the checkpoint. */
  private static void serve(String directory) throws Exception {
    try (Scorer scorer = Scorer.open(directory, -1, null, null); Metrics metrics = new Metrics(null, null)) {
      var scores = Tensor.floats(TEST);
      Thread other = new Thread(() -> score(scorer, TEST / 2, scores));
      other.start();
      score(scorer, 0, scores);
      other.join();
      metrics.update(Tensor.vector(scores), Tensor.vector(Clicks.batch(TEST_FROM, TEST).labels));
      metrics.compute();
      System.out.printf(Locale.ROOT, "serving step %d: test AUC %.4f%n", scorer.info().step(), metrics.get(Metric.AUC));
    }
  }

  private static void score(Scorer scorer, int first, java.nio.FloatBuffer scores) {
    Clicks.Batch batch = Clicks.batch(TEST_FROM + first, TEST / 2);
    scorer.predict(new Batch(batch.size, Tensor.vector(batch.ids), Tensor.vector(batch.lengths)), Tensor.matrix(batch.dense, batch.size, DENSE), Tensor.vector(scores.slice(first, batch.size)));
  }

  public static void main(String[] arguments) throws Exception {
    String what = arguments.length == 2 ? arguments[0] : "";
    switch (what) {
      case "train", "resume" -> train(arguments[1], what.equals("resume"));
      case "serve" -> serve(arguments[1]);
      default -> throw new IllegalArgumentException("usage: Dlrm train|resume|serve DIR");
    }
  }
}
