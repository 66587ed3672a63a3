//go:build cgo && linux

package capi

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

const float32Type = 73730

func matrix(values []float32, rows, columns, stride int) Tensor {
	return Matrix(unsafe.Pointer(unsafe.SliceData(values)), float32Type, rows, columns, stride)
}

func vector(values []float32) Tensor {
	return Vector(unsafe.Pointer(unsafe.SliceData(values)), float32Type, len(values))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made is a handle of what create makes, closed at the end of the test.
func made(t *testing.T, destroy func(*uintptr), create func(out *uintptr) error) *Handle {
	t.Helper()
	var ticket uintptr
	check(t, create(&ticket))
	h := new(Handle)
	h.Open("thing", ticket, destroy)
	t.Cleanup(h.Close)
	return h
}

func model(t *testing.T) *Handle {
	t.Helper()
	return made(t, Model_destroy, func(out *uintptr) error { return Model_create(nil, out) })
}

// However goroutines move between threads.
func TestErrorsBelongToTheirCall(t *testing.T) {
	var goroutines sync.WaitGroup
	for g := 1; g <= 32; g++ {
		goroutines.Add(1)
		go func() {
			defer goroutines.Done()
			options := made(t, Options_destroy, func(out *uintptr) error { return Options_create(1, out) })
			for range 200 {
				err := Options_set_f64(options, 101, -float64(g))
				e, ok := err.(*Error)
				if !ok || e.Status != invalidArgument || !strings.Contains(e.Sentence, fmt.Sprintf("-%d", g)) {
					t.Errorf("goroutine %d got %v", g, err)
				}
			}
		}()
	}
	goroutines.Wait()
}

func TestTextsCrossWholeAndNULIsRefused(t *testing.T) {
	var json, same string
	model := model(t)
	check(t, Model_add_table(model, "usér 😀", 3, 4, nil, nil))
	check(t, Model_to_json(model, &json))
	again := made(t, Model_destroy, func(out *uintptr) error { return Model_from_json(json, out) })
	check(t, Model_to_json(again, &same))
	if json != same || !strings.Contains(json, "usér 😀") {
		t.Errorf("%q is not %q", same, json)
	}
	if e, ok := Model_add_table(model, "a\x00b", 3, 4, nil, nil).(*Error); !ok || e.Status != invalidArgument {
		t.Error("a name with NUL was accepted")
	}
	model.Close()
	json = "before"
	if e, ok := Model_to_json(model, &json).(*Error); !ok || e.Status != invalidHandle || json != "before" {
		t.Error("a closed handle was accepted")
	}
	if e, ok := Model_to_json(nil, &json).(*Error); !ok || e.Status != invalidHandle {
		t.Error("no handle was accepted")
	}
}

func TestOutParametersOfEveryKind(t *testing.T) {
	model := model(t)
	group := made(t, Local_destroy, func(out *uintptr) error { return Local_create(3, 3, nil, out) })
	comm := made(t, Comm_destroy, func(out *uintptr) error { return Comm_create_local(group, 2, nil, out) })
	var table, size int32
	var column, width int64
	var seconds float64
	var name string
	check(t, Model_add_table(model, "a", 3, 4, nil, nil))
	check(t, Model_add_table(model, "b", 3, 8, nil, &table))
	check(t, Model_add_feature(model, 0, "a", 0))
	check(t, Model_add_feature(model, 1, "b", 0))
	check(t, Flat_model_feature(model, 1, nil, nil, nil, &column, nil, &width, &name))
	check(t, Comm_size(comm, &size))
	check(t, Comm_set_f64(comm, 1, 12.5))
	check(t, Comm_get_f64(comm, 1, &seconds))
	if table != 1 || name != "b" || column != 4 || width != 12 || size != 3 || seconds != 12.5 {
		t.Error(table, name, column, width, size, seconds)
	}
	level, rank, text := int32(0), int32(0), "before"
	check(t, Log_next(0, &level, &rank, &text))
	if text != "" {
		t.Errorf("no message, but %d %d %q", level, rank, text)
	}
}

func TestTensorsCrossWithShapeAndStride(t *testing.T) {
	logits, labels, gradient, loss := make([]float32, 4), []float32{1, 0, 0, 1}, make([]float32, 4), 0.0
	check(t, Bce_with_logits(nil, vector(logits), matrix(labels, 4, 1, 1), Tensor{}, vector(gradient), &loss))
	if math.Abs(loss-math.Ln2) > 1e-6 || gradient[0] != -0.125 || gradient[1] != 0.125 {
		t.Error(loss, gradient)
	}

	// Two vectors of two columns; rows of the embeddings are three elements apart, of the output five.
	interaction := made(t, Interaction_destroy, func(out *uintptr) error { return Interaction_create(1, 2, nil, out) })
	dense, embeddings, output := []float32{1, 2, 3, 4}, []float32{5, 6, -1, 7, 8}, make([]float32, 8)
	check(t, Interaction_forward(interaction, matrix(dense, 2, 2, 2), matrix(embeddings, 2, 2, 3), matrix(output, 2, 3, 5)))
	if want := []float32{1, 2, 17, 0, 0, 3, 4, 53}; fmt.Sprint(output) != fmt.Sprint(want) {
		t.Error(output, "is not", want)
	}
}

func TestTensorsOfTheLibraryCanBeWritten(t *testing.T) {
	mlp := made(t, Mlp_destroy, func(out *uintptr) error { return Mlp_create(3, nil, out) })
	check(t, Flat_mlp_add(mlp, 0, 0, 2, 0, 0, 0))
	var weights, bias View
	check(t, Mlp_parameter(mlp, 0, &weights, nil))
	check(t, Mlp_parameter(mlp, 1, &bias, nil))
	copy(Elements[float32](&weights), []float32{1, 2, 3, 4, 5, 6})
	copy(Elements[float32](&bias), []float32{10, 20})
	output := make([]float32, 2)
	check(t, Mlp_forward(mlp, matrix([]float32{1, 1, 1}, 1, 3, 3), matrix(output, 1, 2, 2)))
	if len(Elements[float32](&weights)) != 6 || len(Elements[float32](&bias)) != 2 || output[0] != 16 || output[1] != 35 {
		t.Error(weights, bias, output)
	}
}
