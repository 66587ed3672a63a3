package org.shardrec.spark;

import java.io.Serializable;

/**
 * Sets options of one kind on the executor where they are used: a lambda, such as {@code o -> o.learningRate(0.02)}. What it
 * captures is sent to the executors, and has to be serializable.
 *
 * @param <T> one of the library's types of options
 */
@FunctionalInterface
public interface OptionSetter<T> extends Serializable {
  /**
   * Sets what is not to have its default.
   *
   * @param options with the defaults
   */
  void set(T options);
}
