package capi

// #include "shardrec/shardrec.h"
import "C"

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// Handle holds the ticket of a native object until it is closed or collected; nil is C's NULL. What must not
// be collected before it is, is kept by Parents.
type Handle struct {
	ticket  atomic.Uintptr
	cleanup runtime.Cleanup
	destroy func(*uintptr)
	kind    string
	parents []*Handle
}

// dropped is what outlives a Handle.
type dropped struct {
	ticket  uintptr
	destroy func(*uintptr)
	kind    string
}

// Report is told of the first handle of each kind that was collected without Close.
var Report func(kind string)

var reported sync.Map

func (d dropped) end() {
	ticket := d.ticket
	d.destroy(&ticket)
	if _, before := reported.LoadOrStore(d.kind, true); !before && Report != nil {
		Report(d.kind)
	}
}

// Open takes over a ticket that is not 0.
func (h *Handle) Open(kind string, ticket uintptr, destroy func(*uintptr), parents ...*Handle) {
	h.kind, h.destroy, h.parents = kind, destroy, parents
	h.cleanup = runtime.AddCleanup(h, dropped.end, dropped{ticket, destroy, kind})
	h.ticket.Store(ticket)
}

// Close may be called more than once, on any goroutine, during calls.
func (h *Handle) Close() {
	ticket := h.ticket.Swap(0)
	if ticket == 0 {
		return
	}
	h.cleanup.Stop()
	h.destroy(&ticket)
}

// get is the ticket for a call; the wrapper keeps h alive until the call has returned.
func (h *Handle) get() (uintptr, error) {
	if h == nil {
		return 0, nil
	}
	if ticket := h.ticket.Load(); ticket != 0 {
		return ticket, nil
	}
	kind := h.kind
	if kind == "" {
		kind = "handle"
	}
	return 0, refuse(C.SHARDREC_INVALID_HANDLE, fmt.Sprintf("this %s is closed", kind))
}
