package envoy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
)

// machines maps the e_machine of an ELF header to Go's name of it. debug/elf
// would read it too, at 0.3 MB of ours.
var machines = map[uint16]string{
	3: "386", 21: "ppc64le", 22: "s390x", 40: "arm", 62: "amd64", 183: "arm64", 243: "riscv64", 258: "loong64",
}

// checkMachine refuses what the kernel would refuse with "exec format error",
// in words that help.
func checkMachine(r io.ReaderAt) error {
	var head [20]byte
	n, err := r.ReadAt(head[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if n >= 2 && string(head[:2]) == "#!" {
		return nil
	}
	if n < len(head) || string(head[:4]) != "\x7fELF" {
		return errors.New("is neither an ELF program nor a script")
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if head[5] == 2 {
		order = binary.BigEndian
	}
	machine := order.Uint16(head[18:])
	name, ok := machines[machine]
	if !ok {
		name = fmt.Sprintf("another machine (ELF machine %d)", machine)
	}
	if name != runtime.GOARCH {
		return fmt.Errorf("is built for %s, this machine is %s", name, runtime.GOARCH)
	}
	return nil
}
