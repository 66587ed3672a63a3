package shardrec_test

import (
	"errors"
	"math"
	"testing"

	. "shardrec.org/shardrec"
)

// A layer norm of 1 and 3 gives -1 and 1; cross layers without a matrix and with a bias of 1 add their origin to their
// input; dropout leaves it alone in evaluation.
func TestLayersOfAllKinds(t *testing.T) {
	mlp := must(NewMlp(2, nil))
	defer mlp.Close()
	err := errors.Join(mlp.AddLayerNorm(0), mlp.AddCross(0), mlp.AddCross(1), mlp.AddDropout(0.5))
	ok(t, must(mlp.Info()).Layers == 4 && must(mlp.Info()).Parameters == 2+2+3, must(mlp.Info()))
	for parameter, values := range map[int][]float32{2: {0, 0, 0, 0}, 3: {1, 1}, 5: {0, 0}, 6: {1, 1}} {
		value, _, failure := mlp.Parameter(parameter)
		err = errors.Join(err, failure, value.Set(values))
	}
	in, out := []float32{1, 3}, make([]float32, 2)
	err = errors.Join(err, mlp.SetTraining(false), mlp.Forward(Matrix(in, 1, 2), Matrix(out, 1, 2)))
	ok(t, math.Abs(float64(out[0])+3) < 1e-4 && math.Abs(float64(out[1])-3) < 1e-4, out)

	rows := make([]float32, 200)
	for i := range rows {
		rows[i] = float32(1 + i%2)
	}
	outputs, gradient := make([]float32, 200), make([]float32, 200)
	err = errors.Join(err, mlp.SetTraining(true), mlp.Forward(Matrix(rows, 100, 2), Matrix(outputs, 100, 2)),
		mlp.Backward(Matrix(rows, 100, 2), Matrix(gradient, 100, 2)))
	zeros := 0
	for _, value := range outputs {
		if value == 0 {
			zeros++
		}
	}
	ok(t, zeros > 60 && zeros < 140, zeros)
	ok(t, errors.Is(mlp.AddDropout(0.5), ErrInvalidState), "after a forward")
	other := must(NewMlp(2, nil))
	defer other.Close()
	ok(t, errors.Is(other.AddDropout(1), ErrInvalidArgument) && errors.Is(other.AddLayerNorm(-1), ErrInvalidArgument) &&
		errors.Is(other.AddCross(-1), ErrInvalidArgument) && errors.Is(other.Set(MlpSettingTraining, 2), ErrInvalidArgument))
	ok(t, err == nil, err)
}
