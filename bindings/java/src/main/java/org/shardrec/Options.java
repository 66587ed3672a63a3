package org.shardrec;

/** Settings of a create call; each kind takes its own keys. */
public final class Options extends Handle {
  public Options(OptionsKind kind) {
    super(out -> Capi.options_create(kind.value, out), Capi::options_destroy);
  }

  public Options set(Option key, long value) {
    Capi.options_set_i64(ticket(), key.value, value);
    return this;
  }

  public Options set(Option key, double value) {
    Capi.options_set_f64(ticket(), key.value, value);
    return this;
  }

  public Options set(Option key, String value) {
    Capi.options_set_text(ticket(), key.value, value);
    return this;
  }

  public String text(Option key) {
    String[] out = new String[1];
    Capi.options_get_text(ticket(), key.value, out);
    return out[0];
  }
}
