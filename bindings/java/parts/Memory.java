  /**
   * A compact tensor, row-major, from the first byte on. It keeps the memory from being collected, and is refused once that
   * is closed; what it holds, only {@link ShardRec#tensorCopy} reads and writes where it is on a device. Not for a thread while
   * another one closes the memory.
   *
   * @param dtype of the elements
   * @param shape up to 8 sizes; none for one element
   * @return a view
   */
  public Tensor tensor(Dtype dtype, long... shape) {
    return tensorAt(0, dtype, shape);
  }

  /**
   * A compact tensor that begins further on.
   *
   * @param offsetBytes of its first element, a multiple of the element's size
   * @param dtype of the elements
   * @param shape up to 8 sizes; none for one element
   * @return a view
   */
  public Tensor tensorAt(long offsetBytes, Dtype dtype, long... shape) {
    Tensor[] out = new Tensor[1];
    Capi.memory_tensor(this, offsetBytes, dtype.value, shape, out);
    return out[0].of(this);
  }
