package org.example;

import java.nio.FloatBuffer;
import java.util.Locale;
import org.shardrec.*;

/**
 * A first program: two ranks, threads of this process, share an embedding table and train it until the numbers of each user's
 * row add up to 1.
 */
public final class First {
  static final int RANKS = 2, BATCH = 4, DIM = 8, STEPS = 20;

  public static void main(String[] arguments) throws Exception {
    double[] losses = new double[RANKS];
    ShardRec.run(RANKS, comm -> losses[comm.rank()] = train(comm));
    System.out.printf(Locale.ROOT, "last losses: %.5e, %.5e%n", losses[0], losses[1]);
    if (losses[0] > 0.01 || losses[1] > 0.01) System.exit(1);
  }

  /** Trains on one rank; returns its last loss. */
  static double train(Comm comm) {
    try (Model model = new Model()) {
      model.addFeature(model.addTable("user", 1000, DIM, null), "user_id", Pooling.SUM);
      try (Plan plan = Plan.collective(comm, null, model, null); // which rows live where
          EmbeddingCollection tables = new EmbeddingCollection(comm, null, model, plan, null);
          Lookup step = new Lookup(tables, null)) {
        tables.setLearningRate(ShardRec.ALL_TABLES, 0.1);
        Tensor ids = Tensor.vector(Tensor.longs(0, 11, 222, 900 + comm.rank()));
        Tensor lengths = Tensor.vector(Tensor.longs(1, 1, 1, 1)); // four bags of one id
        FloatBuffer pooled = Tensor.floats(BATCH * DIM), gradient = Tensor.floats(BATCH * DIM);
        double loss = 0;
        for (int s = 0; s < STEPS; ++s) {
          step.begin(new Batch(BATCH, ids, lengths));
          step.forward(0, Tensor.matrix(pooled, BATCH, DIM));
          loss = 0;
          for (int bag = 0; bag < BATCH; ++bag) {
            float error = -1;
            for (int c = 0; c < DIM; ++c) error += pooled.get(bag * DIM + c);
            loss += error * error / BATCH;
            for (int c = 0; c < DIM; ++c) gradient.put(bag * DIM + c, 2 * error / BATCH);
          }
          step.setGradient(0, Tensor.matrix(gradient, BATCH, DIM));
          step.backward(Update.APPLY); // exchanges gradients, updates rows
        }
        return loss;
      }
    }
  }
}
