package capi

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Handle holds the ticket of a native object until it is closed or collected; nil is C's NULL. What must not
// be collected before it is, is kept by it.
type Handle struct {
	ticket  atomic.Uintptr
	cleanup runtime.Cleanup
	state   *state
	version atomic.Int32 // of views of its memory
}

// state is what outlives a Handle until the native object has ended.
type state struct {
	ticket  uintptr
	destroy func(*uintptr)
	kind    string

	mutex   sync.Mutex
	kept    []any
	atEnd   []func()
	forever runtime.Pinner
	batch   runtime.Pinner
}

// Report is told of the first handle of each kind that was collected without Close.
var Report func(kind string)

var reported sync.Map

func (s *state) end() {
	ticket := s.ticket
	s.destroy(&ticket)
	handles.Add(-1)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, call := range s.atEnd {
		call()
	}
	s.kept, s.atEnd = nil, nil
	s.batch.Unpin()
	s.forever.Unpin()
}

func (s *state) dropped() {
	s.end()
	if _, before := reported.LoadOrStore(s.kind, true); !before && Report != nil {
		Report(s.kind)
	}
}

// Of a handle the collector sees a few words of Go's, and nothing of the native object behind them: it would leave
// thousands of dropped ones. So it is called when there are more handles than twice those that it last left, and some.
const spareHandles = 256

var (
	handles    atomic.Int64 // open ones
	limit      atomic.Int64 // of handles, until the next collection
	collecting atomic.Bool
)

func init() { limit.Store(spareHandles) }

func countOpened() {
	if handles.Add(1) <= limit.Load() || !collecting.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer collecting.Store(false)
		runtime.GC()
		for left := handles.Load(); ; { // while cleanups run
			time.Sleep(time.Millisecond)
			now := handles.Load()
			if now >= left {
				limit.Store(2*now + spareHandles)
				return
			}
			left = now
		}
	}()
}

// Open takes over a ticket that is not 0.
func (h *Handle) Open(kind string, ticket uintptr, destroy func(*uintptr), parents ...*Handle) {
	h.state = &state{ticket: ticket, destroy: destroy, kind: kind}
	for _, parent := range parents {
		h.state.kept = append(h.state.kept, parent)
	}
	h.cleanup = runtime.AddCleanup(h, (*state).dropped, h.state)
	h.ticket.Store(ticket)
	countOpened()
}

// Close may be called more than once, on any goroutine, during calls.
func (h *Handle) Close() {
	if h.ticket.Swap(0) == 0 {
		return
	}
	h.cleanup.Stop()
	h.state.end()
}

// Keep holds what the native object uses until it ends.
func (h *Handle) Keep(used any) {
	if h.state == nil {
		return
	}
	h.state.mutex.Lock()
	defer h.state.mutex.Unlock()
	h.state.kept = append(h.state.kept, used)
}

// AtEnd calls when the native object has ended. What it calls must not refer to the handle, which it would keep alive.
func (h *Handle) AtEnd(call func()) {
	h.state.mutex.Lock()
	defer h.state.mutex.Unlock()
	h.state.atEnd = append(h.state.atEnd, call)
}

// Pin holds the memory of a tensor where it is until the native object ends.
func (h *Handle) Pin(tensor Tensor) {
	if h.state == nil || tensor.data == nil {
		return
	}
	h.state.mutex.Lock()
	defer h.state.mutex.Unlock()
	h.state.forever.Pin(tensor.data)
}

// PinBatch is Pin until the next PinBatch.
func (h *Handle) PinBatch(tensors ...Tensor) {
	if h.state == nil {
		return
	}
	h.state.mutex.Lock()
	defer h.state.mutex.Unlock()
	h.state.batch.Unpin()
	for _, tensor := range tensors {
		if tensor.data != nil {
			h.state.batch.Pin(tensor.data)
		}
	}
}

// Invalidate ends all views of the native object's memory.
func (h *Handle) Invalidate() { h.version.Add(1) }

// Version of views that are valid now.
func (h *Handle) Version() int32 { return h.version.Load() }

// Check is an error where the handle is closed.
func (h *Handle) Check() error {
	_, err := h.get()
	return err
}

// get is the ticket for a call; the wrapper keeps h alive until the call has returned.
func (h *Handle) get() (uintptr, error) {
	if h == nil {
		return 0, nil
	}
	if ticket := h.ticket.Load(); ticket != 0 {
		return ticket, nil
	}
	kind := "handle"
	if h.state != nil {
		kind = h.state.kind
	}
	return 0, refuse(invalidHandle, fmt.Sprintf("this %s is closed", kind))
}
