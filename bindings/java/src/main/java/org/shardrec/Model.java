package org.shardrec;

/** The tables, the features looked up in them, and how they are trained; the same on every rank. */
public final class Model extends Handle {
  public Model() {
    super(out -> Capi.model_create(null, out), Capi::model_destroy);
  }

  /** Returns the table's index; options may be null. */
  public int addTable(String name, long rows, long dim, TableOptions options) {
    int[] out = new int[1];
    Options.use(options, made -> Capi.model_add_table(this, name, rows, dim, made, out));
    return out[0];
  }

  public void addFeature(int table, String name, Pooling pooling) {
    Capi.model_add_feature(this, table, name, pooling.value);
  }

  public void setOptimizer(OptimizerOptions options) {
    Options.use(options, made -> Capi.model_set_optimizer(this, made));
  }

  public String toJson() {
    String[] out = new String[1];
    Capi.model_to_json(this, out);
    return out[0];
  }
}
