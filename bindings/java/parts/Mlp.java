  private @Nullable Tensor input; // is read until backward

  /**
   * A parameter and its gradient, in the library's memory. They keep the stack from being collected, and are refused once
   * it is closed or has got another layer.
   *
   * @param value the parameter
   * @param gradient of the last backward
   */
  public record Parameter(Tensor value, Tensor gradient) {}

  /**
   * Appends a linear layer. Views of parameters that were made before are refused from now on.
   *
   * @param outputs columns of its output, 1 to 65536
   * @param activation behind it
   */
  public void addLinear(long outputs, Activation activation) {
    Capi.mlp_add_linear(this, outputs, activation.value);
    invalidateViews();
  }

  /**
   * The stack's output for a batch.
   *
   * @param input [batch, inputs], FLOAT32; read again by backward, and held until the next forward
   * @param output [batch, outputs of the last layer], FLOAT32
   */
  public void forward(Tensor input, Tensor output) {
    Capi.mlp_forward(this, Tensor.own(input), Tensor.writable(output));
    this.input = input;
  }

  /**
   * Gradients of the parameters and of the input, for the batch of the last forward.
   *
   * @param outputGradient as forward's output
   * @param inputGradient as forward's input; null: not wanted
   */
  public void backward(Tensor outputGradient, @Nullable Tensor inputGradient) {
    Capi.mlp_backward(this, outputGradient, Tensor.writable(inputGradient));
    java.lang.ref.Reference.reachabilityFence(input);
  }

  /**
   * A parameter of the stack.
   *
   * @param index 0 to info().parameters() - 1
   * @return views
   */
  public Parameter parameter(int index) {
    Tensor[] value = new Tensor[1], gradient = new Tensor[1];
    Capi.mlp_parameter(this, index, value, gradient);
    return new Parameter(value[0].of(this), gradient[0].of(this));
  }

  /**
   * An optimizer state of a parameter, in the library's memory; as parameter.
   *
   * @param index of parameter
   * @param state 0 or 1
   * @return a view
   */
  public Tensor state(int index, int state) {
    Tensor[] out = new Tensor[1];
    Capi.mlp_state(this, index, state, out);
    return out[0].of(this);
  }
