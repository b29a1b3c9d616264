package process

import "unsafe"

// ptr is the address of a prctl result.
func ptr(p *int32) unsafe.Pointer { return unsafe.Pointer(p) }
