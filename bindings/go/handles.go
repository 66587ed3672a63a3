package shardrec

import (
	"sync/atomic"

	"shardrec.org/shardrec/internal/capi"
)

// handle holds a ticket; 0 once it is closed: a call with it is INVALID_HANDLE.
type handle struct{ value atomic.Uintptr }

func (h *handle) ticket() uintptr { return h.value.Load() }

func (h *handle) open(ticket uintptr) { h.value.Store(ticket) }

func (h *handle) close(destroy func(*uintptr)) {
	ticket := h.value.Swap(0)
	destroy(&ticket)
}

// opened makes a T around the ticket that create writes.
func opened[T any, P interface {
	*T
	open(uintptr)
}](create func(out *uintptr) error) (P, error) {
	var ticket uintptr
	if err := create(&ticket); err != nil {
		return nil, err
	}
	p := P(new(T))
	p.open(ticket)
	return p, nil
}

// Local is a group of ranks that are threads of this process.
type Local struct{ handle }

// NewLocal makes a group of ranks, ranksPerNode of which count as one node.
func NewLocal(ranks, ranksPerNode int) (*Local, error) {
	return opened[Local](func(out *uintptr) error {
		return capi.Local_create(int32(ranks), int32(ranksPerNode), out)
	})
}

// Close destroys the handle; communicators made from it live on.
func (l *Local) Close() { l.close(capi.Local_destroy) }

// Comm is one rank's membership of a group of ranks.
type Comm struct{ handle }

// NewComm joins a local group; it waits for nobody.
func NewComm(group *Local, rank int) (*Comm, error) {
	return opened[Comm](func(out *uintptr) error {
		return capi.Comm_create_local(group.ticket(), int32(rank), out)
	})
}

// Close destroys the handle. Without Shutdown before it, peers that wait for this rank fail at once.
func (c *Comm) Close() { c.close(capi.Comm_destroy) }

// Rank is this rank's number.
func (c *Comm) Rank() (int, error) {
	var out int32
	err := capi.Comm_rank(c.ticket(), &out)
	return int(out), err
}

// Size is the number of ranks.
func (c *Comm) Size() (int, error) {
	var out int32
	err := capi.Comm_size(c.ticket(), &out)
	return int(out), err
}

// Set changes a property, such as a deadline, for later calls.
func (c *Comm) Set(property CommProperty, value float64) error {
	return capi.Comm_set_f64(c.ticket(), int32(property), value)
}

// Barrier returns when every rank has called it.
func (c *Comm) Barrier() error { return capi.Comm_barrier(c.ticket()) }

// AllReduce reduces a tensor over the ranks, in place.
func (c *Comm) AllReduce(tensor Tensor, reduction Reduction) error {
	return capi.Comm_all_reduce(c.ticket(), tensor, int32(reduction))
}

// Broadcast copies the elements of rank root over those of all others.
func (c *Comm) Broadcast(tensor Tensor, root int) error {
	return capi.Comm_broadcast(c.ticket(), tensor, int32(root))
}

// AllGather fills out with the elements of all ranks, in rank order.
func (c *Comm) AllGather(tensor, out Tensor) error {
	return capi.Comm_all_gather(c.ticket(), tensor, out)
}

// ReduceScatter reduces a tensor over the ranks; out is this rank's part of it.
func (c *Comm) ReduceScatter(tensor, out Tensor, reduction Reduction) error {
	return capi.Comm_reduce_scatter(c.ticket(), tensor, out, int32(reduction))
}

// AllToAll sends rows to every rank and receives theirs, as many as the counts say (nil: equal parts).
func (c *Comm) AllToAll(tensor Tensor, sendCounts []int64, out Tensor, receiveCounts []int64) error {
	return capi.Comm_all_to_all(c.ticket(), tensor, counts(sendCounts), out, counts(receiveCounts))
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
	part, err := opened[Comm](func(out *uintptr) error {
		return capi.Comm_split(c.ticket(), int32(color), int32(key), out)
	})
	if err != nil || part.ticket() == 0 {
		return nil, err
	}
	return part, nil
}

// Abort ends the communicator on every rank. Any goroutine.
func (c *Comm) Abort(reason string) error { return capi.Comm_abort(c.ticket(), reason) }

// Shutdown is the orderly, collective end (shardrec_comm_close); Close afterwards.
func (c *Comm) Shutdown() error { return capi.Comm_close(c.ticket()) }

// Options are settings of a create call; each kind takes its own keys.
type Options struct{ handle }

// NewOptions has every key at its default.
func NewOptions(kind OptionsKind) (*Options, error) {
	return opened[Options](func(out *uintptr) error { return capi.Options_create(int32(kind), out) })
}

// Close destroys the handle.
func (o *Options) Close() { o.close(capi.Options_destroy) }

// SetInt sets a number.
func (o *Options) SetInt(key Option, value int64) error {
	return capi.Options_set_i64(o.ticket(), int32(key), value)
}

// SetFloat sets a real number.
func (o *Options) SetFloat(key Option, value float64) error {
	return capi.Options_set_f64(o.ticket(), int32(key), value)
}

// SetText sets a value by its text.
func (o *Options) SetText(key Option, value string) error {
	return capi.Options_set_text(o.ticket(), int32(key), value)
}

// Text is a value as SetText takes it.
func (o *Options) Text(key Option) (string, error) {
	var out string
	err := capi.Options_get_text(o.ticket(), int32(key), &out)
	return out, err
}

// orDefaults is 0, C's NULL, for nil.
func orDefaults(options *Options) uintptr {
	if options == nil {
		return 0
	}
	return options.ticket()
}

// Model is the tables, the features looked up in them, and how they are trained; the same on every rank.
type Model struct{ handle }

// NewModel is empty.
func NewModel() (*Model, error) {
	return opened[Model](func(out *uintptr) error { return capi.Model_create(0, out) })
}

// Close destroys the handle.
func (m *Model) Close() { m.close(capi.Model_destroy) }

// AddTable adds a table and returns its index; options may be nil.
func (m *Model) AddTable(name string, rows, dim int64, options *Options) (int, error) {
	var out int32
	err := capi.Model_add_table(m.ticket(), name, rows, dim, orDefaults(options), &out)
	return int(out), err
}

// AddFeature adds a feature that is looked up in a table.
func (m *Model) AddFeature(table int, name string, pooling Pooling) error {
	return capi.Model_add_feature(m.ticket(), int32(table), name, int32(pooling))
}

// SetOptimizer sets the optimizer of all tables.
func (m *Model) SetOptimizer(options *Options) error {
	return capi.Model_set_optimizer(m.ticket(), orDefaults(options))
}

// JSON is the model as shardrec_model_to_json has it.
func (m *Model) JSON() (string, error) {
	var out string
	err := capi.Model_to_json(m.ticket(), &out)
	return out, err
}

// Plan says which box of which table lives on which rank.
type Plan struct{ handle }

// NewPlan plans on the ranks of a communicator; collective. options may be nil.
func NewPlan(comm *Comm, model *Model, options *Options) (*Plan, error) {
	return opened[Plan](func(out *uintptr) error {
		return capi.Plan_collective(comm.ticket(), model.ticket(), orDefaults(options), out)
	})
}

// Close destroys the handle.
func (p *Plan) Close() { p.close(capi.Plan_destroy) }

// Text is a table for people.
func (p *Plan) Text() (string, error) {
	var out string
	err := capi.Plan_to_text(p.ticket(), &out)
	return out, err
}

// Collection is this rank's boxes of the sharded tables; one goroutine at a time, its lookups included.
type Collection struct{ handle }

// NewCollection is collective. options may be nil.
func NewCollection(comm *Comm, model *Model, plan *Plan, options *Options) (*Collection, error) {
	return opened[Collection](func(out *uintptr) error {
		return capi.Collection_create(comm.ticket(), model.ticket(), plan.ticket(), orDefaults(options), out)
	})
}

// Close destroys the handle; lookups stay closable.
func (c *Collection) Close() { c.close(capi.Collection_destroy) }

// Step is the number of applied updates.
func (c *Collection) Step() (int64, error) {
	var out int64
	err := capi.Collection_step(c.ticket(), &out)
	return out, err
}

// SetLearningRate is for all tables, from the next Backward on.
func (c *Collection) SetLearningRate(rate float64) error {
	return capi.Collection_set_learning_rate(c.ticket(), rate)
}

// Read reads whole rows, wherever they live; collective.
func (c *Collection) Read(table int, part TablePart, row, rows int64, out Tensor) error {
	return capi.Collection_read(c.ticket(), int32(table), int32(part), row, rows, out)
}

// Write writes whole rows; collective.
func (c *Collection) Write(table int, part TablePart, row, rows int64, values Tensor) error {
	return capi.Collection_write(c.ticket(), int32(table), int32(part), row, rows, values)
}

// ReadRows reads the rows that ids name (a vector of int32 or int64), wherever they live; collective.
func (c *Collection) ReadRows(table int, part TablePart, ids, out Tensor) error {
	return capi.Collection_read_rows(c.ticket(), int32(table), int32(part), ids, out)
}

// WriteRows writes the rows that ids name; collective.
func (c *Collection) WriteRows(table int, part TablePart, ids, values Tensor) error {
	return capi.Collection_write_rows(c.ticket(), int32(table), int32(part), ids, values)
}

// Lookup is a slot for one batch: Begin, Forward, then SetGradient and Backward, or Skip, or nothing.
type Lookup struct{ handle }

// NewLookup makes one on a collection; options may be nil.
func NewLookup(collection *Collection, options *Options) (*Lookup, error) {
	return opened[Lookup](func(out *uintptr) error {
		return capi.Lookup_create(collection.ticket(), orDefaults(options), out)
	})
}

// Close destroys the handle.
func (l *Lookup) Close() { l.close(capi.Lookup_destroy) }

// Begin starts the exchange of a batch's ids. The zero Tensor for values: this rank has no more data.
func (l *Lookup) Begin(batchSize int, values, lengths, weights Tensor) error {
	return capi.Lookup_begin(l.ticket(), int64(batchSize), values, lengths, weights)
}

// BeginOffsets is Begin with offsets in place of lengths.
func (l *Lookup) BeginOffsets(batchSize int, values, offsets, weights Tensor) error {
	return capi.Lookup_begin_offsets(l.ticket(), int64(batchSize), values, offsets, weights)
}

// Forward finishes the exchange and writes an output.
func (l *Lookup) Forward(output int, out Tensor) error {
	return capi.Lookup_forward(l.ticket(), int32(output), out)
}

// AllDone is true when no rank has more data; valid after Forward.
func (l *Lookup) AllDone() (bool, error) {
	var out int32
	err := capi.Lookup_all_done(l.ticket(), &out)
	return out != 0, err
}

// SetGradient gives the gradient of this rank's loss with respect to an output.
func (l *Lookup) SetGradient(output int, gradient Tensor) error {
	return capi.Lookup_set_gradient(l.ticket(), int32(output), gradient)
}

// SendGradients sends the gradients before Backward is called, which must follow: they travel meanwhile.
func (l *Lookup) SendGradients() error { return capi.Lookup_send_gradients(l.ticket(), 0) }

// Backward exchanges the gradients and applies one optimizer step.
func (l *Lookup) Backward() error { return capi.Lookup_backward(l.ticket()) }

// Skip is in place of Backward: no rank applies the step.
func (l *Lookup) Skip() error { return capi.Lookup_skip(l.ticket()) }
