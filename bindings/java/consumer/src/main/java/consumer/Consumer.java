package consumer;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.shardrec.Activation;
import org.shardrec.Batch;
import org.shardrec.Comm;
import org.shardrec.EmbeddingCollection;
import org.shardrec.Engine;
import org.shardrec.Lookup;
import org.shardrec.Mlp;
import org.shardrec.MlpOptions;
import org.shardrec.Model;
import org.shardrec.Plan;
import org.shardrec.Pooling;
import org.shardrec.Rendezvous;
import org.shardrec.ShardRec;
import org.shardrec.Tensor;
import org.shardrec.Update;

/** A step on two threads and one over Gloo; then says which native libraries the process has of those that it was given. */
public final class Consumer {
  private Consumer() {}

  /**
   * Runs all of it.
   *
   * @param arguments none
   * @throws Exception what fails
   */
  public static void main(String[] arguments) throws Exception {
    ShardRec.run(2, Consumer::step);
    try (Rendezvous rendezvous = new Rendezvous(null)) {
      String token = rendezvous.token();
      List.of(CompletableFuture.runAsync(() -> overGloo(token, 0)), CompletableFuture.runAsync(() -> overGloo(token, 1)))
          .forEach(CompletableFuture::join);
    }
    try (var maps = Files.lines(Path.of("/proc/self/maps"))) {
      maps.map(line -> line.replaceFirst("^[^/]*", "")).filter(file -> file.matches(".*/lib(shardrec|tbb|sodium|gloo).*"))
          .distinct().sorted().forEach(System.out::println);
    }
  }

  private static void overGloo(String token, int rank) {
    try (Comm comm = new Comm(Engine.GLOO, rank, 2, token, null)) {
      step(comm);
    }
  }

  private static void step(Comm comm) {
    try (Model model = new Model()) {
      model.addFeature(model.addTable("items", 100, 8, null), "item", Pooling.SUM);
      try (Plan plan = Plan.collective(comm, null, model, null);
          EmbeddingCollection tables = new EmbeddingCollection(comm, null, model, plan, null);
          Lookup lookup = new Lookup(tables, null); Mlp mlp = new Mlp(8, new MlpOptions().seed(1))) {
        mlp.addLinear(1, Activation.NONE);
        Tensor out = Tensor.matrix(Tensor.floats(16), 2, 8), gradient = Tensor.matrix(Tensor.floats(16), 2, 8);
        Tensor logits = Tensor.matrix(Tensor.floats(2), 2, 1), logitGradient = Tensor.matrix(Tensor.floats(2), 2, 1);
        lookup.begin(new Batch(2, Tensor.vector(Tensor.longs(1, 50, 99)), Tensor.vector(Tensor.longs(2, 1))));
        lookup.forward(0, out);
        mlp.forward(out, logits);
        Tensor labels = Tensor.matrix(Tensor.floats(2).put(0, 1), 2, 1);
        if (!(ShardRec.bceWithLogits(null, logits, labels, null, logitGradient) > 0)) throw new IllegalStateException("no loss");
        mlp.backward(logitGradient, gradient);
        lookup.setGradient(0, gradient);
        lookup.backward(Update.APPLY);
        mlp.step();
        if (tables.step() != 1) throw new IllegalStateException("no step");
      }
    }
    comm.shutdown();
  }
}
