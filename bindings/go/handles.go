package shardrec

import (
	"fmt"
	"strings"

	"shardrec.org/shardrec/internal/capi"
)

// handle is embedded in the type of every native object.
type handle struct{ native capi.Handle }

func (h *handle) raw() *capi.Handle { return &h.native }

// Close destroys the handle: more than once, in any order with others, on any goroutine, during a call. A handle
// that is dropped without it is destroyed when it is collected; the first of each type is reported (slog).
func (h *handle) Close() error {
	h.native.Close()
	return nil
}

// opened makes a T around the ticket that create writes; nil for ticket 0. Its parents are not collected before it.
func opened[T any, P interface {
	*T
	raw() *capi.Handle
}](destroy func(*uintptr), create func(out *uintptr) error, parents ...*capi.Handle) (P, error) {
	var ticket uintptr
	if err := create(&ticket); err != nil || ticket == 0 {
		return nil, err
	}
	p := P(new(T))
	p.raw().Open(strings.TrimPrefix(fmt.Sprintf("%T", p), "*shardrec."), ticket, destroy, parents...)
	return p, nil
}

// rawOf is nil, C's NULL, for nil.
func rawOf[T any, P interface {
	*T
	raw() *capi.Handle
}](p P) *capi.Handle {
	if p == nil {
		return nil
	}
	return p.raw()
}

// Local is a group of ranks that are threads of this process.
type Local struct{ handle }

// NewLocal makes a group of ranks, ranksPerNode of which count as one node.
func NewLocal(ranks, ranksPerNode int) (*Local, error) {
	return opened[Local](capi.Local_destroy, func(out *uintptr) error {
		return capi.Local_create(int32(ranks), int32(ranksPerNode), out)
	})
}

// Comm is one rank's membership of a group of ranks.
type Comm struct{ handle }

// NewComm joins a local group; it waits for nobody.
func NewComm(group *Local, rank int) (*Comm, error) {
	return opened[Comm](capi.Comm_destroy, func(out *uintptr) error {
		return capi.Comm_create_local(rawOf(group), int32(rank), out)
	})
}

// Rank is this rank's number.
func (c *Comm) Rank() (int, error) {
	var out int32
	err := capi.Comm_rank(c.raw(), &out)
	return int(out), err
}

// Size is the number of ranks.
func (c *Comm) Size() (int, error) {
	var out int32
	err := capi.Comm_size(c.raw(), &out)
	return int(out), err
}

// Set changes a property, such as a deadline, for later calls.
func (c *Comm) Set(property CommProperty, value float64) error {
	return capi.Comm_set_f64(c.raw(), int32(property), value)
}

// Barrier returns when every rank has called it.
func (c *Comm) Barrier() error { return capi.Comm_barrier(c.raw()) }

// AllReduce reduces a tensor over the ranks, in place.
func (c *Comm) AllReduce(tensor Tensor, reduction Reduction) error {
	return capi.Comm_all_reduce(c.raw(), tensor.raw, int32(reduction))
}

// Broadcast copies the elements of rank root over those of all others.
func (c *Comm) Broadcast(tensor Tensor, root int) error {
	return capi.Comm_broadcast(c.raw(), tensor.raw, int32(root))
}

// AllGather fills out with the elements of all ranks, in rank order.
func (c *Comm) AllGather(tensor, out Tensor) error {
	return capi.Comm_all_gather(c.raw(), tensor.raw, out.raw)
}

// ReduceScatter reduces a tensor over the ranks; out is this rank's part of it.
func (c *Comm) ReduceScatter(tensor, out Tensor, reduction Reduction) error {
	return capi.Comm_reduce_scatter(c.raw(), tensor.raw, out.raw, int32(reduction))
}

// AllToAll sends rows to every rank and receives theirs, as many as the counts say (nil: equal parts).
func (c *Comm) AllToAll(tensor Tensor, sendCounts []int64, out Tensor, receiveCounts []int64) error {
	return capi.Comm_all_to_all(c.raw(), tensor.raw, counts(sendCounts).raw, out.raw, counts(receiveCounts).raw)
}

// counts is the zero Tensor, C's NULL, for nil.
func counts(values []int64) Tensor {
	if values == nil {
		return Tensor{}
	}
	return Vector(values)
}

// Split makes a communicator of the ranks that give the same color, numbered by key; nil for a color below 0.
func (c *Comm) Split(color, key int) (*Comm, error) {
	return opened[Comm](capi.Comm_destroy, func(out *uintptr) error {
		return capi.Comm_split(c.raw(), int32(color), int32(key), out)
	})
}

// Abort ends the communicator on every rank. Any goroutine.
func (c *Comm) Abort(reason string) error { return capi.Comm_abort(c.raw(), reason) }

// Shutdown is the orderly, collective end (shardrec_comm_close); Close afterwards.
func (c *Comm) Shutdown() error { return capi.Comm_close(c.raw()) }

// Model is the tables, the features looked up in them, and how they are trained; the same on every rank.
type Model struct{ handle }

// NewModel is empty.
func NewModel() (*Model, error) {
	return opened[Model](capi.Model_destroy, func(out *uintptr) error { return capi.Model_create(nil, out) })
}

// AddTable adds a table and returns its index; options may be nil.
func (m *Model) AddTable(name string, rows, dim int64, options *TableOptions) (int, error) {
	var out int32
	err := use(options, func(made *capi.Handle) error {
		return capi.Model_add_table(m.raw(), name, rows, dim, made, &out)
	})
	return int(out), err
}

// AddFeature adds a feature that is looked up in a table.
func (m *Model) AddFeature(table int, name string, pooling Pooling) error {
	return capi.Model_add_feature(m.raw(), int32(table), name, int32(pooling))
}

// SetOptimizer sets the optimizer of all tables.
func (m *Model) SetOptimizer(options *OptimizerOptions) error {
	return use(options, func(made *capi.Handle) error { return capi.Model_set_optimizer(m.raw(), made) })
}

// JSON is the model as shardrec_model_to_json has it.
func (m *Model) JSON() (string, error) {
	var out string
	err := capi.Model_to_json(m.raw(), &out)
	return out, err
}

// Plan says which box of which table lives on which rank.
type Plan struct{ handle }

// NewPlan plans on the ranks of a communicator; collective. options may be nil.
func NewPlan(comm *Comm, model *Model, options *PlanOptions) (*Plan, error) {
	return opened[Plan](capi.Plan_destroy, func(out *uintptr) error {
		return use(options, func(made *capi.Handle) error {
			return capi.Plan_collective(rawOf(comm), rawOf(model), made, out)
		})
	})
}

// Text is a table for people.
func (p *Plan) Text() (string, error) {
	var out string
	err := capi.Plan_to_text(p.raw(), &out)
	return out, err
}

// Collection is this rank's boxes of the sharded tables; one goroutine at a time, its lookups included.
type Collection struct{ handle }

// NewCollection is collective. options may be nil.
func NewCollection(comm *Comm, model *Model, plan *Plan, options *CollectionOptions) (*Collection, error) {
	return opened[Collection](capi.Collection_destroy, func(out *uintptr) error {
		return use(options, func(made *capi.Handle) error {
			return capi.Collection_create(rawOf(comm), rawOf(model), rawOf(plan), made, out)
		})
	}, rawOf(comm))
}

// Step is the number of applied updates.
func (c *Collection) Step() (int64, error) {
	var out int64
	err := capi.Collection_step(c.raw(), &out)
	return out, err
}

// SetLearningRate is for all tables, from the next Backward on.
func (c *Collection) SetLearningRate(rate float64) error {
	return capi.Collection_set_learning_rate(c.raw(), rate)
}

// Read reads whole rows, wherever they live; collective.
func (c *Collection) Read(table int, part TablePart, row, rows int64, out Tensor) error {
	return capi.Collection_read(c.raw(), int32(table), int32(part), row, rows, out.raw)
}

// Write writes whole rows; collective.
func (c *Collection) Write(table int, part TablePart, row, rows int64, values Tensor) error {
	return capi.Collection_write(c.raw(), int32(table), int32(part), row, rows, values.raw)
}

// ReadRows reads the rows that ids name (a vector of int32 or int64), wherever they live; collective.
func (c *Collection) ReadRows(table int, part TablePart, ids, out Tensor) error {
	return capi.Collection_read_rows(c.raw(), int32(table), int32(part), ids.raw, out.raw)
}

// WriteRows writes the rows that ids name; collective.
func (c *Collection) WriteRows(table int, part TablePart, ids, values Tensor) error {
	return capi.Collection_write_rows(c.raw(), int32(table), int32(part), ids.raw, values.raw)
}

// Lookup is a slot for one batch: Begin, Forward, then SetGradient and Backward, or Skip, or nothing.
type Lookup struct{ handle }

// NewLookup makes one on a collection; options may be nil.
func NewLookup(collection *Collection, options *LookupOptions) (*Lookup, error) {
	return opened[Lookup](capi.Lookup_destroy, func(out *uintptr) error {
		return use(options, func(made *capi.Handle) error {
			return capi.Lookup_create(rawOf(collection), made, out)
		})
	}, rawOf(collection))
}

// Begin starts the exchange of a batch's ids. The zero Tensor for values: this rank has no more data.
func (l *Lookup) Begin(batchSize int, values, lengths, weights Tensor) error {
	return capi.Lookup_begin(l.raw(), int64(batchSize), values.raw, lengths.raw, weights.raw)
}

// BeginOffsets is Begin with offsets in place of lengths.
func (l *Lookup) BeginOffsets(batchSize int, values, offsets, weights Tensor) error {
	return capi.Lookup_begin_offsets(l.raw(), int64(batchSize), values.raw, offsets.raw, weights.raw)
}

// Forward finishes the exchange and writes an output.
func (l *Lookup) Forward(output int, out Tensor) error {
	return capi.Lookup_forward(l.raw(), int32(output), out.raw)
}

// AllDone is true when no rank has more data; valid after Forward.
func (l *Lookup) AllDone() (bool, error) {
	var out int32
	err := capi.Lookup_all_done(l.raw(), &out)
	return out != 0, err
}

// SetGradient gives the gradient of this rank's loss with respect to an output.
func (l *Lookup) SetGradient(output int, gradient Tensor) error {
	return capi.Lookup_set_gradient(l.raw(), int32(output), gradient.raw)
}

// SendGradients sends the gradients before Backward is called, which must follow: they travel meanwhile.
func (l *Lookup) SendGradients() error { return capi.Lookup_send_gradients(l.raw(), 0) }

// Backward exchanges the gradients and applies one optimizer step.
func (l *Lookup) Backward() error { return capi.Lookup_backward(l.raw()) }

// Skip is in place of Backward: no rank applies the step.
func (l *Lookup) Skip() error { return capi.Lookup_skip(l.raw()) }
