  /**
   * Adds a parameter of the host, in the same order on every rank. Both tensors are held until this is closed.
   *
   * @param name of the parameter
   * @param parameter compact; written by commit, broadcast and the optimizer
   * @param gradient as parameter; null: memory of the library, or of setFlatGradient
   * @return its index
   */
  public int addParameter(String name, Tensor parameter, @Nullable Tensor gradient) {
    int[] out = new int[1];
    Capi.ddp_add_parameter(this, name, Tensor.writable(Tensor.own(parameter)), Tensor.writable(Tensor.own(gradient)), out);
    keep(parameter);
    keep(gradient);
    return out[0];
  }

  /**
   * The gradients of all parameters that are added without one lie one behind the other in this tensor, which is held until
   * this is closed.
   *
   * @param gradients compact
   */
  public void setFlatGradient(Tensor gradients) {
    Capi.ddp_set_flat_gradient(this, Tensor.writable(Tensor.own(gradients)));
    keep(gradients);
  }

  /**
   * A parameter's gradient, in the library's memory where it has no other. It keeps this from being collected, and is
   * refused once this is closed.
   *
   * @param index of addParameter
   * @return a view
   */
  public Tensor gradient(int index) {
    Tensor[] out = new Tensor[1];
    Capi.ddp_gradient(this, index, out);
    return out[0].of(this);
  }

  /**
   * An optimizer state of a parameter, in the library's memory; as gradient.
   *
   * @param index of addParameter
   * @param state 0 or 1
   * @return a view
   */
  public Tensor state(int index, int state) {
    Tensor[] out = new Tensor[1];
    Capi.ddp_state(this, index, state, out);
    return out[0].of(this);
  }
