package capi

// #include "shardrec/shardrec.h"
import "C"

import (
	"fmt"
	"strings"
	"unsafe"
)

// checkText refuses what C would see half of.
func checkText(text string) error {
	if at := strings.IndexByte(text, 0); at >= 0 {
		return refuse(C.SHARDREC_INVALID_ARGUMENT,
			fmt.Sprintf("the text %q holds NUL at byte %d; no name or path may hold it", text, at))
	}
	return nil
}

// takeText copies a text of the library and frees it; "" for NULL.
func takeText(text unsafe.Pointer) string {
	defer C.shardrec_text_free((*C.char)(text))
	return C.GoString((*C.char)(text))
}
