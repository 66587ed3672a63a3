package org.shardrec;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Settings of a create call, of one kind: {@link TableOptions} and its like. A plain object, which need not be closed
 * and may be used any number of times; the call that takes it checks the values, and says what would be accepted.
 *
 * @param <S> the class itself
 */
public abstract class Options<S extends Options<S>> {
  /** Writes one setting into a native object. */
  private interface Setting {
    void into(Handle options);
  }

  /** The native object of one call. */
  private static final class Made extends Handle {
    Made(OptionsKind kind) {
      super(out -> Capi.options_create(kind.value, out), Capi::options_destroy);
    }
  }

  private final OptionsKind kind;
  private final List<Setting> settings = new ArrayList<>();

  Options(OptionsKind kind) {
    this.kind = kind;
  }

  final S with(OptionKey key, long value) {
    return with(options -> Capi.options_set_i64(options, key.value, value));
  }

  final S with(OptionKey key, double value) {
    return with(options -> Capi.options_set_f64(options, key.value, value));
  }

  final S with(OptionKey key, String value) {
    return with(options -> Capi.options_set_text(options, key.value, value));
  }

  @SuppressWarnings("unchecked")
  private S with(Setting setting) {
    settings.add(setting);
    return (S) this;
  }

  /**
   * A value, set or by default.
   *
   * @param key that this kind takes
   * @return as text, such as an enumerator's name
   */
  public final String text(OptionKey key) {
    return applied(this, options -> {
      String[] out = new String[1];
      Capi.options_get_text(options, key.value, out);
      return out[0];
    });
  }

  /**
   * A value that is an integer, set or by default; an enumerator's number.
   *
   * @param key that this kind takes
   * @return its value
   */
  public final long integer(OptionKey key) {
    return applied(this, options -> {
      long[] out = new long[1];
      Capi.options_get_i64(options, key.value, out);
      return out[0];
    });
  }

  /**
   * A value that is a real number, set or by default.
   *
   * @param key that this kind takes
   * @return its value
   */
  public final double real(OptionKey key) {
    return applied(this, options -> {
      double[] out = new double[1];
      Capi.options_get_f64(options, key.value, out);
      return out[0];
    });
  }

  /** Calls with the native object of the options: null, C's defaults, for null. */
  static void use(@Nullable Options<?> options, Consumer<Handle> call) {
    applied(options, handle -> {
      call.accept(handle);
      return null;
    });
  }

  private static <T> T applied(@Nullable Options<?> options, Function<Handle, T> call) {
    if (options == null) return call.apply(null);
    try (Made made = new Made(options.kind)) {
      for (Setting setting : options.settings) setting.into(made);
      return call.apply(made);
    }
  }
}
