//go:build !cgo || !linux

package capi

// Linked tells whether the library is linked at all.
const Linked = false

func missing() error {
	return refuse(unsupported, "this program was built without libshardrec, a C library for Linux: install gcc, pkg-config and "+
		"libshardrec's development package (its pkg-config file is shardrec.pc), and build with CGO_ENABLED=1 and GOOS=linux")
}

func newLayout(view View, owner *Handle) (*layout, int) { return &layout{int(view.ndim), owner}, 0 }
