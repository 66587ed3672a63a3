package org.shardrec;

/** Which box of which table lives on which rank. */
public final class Plan extends Handle {
  /** Plans on the ranks of a communicator; collective. options may be null. */
  public Plan(Comm comm, Model model, PlanOptions options) {
    super(out -> Options.use(options, made -> Capi.plan_collective(comm, model, made, out)),
        Capi::plan_destroy);
  }

  /** A table for people. */
  public String toText() {
    String[] out = new String[1];
    Capi.plan_to_text(this, out);
    return out[0];
  }

  public String toJson() {
    String[] out = new String[1];
    Capi.plan_to_json(this, out);
    return out[0];
  }
}
