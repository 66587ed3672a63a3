package org.shardrec;

/** This rank's boxes of the sharded tables; one thread at a time, its lookups included. */
public final class EmbeddingCollection extends Handle {
  /** Collective. options may be null. */
  public EmbeddingCollection(Comm comm, Model model, Plan plan, CollectionOptions options) {
    super(out -> Options.use(options, made -> Capi.collection_create(comm, model, plan, made, out)),
        Capi::collection_destroy, comm);
  }

  /** Number of applied updates. */
  public long step() {
    long[] out = new long[1];
    Capi.collection_step(this, out);
    return out[0];
  }

  public void setLearningRate(double learningRate) {
    Capi.collection_set_learning_rate(this, learningRate);
  }

  /** Reads whole rows, wherever they live; collective. */
  public void read(int table, TablePart part, long row, long rows, Tensor out) {
    Capi.collection_read(this, table, part.value, row, rows, Tensor.writable(out));
  }

  /** Writes whole rows; collective. */
  public void write(int table, TablePart part, long row, long rows, Tensor values) {
    Capi.collection_write(this, table, part.value, row, rows, values);
  }

  /** Reads the rows that ids name (ints or longs), wherever they live; ids and out may be null: nothing. Collective. */
  public void readRows(int table, TablePart part, Tensor ids, Tensor out) {
    Capi.collection_read_rows(this, table, part.value, ids, Tensor.writable(out));
  }

  /** Writes the rows that ids name; as readRows. */
  public void writeRows(int table, TablePart part, Tensor ids, Tensor values) {
    Capi.collection_write_rows(this, table, part.value, ids, values);
  }
}
