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
    add(LayerKind.LINEAR, activation, outputs, 0, 0, 0);
  }

  /**
   * Appends a cross layer of DCN-v2; otherwise as addLinear.
   *
   * @param rank columns of the factors of its matrix, 1 to 65536; 0: a whole matrix
   */
  public void addCross(long rank) {
    add(LayerKind.CROSS, Activation.NONE, 0, rank, 0, 0);
  }

  /** Appends a cross layer with a whole matrix. */
  public void addCross() {
    addCross(0);
  }

  /**
   * Appends a layer norm; otherwise as addLinear.
   *
   * @param epsilon added to the variance, 1e-30 to 1e30; 0: 1e-5
   */
  public void addLayerNorm(double epsilon) {
    add(LayerKind.LAYER_NORM, Activation.NONE, 0, 0, epsilon, 0);
  }

  /** Appends a layer norm with the usual epsilon, 1e-5. */
  public void addLayerNorm() {
    addLayerNorm(0);
  }

  /**
   * Appends dropout; otherwise as addLinear. See setTraining.
   *
   * @param rate probability that an element becomes 0, at least 0, below 1
   */
  public void addDropout(double rate) {
    add(LayerKind.DROPOUT, Activation.NONE, 0, 0, 0, rate);
  }

  private void add(LayerKind kind, Activation activation, long outputs, long rank, double epsilon, double rate) {
    Capi.flat_mlp_add(this, kind.value, activation.value, outputs, rank, epsilon, rate);
    invalidateViews();
  }

  /**
   * The learning rate from the next step on.
   *
   * @param learningRate finite, 0 or more
   */
  public void setLearningRate(double learningRate) {
    set(MlpSetting.LEARNING_RATE, learningRate);
  }

  /**
   * Whether the next forwards are training, as they are at first, or evaluation.
   *
   * @param training false: dropout layers give their input
   */
  public void setTraining(boolean training) {
    set(MlpSetting.TRAINING, training ? 1 : 0);
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
