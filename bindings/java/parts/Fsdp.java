  /**
   * What a rank has of a parameter.
   *
   * @param offset of its first element in the parameter, row-major
   * @param elements a view; perhaps empty
   */
  public record Shard(long offset, Tensor elements) {}

  /**
   * A whole parameter of a unit that is unsharded, of the option FSDP_PARAMETER_DTYPE, after waitUnshard. Its memory is
   * that of another unit after reshard and markReady. It keeps this from being collected, and is refused once this is
   * closed.
   *
   * @param index of addParameter
   * @return a view
   */
  public Tensor parameter(int index) {
    Tensor[] out = new Tensor[1];
    Capi.fsdp_parameter(this, index, out);
    return out[0].of(this);
  }

  /**
   * The whole gradient of a parameter on this rank, to be added to until markReady; as parameter.
   *
   * @param index of addParameter
   * @return a view
   */
  public Tensor gradient(int index) {
    Tensor[] out = new Tensor[1];
    Capi.fsdp_gradient(this, index, out);
    return out[0].of(this);
  }

  /**
   * What this rank has of a parameter, between steps; as parameter.
   *
   * @param index of addParameter
   * @param array 0: the values, 1: the gradient, 2 and above: a state of the optimizer
   * @return the place of its first element, and a view
   */
  public Shard shard(int index, int array) {
    long[] offset = new long[1];
    Tensor[] out = new Tensor[1];
    Capi.fsdp_shard(this, index, array, offset, out);
    return new Shard(offset[0], out[0].of(this));
  }
