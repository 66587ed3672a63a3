package org.shardrec;

/** Settings of a create call; each kind takes its own keys. */
public final class Options extends Handle {
  public Options(OptionsKind kind) {
    super(out -> Capi.options_create(kind.value, out), Capi::options_destroy);
  }

  public Options set(OptionKey key, long value) {
    if (value != 0) refuseBorrow(key);
    Capi.options_set_i64(this, key.value, value);
    return this;
  }

  public Options set(OptionKey key, double value) {
    refuseBorrow(key);
    Capi.options_set_f64(this, key.value, value);
    return this;
  }

  public Options set(OptionKey key, String value) {
    refuseBorrow(key);
    Capi.options_set_text(this, key.value, value);
    return this;
  }

  public String text(OptionKey key) {
    String[] out = new String[1];
    Capi.options_get_text(this, key.value, out);
    return out[0];
  }

  /** The library would read the batch's buffers after the call, when they may have been collected. */
  private static void refuseBorrow(OptionKey key) {
    if (key == OptionKey.BORROW) {
      throw ShardRecException.of(Status.UNSUPPORTED, "option BORROW is for hosts that keep a batch where it is; here"
          + " the library copies what it needs later");
    }
  }
}
