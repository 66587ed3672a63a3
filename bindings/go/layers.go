package shardrec

import "shardrec.org/shardrec/internal/capi"

// AddLinear appends a linear layer of so many outputs, 1 to 65536. Views of parameters that were made before are
// refused from now on.
func (m *Mlp) AddLinear(outputs int, activation Activation) error {
	return m.add(LayerKindLinear, activation, outputs, 0, 0, 0)
}

// AddCross appends a cross layer of DCN-v2. rank: columns of the factors of its matrix, 1 to 65536, or 0 for a whole
// matrix. Otherwise as AddLinear.
func (m *Mlp) AddCross(rank int) error {
	return m.add(LayerKindCross, ActivationNone, 0, rank, 0, 0)
}

// AddLayerNorm appends a layer norm. epsilon: added to the variance, 1e-30 to 1e30, or 0 for 1e-5. Otherwise as AddLinear.
func (m *Mlp) AddLayerNorm(epsilon float64) error {
	return m.add(LayerKindLayerNorm, ActivationNone, 0, 0, epsilon, 0)
}

// AddDropout appends dropout. rate: probability that an element becomes 0, at least 0 and below 1. Otherwise as AddLinear;
// see SetTraining.
func (m *Mlp) AddDropout(rate float64) error {
	return m.add(LayerKindDropout, ActivationNone, 0, 0, 0, rate)
}

func (m *Mlp) add(kind LayerKind, activation Activation, outputs, rank int, epsilon, rate float64) error {
	err := capi.Flat_mlp_add(m.raw(), int32(kind), int32(activation), int64(outputs), int64(rank), epsilon, rate)
	if err != nil {
		return err
	}
	m.raw().Invalidate()
	return nil
}

// SetLearningRate sets the learning rate from the next step on: finite, 0 or more.
func (m *Mlp) SetLearningRate(learningRate float64) error {
	return m.Set(MlpSettingLearningRate, learningRate)
}

// SetTraining says whether the next forwards are training, as they are at first, or evaluation, where dropout layers give
// their input.
func (m *Mlp) SetTraining(training bool) error {
	if training {
		return m.Set(MlpSettingTraining, 1)
	}
	return m.Set(MlpSettingTraining, 0)
}

// Forward is the stack's output [batch, outputs of the last layer] for input [batch, inputs], FLOAT32. The input is
// read again by Backward, and held until the next Forward.
func (m *Mlp) Forward(input, output Tensor) error {
	if err := kept(input); err != nil {
		return err
	}
	if err := capi.Mlp_forward(m.raw(), input.raw, output.raw); err != nil {
		return err // what the last one that succeeded has kept is still held
	}
	m.raw().PinBatch(input.raw)
	return nil
}

// Backward computes the gradients of the parameters and of the input (the zero Tensor: not wanted), for the batch of
// the last Forward.
func (m *Mlp) Backward(outputGradient, inputGradient Tensor) error {
	return capi.Mlp_backward(m.raw(), outputGradient.raw, inputGradient.raw)
}

// EnqueueBceWithLogits is BceWithLogits without the loss, for which the host would wait where the stack is on a device: a
// label outside 0 .. 1 is told by the next call that has it. The zero Tensor: probabilities or gradient are not wanted.
func EnqueueBceWithLogits(stack *Mlp, logits, labels, probabilities, gradient Tensor) error {
	return capi.Bce_with_logits(rawOf(stack), logits.raw, labels.raw, probabilities.raw, gradient.raw, nil)
}

// Parameter is a parameter and its gradient.
func (m *Mlp) Parameter(index int) (value, gradient View, err error) {
	var values, gradients capi.View
	if err = capi.Mlp_parameter(m.raw(), int32(index), &values, &gradients); err != nil {
		return View{}, View{}, err
	}
	return viewOf(values, m.raw()), viewOf(gradients, m.raw()), nil
}

// State is an optimizer state of a parameter, 0 or 1.
func (m *Mlp) State(index, state int) (View, error) {
	var out capi.View
	err := capi.Mlp_state(m.raw(), int32(index), int32(state), &out)
	return viewOf(out, m.raw()), err
}

// Forward writes the dense vectors [batch, dim] and their dot products with the embeddings [batch, features * dim], and
// of these with each other, all FLOAT32. Both inputs are read again by Backward, and held until the next Forward.
func (i *Interaction) Forward(dense, embeddings, output Tensor) error {
	if err := kept(dense, embeddings); err != nil {
		return err
	}
	if err := capi.Interaction_forward(i.raw(), dense.raw, embeddings.raw, output.raw); err != nil {
		return err // as Mlp.Forward
	}
	i.raw().PinBatch(dense.raw, embeddings.raw)
	return nil
}

// Backward overwrites the gradients of both inputs of the last Forward.
func (i *Interaction) Backward(outputGradient, denseGradient, embeddingGradient Tensor) error {
	return capi.Interaction_backward(i.raw(), outputGradient.raw, denseGradient.raw, embeddingGradient.raw)
}

// AddParameter adds a parameter of the host, in the same order on every rank, and returns its index. gradient the zero
// Tensor: memory of the library, or of SetFlatGradient. Both are held where they are until Close.
func (d *Ddp) AddParameter(name string, parameter, gradient Tensor) (int, error) {
	if err := kept(parameter, gradient); err != nil {
		return 0, err
	}
	var out int32
	if err := capi.Ddp_add_parameter(d.raw(), name, parameter.raw, gradient.raw, &out); err != nil {
		return 0, err
	}
	d.raw().Pin(parameter.raw)
	d.raw().Pin(gradient.raw)
	return int(out), nil
}

// SetFlatGradient gives the memory in which the gradients of all parameters that are added without one lie one behind
// the other. It is held where it is until Close.
func (d *Ddp) SetFlatGradient(gradients Tensor) error {
	if err := kept(gradients); err != nil {
		return err
	}
	if err := capi.Ddp_set_flat_gradient(d.raw(), gradients.raw); err != nil {
		return err
	}
	d.raw().Pin(gradients.raw)
	return nil
}

// Gradient is a parameter's gradient; after Commit.
func (d *Ddp) Gradient(index int) (View, error) {
	var out capi.View
	err := capi.Ddp_gradient(d.raw(), int32(index), &out)
	return viewOf(out, d.raw()), err
}

// State is an optimizer state of a parameter, 0 or 1; after Commit.
func (d *Ddp) State(index, state int) (View, error) {
	var out capi.View
	err := capi.Ddp_state(d.raw(), int32(index), int32(state), &out)
	return viewOf(out, d.raw()), err
}

// Parameter is a whole parameter of a unit that is unsharded, of FSDP_PARAMETER_DTYPE; after WaitUnshard. Its memory is
// that of another unit after Reshard and MarkReady.
func (f *Fsdp) Parameter(index int) (View, error) {
	var out capi.View
	err := capi.Fsdp_parameter(f.raw(), int32(index), &out)
	return viewOf(out, f.raw()), err
}

// Gradient is the whole gradient of a parameter on this rank, to be added to until MarkReady.
func (f *Fsdp) Gradient(index int) (View, error) {
	var out capi.View
	err := capi.Fsdp_gradient(f.raw(), int32(index), &out)
	return viewOf(out, f.raw()), err
}

// Shard is what this rank has of a parameter's values (array 0), gradient (1) or optimizer state (2 and above), from
// its element offset on, row-major; between steps.
func (f *Fsdp) Shard(index, array int) (offset int64, elements View, err error) {
	var out capi.View
	err = capi.Fsdp_shard(f.raw(), int32(index), int32(array), &offset, &out)
	return offset, viewOf(out, f.raw()), err
}

// TensorInfo is what a tensor of a checkpoint is.
type TensorInfo struct {
	Dtype Dtype
	Shape []int
	Bytes int
}

// TensorInfo says what a tensor of the open checkpoint is, that a rank had set.
func (c *Checkpoint) TensorInfo(name string, rank int) (TensorInfo, error) {
	var bytes int64
	var out capi.View
	if err := capi.Flat_checkpoint_tensor_info(c.raw(), name, int32(rank), &bytes, &out); err != nil {
		return TensorInfo{}, err
	}
	return TensorInfo{Dtype: Dtype(out.Dtype()), Shape: out.Shape(), Bytes: int(bytes)}, nil
}
